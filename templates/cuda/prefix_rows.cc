// Sums along one axis in which every result is the one before it joined with a value (CumSum, CumProd), of so many sequences that
// no memory holds them all: a thread goes through one.
//
//   for each sequence, a thread:
//     sum = first, y[0] = sum
//     for i in 1 .. steps: sum += next[i], y[i] = sum
//
// Results are written where they belong, so that nothing is kept between launches.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "support/text.h"
#include "templates/cuda/template.h"
#include "templates/match/prefix.h"

namespace tc {

std::optional<Scheduled> cuda_prefix_rows(const CudaArgs& a) {
  const auto p = match_prefix_rows(a.fn, false);
  const Dims dims = p ? static_dims(p->c.original_out->shape) : Dims();
  if (!p || is_open(p->steps) || std::none_of(dims.begin(), dims.end(), is_open)) return {};
  std::vector<Axis> axes = p->outer;
  axes.insert(axes.end(), p->inner.begin(), p->inner.end());
  const Buffer sum = make_buffer("sum", p->sum->dtype, {}, Scope::Register);
  const auto at = [&](const Expr& e, const Expr& step) { return simplify(substitute(e, {{p->step.get(), step}})); };
  const auto joined = [&](const Expr& value, const Expr& step, std::optional<Op> op) {
    const Expr stored = with_reduced(p->stored, p->sum, load(sum, {}));
    return seq({store(sum, {}, at(value, step), op), store(p->c.out, {at(p->out_index, step)}, at(stored, step))});
  };
  const Var step = make_var(p->step->name);
  const Stmt sequence = alloc(
      sum,
      seq({joined(p->first, 0, {}), loop(step, p->steps - 1, joined(p->next, Expr(step), p->op), ForKind::Serial, 1)}));
  Schedule loops = point_loops(axes, sequence, a.options);
  bind_points(loops, vars_of(axes), decide_threads(a.plan, points(axes)));
  Scheduled s;
  s.body = loops.body();
  bind_operands(s, p->c);
  s.family = "prefix_rows";
  s.description = "a thread per sequence, " + to_text(p->steps) + " sums one after the other";
  return s;
}

}  // namespace tc
