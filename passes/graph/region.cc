#include "passes/graph/region.h"

#include <algorithm>

namespace tc {

bool sums_a_window(const Stage& s) {
  return std::count_if(s.raxes.begin(), s.raxes.end(), [](const Axis& a) { return a.extent != Dim(1); }) == 2;
}

bool may_stand_between(const TensorFn& fn) {
  std::vector<const Stage*> reductions;
  for (const Stage& s : fn.stages)
    if (s.kind == Stage::Kind::Reduce) reductions.push_back(&s);
  const bool softmax =
      std::any_of(reductions.begin(), reductions.end(), [](const Stage* s) { return s->combiner.op == Op::Max; });
  return softmax || (reductions.size() == 1 && sums_a_window(*reductions[0]));
}

}  // namespace tc
