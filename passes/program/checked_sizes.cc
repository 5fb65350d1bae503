// Sizes are inputs of type int64 that NAME_run holds against the bounds in IoTensor before any kernel runs. A kernel that gets nothing
// else for a parameter, whoever calls it, may rely on them (trust_sizes).
#include "passes/program/checked_sizes.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/calls.h"
#include "ir/loop/simplify.h"

namespace tc {
namespace {

// What calls pass: the bounds of it, as long as all of them pass sizes.
struct Seen {
  std::optional<Range> range;
  bool known = true;
};

}  // namespace

void find_checked_sizes(Program& p) {
  std::map<std::pair<size_t, size_t>, Seen> seen;  // by kernel and parameter
  const auto note = [&](size_t kernel, const Call& c) {
    for (size_t i = 0; i < p.kernels[kernel].params.size(); i++) {
      Seen& s = seen[{kernel, i}];
      const Operand& o = c.operands.at(i);
      const IoTensor* t = o.kind == Operand::Kind::Input ? &p.inputs.at(size_t(o.index)) : nullptr;
      s.known = s.known && t && t->is_size;
      if (!s.known) continue;
      s.range =
          s.range ? Range{std::min(s.range->min, t->least), std::max(s.range->max, t->most)} : Range{t->least, t->most};
    }
  };
  for_each_call(p.steps, [&](const Call& c) {
    note(size_t(c.kernel), c);
    for (const int k : c.by_variant)
      if (k != c.kernel) note(size_t(k), c);
  });
  for (const auto& [at, s] : seen)
    if (s.known && s.range)
      p.kernels[at.first].checked_sizes.push_back(
          {p.kernels[at.first].params[at.second].buffer, s.range->min, s.range->max});
}

}  // namespace tc
