// No reduction: a thread per element of the result. Axes that all operands walk as one are merged, so that most
// functions are one flat index. Where everything lies on 16 bytes, a thread has as many elements as these hold.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/loop/vectorize_loops.h"
#include "support/text.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

// Fewer elements than these many threads a multiprocessor have are spread one by one.
constexpr int64_t kThreadsToFill = 128;

// A row whose number is read from memory, and whose elements lie side by side: an embedding.
bool is_row_of_a_gather(const Expr& index, const Var& inner, int64_t n) {
  const auto f = affine_in(index, {inner});
  return f && f->coefficients[0] == 1 && multiple_of(f->rest, {}) % n == 0;
}

// The most elements that a thread may have: neighbours in the result and in every operand that moves along the innermost axis.
int64_t most_elements(const Canonical& c) {
  int64_t bytes = info(c.out->dtype).bytes;  // of the widest element
  for (const Load* l : loads_of(c.epilogue))
    if (!c.axes.empty() && l->index.size() == 1 && uses_var(l->index[0], c.axes.back().var))
      bytes = std::max<int64_t>(bytes, info(l->buffer->dtype).bytes);
  const int64_t n = bytes > 0 ? 16 / bytes : 1;
  if (n < 2 || c.axes.empty() || c.axes.back().extent.value % n != 0) return 1;
  const std::vector<Var> vars = vars_of(c.axes);
  auto aligned = [&](const Expr& index, bool may_stay) {
    const auto o = offset_of(index, vars);
    if (!o) return is_row_of_a_gather(index, vars.back(), n);
    if (o->of(vars.back()) == 0) return may_stay;
    return begins_on(*o, vars.back(), n);
  };
  if (!aligned(c.out_index, false)) return 1;
  for (const Load* l : loads_of(c.epilogue)) {
    if (l->index.size() == 1 && !uses_var(l->index[0], vars.back())) continue;  // one element for all
    if (l->index.size() != 1 || info(l->buffer->dtype).bytes == 0 || !aligned(l->index[0], true)) return 1;
  }
  return n;
}

}  // namespace

std::optional<Scheduled> cuda_elementwise(const CudaArgs& a) {
  if (!a.canonical || bool(a.canonical->value)) return {};
  Canonical c = *a.canonical;
  merge_axes(c.axes, {&c.epilogue}, {&c.out_index});
  const int64_t most = most_elements(c), all = points(c.axes);
  const int64_t n = a.plan.number(
      "elements", [&] { return all < most * kThreadsToFill * a.gpu.multiprocessors ? 1 : most; },
      most == 1 ? KnobValues::only(1, "nothing lies on 16 bytes for several")
                : KnobValues::list({1, most}, "one, or 16 bytes of them"));
  const int64_t threads = decide_threads(a.plan, all / n);
  Schedule loops = point_loops(c.axes, store(c.out, {c.out_index}, c.epilogue), a.options);
  std::vector<Var> outer = vars_of(c.axes);
  Var j;
  if (n > 1) std::tie(outer.back(), j) = loops.split(outer.back(), n, Tail::Guard, {{outer.back()->name, "j"}});
  bind_points(loops, outer, threads);
  if (n > 1) loops.vectorize(j);
  Scheduled s;
  s.body = seq({border_launch(c), loops.body()});
  bind_operands(s, c);
  s.family = "elementwise";
  s.description = n > 1 ? to_text(n) + " elements a thread, 16 bytes an access" : "a thread per element";
  return s;
}

}  // namespace tc
