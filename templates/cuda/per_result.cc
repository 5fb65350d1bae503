// One reduction with its epilogue: a thread per result, which goes through what is reduced in the order of the
// definition. What other templates of reductions leave.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cuda/template.h"

namespace tc {

std::optional<Scheduled> cuda_per_result(const CudaArgs& a) {
  if (!a.canonical || !bool(a.canonical->value)) return {};
  const Canonical& c = *a.canonical;
  const Buffer acc = make_buffer(c.name.empty() ? "acc" : c.name, c.reduced->dtype, {}, Scope::Register);
  Stmt reduce = store(acc, {}, c.value, c.combine);
  for (size_t i = c.raxes.size(); i-- > 0;) reduce = loop(c.raxes[i].var, c.raxes[i].extent, reduce);
  const Expr result = substitute_buffers(c.epilogue, {{c.reduced.get(), acc}});
  const Stmt body = alloc(acc, seq({store(acc, {}, c.init), reduce, store(c.out, {c.out_index}, result)}));
  Schedule loops = point_loops(c.axes, body, a.options);
  bind_points(loops, vars_of(c.axes), decide_threads(a.plan, points(c.axes)));
  Scheduled s;
  s.body = seq({border_launch(c), loops.body()});
  s.steps = loops.steps();
  bind_operands(s, c);
  s.family = "per_result";
  s.description = "a thread per result, which reduces in the order of the definition";
  return s;
}

}  // namespace tc
