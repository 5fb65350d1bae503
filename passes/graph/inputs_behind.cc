#include "passes/graph/inputs_behind.h"

#include <set>

#include "support/text.h"

namespace tc {

std::vector<std::string> inputs_behind(const Graph& g, const Value* v) {
  std::set<const Value*> met;
  std::vector<const Value*> open = {v};
  while (!open.empty()) {
    const Value* x = open.back();
    open.pop_back();
    if (!x || !met.insert(x).second || !x->producer) continue;
    open.insert(open.end(), x->producer->inputs.begin(), x->producer->inputs.end());
  }
  std::vector<std::string> names;
  for (const Value* in : g.inputs())
    if (met.contains(in)) names.push_back(printable(in->name.raw()));
  return names;
}

}  // namespace tc
