#include "passes/graph/input_behind.h"

#include <set>
#include <vector>

#include "support/text.h"

namespace tc {

std::string only_input_behind(const Graph& g, const Value* v) {
  constexpr size_t kMost = 1000;  // values that are looked at: messages must not take longer than the model
  std::set<const Value*> met;
  std::vector<const Value*> open = {v};
  while (!open.empty()) {
    const Value* x = open.back();
    open.pop_back();
    if (!x || !met.insert(x).second || !x->producer) continue;
    if (met.size() > kMost) return "";
    open.insert(open.end(), x->producer->inputs.begin(), x->producer->inputs.end());
  }
  const Value* only = nullptr;
  for (const Value* in : g.inputs()) {
    if (!met.contains(in)) continue;
    if (only) return "";
    only = in;
  }
  return only ? printable(only->name.raw()) : "";
}

}  // namespace tc
