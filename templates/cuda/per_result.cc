// One reduction with its epilogue: a thread per result, which goes through what is reduced in the order of the
// definition. What other templates of reductions leave.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cuda/template.h"

namespace tc {

std::optional<Scheduled> cuda_per_result(const CudaArgs& a) {
  if (!a.canonical || !bool(a.canonical->value)) return {};
  const Canonical& c = *a.canonical;
  Schedule loops = point_loops(c.axes, reduce_at_point(c, c.name.empty() ? "acc" : c.name), a.options);
  bind_points(loops, vars_of(c.axes), decide_threads(a.plan, points(c.axes)));
  Scheduled s;
  s.body = seq({border_launch(c), loops.body()});
  bind_operands(s, c);
  s.family = "per_result";
  s.description = "a thread per result, which reduces in the order of the definition";
  return s;
}

}  // namespace tc
