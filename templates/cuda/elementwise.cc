// No reduction: a thread per element of the result. Axes that all operands walk as one are merged, so that most
// functions are one flat index.
#include "ir/loop/build.h"
#include "templates/cuda/template.h"

namespace tc {

std::optional<Scheduled> cuda_elementwise(const CudaArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  Canonical c = *a.canonical;
  merge_axes(c.axes, {&c.epilogue}, {&c.out_index});
  Scheduled s;
  s.body = seq({border_launch(c), thread_per_point(c.axes, store(c.out, {c.out_index}, c.epilogue))});
  bind_operands(s, c);
  s.family = "elementwise";
  s.words = "a thread per element";
  return s;
}

}  // namespace tc
