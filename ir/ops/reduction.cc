// Reductions: Reduce*, cumulative sums and products, Lp normalisation. Narrow floats are accumulated as f32. Softmax,
// ArgMax, TopK and the losses stand in files of their own (parts.h).
#include "ir/ops/families.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

std::vector<int64_t> all_axes(int rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  for (size_t d = 0; d < axes.size(); d++) axes[d] = int64_t(d);
  return axes;
}

/// The result for one set of axes.
using Reduce = std::function<Tensor(OpBuilder&, const Tensor& x, const Reduction& over)>;

/// Sets of `count` axes whose reduction gives the declared shape.
std::vector<std::vector<int64_t>> axes_for(OpBuilder& b, const Tensor& x, int64_t count, bool keepdims) {
  const Dims declared = b.declared_dims(0, 1);
  std::vector<std::vector<int64_t>> sets;
  if (x.rank() > 16) b.unsupported("run-time axes of a tensor with more than 16 axes", 1);
  for (uint32_t set = 0; set < (uint32_t(1) << x.rank()); set++) {
    std::vector<int64_t> axes;
    for (int d = 0; d < x.rank(); d++)
      if ((set >> d & 1) != 0) axes.push_back(d);
    if (int64_t(axes.size()) == count && reduction_over(b, x.dims(), axes, keepdims).out == declared)
      sets.push_back(axes);
  }
  if (sets.empty()) b.reject("no choice of axes gives the declared shape", 1);
  if (sets.size() > 32) b.unsupported("the declared shape leaves too many choices of axes", 1);
  return sets;
}

/// Does operand 1 hold exactly these axes? (As many as it has, in any order.)
Expr axes_are(OpBuilder& b, const std::vector<int64_t>& axes, int rank) {
  Expr all = make_int(DType::Bool, 1);
  for (size_t k = 0; k < axes.size(); k++) {
    const Expr given = run_time_axis(element(b, 1, int64_t(k)), rank);
    Expr one = make_int(DType::Bool, 0);
    for (int64_t a : axes) one = one || eq(given, Expr(a));
    all = all && one;
  }
  return all;
}

/// The axes of operand 1; none given means all, or none at all with noop_with_empty_axes. Axes that are known only at
/// run time are tried one set after the other.
Define over_axes(Reduce f) {
  return [f](OpBuilder& b) {
    const Tensor x = b.in(0);
    const bool keepdims = b.attr_int("keepdims", 1) != 0;
    const int64_t count = b.has(1) ? length_of(b, 1) : 0;
    if (count == 0 || b.known(1)) {
      std::vector<int64_t> axes = count > 0 ? b.const_ints(1) : std::vector<int64_t>{};
      if (axes.empty() && b.attr_int("noop_with_empty_axes") == 0) axes = all_axes(x.rank());
      return b.output(0, f(b, x, reduction_over(b, x.dims(), axes, keepdims)));
    }
    std::vector<Candidate> candidates;
    for (const std::vector<int64_t>& axes : axes_for(b, x, count, keepdims))
      candidates.push_back({axes_are(b, axes, x.rank()), f(b, x, reduction_over(b, x.dims(), axes, keepdims))});
    b.output(0, choose(b, stage_label(b), candidates));
  };
}

using Part = std::function<Expr(Expr)>;

/// y = post(op over the axes of pre(x)); post works on the accumulator's type and runs in a stage of its own.
Reduce reduction(Op op, Part pre = {}, Part post = {}) {
  return [=](OpBuilder& b, const Tensor& x, const Reduction& over) {
    require_number(b, x.dtype());
    const DType t = post ? sum_type(x.dtype()) : compute_type(x.dtype());
    const Tensor sum = reduce_over(b, stage_label(b), op, t, over, [&](const Exprs& at) {
      const Expr e = cast(t, x(at));
      return pre ? pre(e) : e;
    });
    if (!post) return convert(b, sum, x.dtype(), stage_label(b));
    return b.compute(stage_label(b), x.dtype(), over.out,
                     [&](const Exprs& i) { return cast(x.dtype(), post(sum(i))); });
  };
}

/// Max and Min also take bool, where they are "any" and "all".
Reduce extremum(Op op) {
  return [op, numeric = reduction(op)](OpBuilder& b, const Tensor& x, const Reduction& over) {
    if (x.dtype() != DType::Bool) return numeric(b, x, over);
    return reduce_over(b, stage_label(b), op == Op::Max ? Op::Or : Op::And, DType::Bool, over,
                       [&](const Exprs& at) { return x(at); });
  };
}

Tensor mean(OpBuilder& b, const Tensor& x, const Reduction& over) {
  require_number(b, x.dtype());
  const double count = double(num_elements(over.raxes));
  const DType t = sum_type(x.dtype());
  const Tensor sum = reduce_over(b, "reduce_mean", Op::Add, t, over, [&](const Exprs& at) { return cast(t, x(at)); });
  return b.compute("reduce_mean", x.dtype(), over.out,
                   [&](const Exprs& i) { return cast(x.dtype(), sum(i) / num(sum(i), count)); });
}

/// A function of f64 for integers, of the type itself for floats.
Part through_float(Op op) {
  return [op](Expr e) {
    const DType t = e->dtype;
    return cast(t, apply(op, {is_int(t) ? cast(DType::F64, e) : e}));
  };
}

Expr square(Expr x) { return x * x; }

Expr absolute(Expr x) { return is_float(x->dtype) || is_signed_int(x->dtype) ? abs(x) : x; }

/// log(sum(exp(x))) with the largest element taken out, so that exp does not overflow. An infinite maximum stays
/// inside: the sum is then 0 or infinite, as it should be.
Tensor log_sum_exp(OpBuilder& b, const Tensor& x, const Reduction& over) {
  require_number(b, x.dtype());
  const DType t = is_int(x.dtype()) ? DType::F64 : compute_type(x.dtype());
  const Tensor largest = reduce_over(b, "max", Op::Max, t, over, [&](const Exprs& at) { return cast(t, x(at)); });
  const Tensor shift = b.compute("shift", t, over.out, [&](const Exprs& i) {
    return select(apply(Op::IsInf, {largest(i)}), zero(t), largest(i));
  });
  const Tensor sum = reduce_over(b, "sum", Op::Add, t, over,
                                 [&](const Exprs& at) { return exp(cast(t, x(at)) - shift(over.result_at(at))); });
  return b.compute("log_sum_exp", x.dtype(), over.out,
                   [&](const Exprs& i) { return cast(x.dtype(), log(sum(i)) + shift(i)); });
}

/// CumSum and CumProd along one axis: a scan, which needs that axis in front.
Tensor cumulate(OpBuilder& b, const Tensor& x, Op op, double identity, int axis) {
  const bool exclusive = b.attr_int("exclusive") != 0, reverse = b.attr_int("reverse") != 0;
  const int64_t n = x.dim(axis);
  const DType t = compute_type(x.dtype());
  Dims scanned = without_axis(x.dims(), axis);
  scanned.insert(scanned.begin(), n);
  b.begin_scan();
  const Tensor sums = b.declare(stage_label(b), t, scanned);
  b.define(sums, [&](const Exprs& i) {
    const Exprs rest(i.begin() + 1, i.end());
    auto at = [&](const Expr& step) { return widen(x(insert_axis(rest, axis, reverse ? Expr(n - 1) - step : step))); };
    const Expr before = sums(with_axis(i, 0, i[0] - 1));
    if (!exclusive) return select(eq(i[0], 0), at(i[0]), apply(op, {before, at(i[0])}));
    return select(eq(i[0], 0), make_const(t, identity), apply(op, {before, at(i[0] - 1)}));
  });
  b.end_scan();
  if (axis == 0 && !reverse) return convert(b, sums, x.dtype(), stage_label(b));
  return b.compute(stage_label(b), x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr step = reverse ? Expr(n - 1) - i[size_t(axis)] : i[size_t(axis)];
    return cast(x.dtype(), sums(insert_axis(remove_axis(i, axis), 0, step)));
  });
}

/// The axis is an operand; one that is known only at run time chooses among all.
Define cumulative(Op op, double identity) {
  return [op, identity](OpBuilder& b) {
    const Tensor x = b.in(0);
    require_number(b, x.dtype());
    if (x.rank() == 0) b.reject("the input needs at least one axis", 0);
    if (!b.has(1) || b.known(1)) return b.output(0, cumulate(b, x, op, identity, b.axis(b.const_int(1), x.rank())));
    std::vector<Candidate> candidates;
    for (int a = 0; a < x.rank(); a++)
      candidates.push_back({eq(run_time_axis(element(b, 1), x.rank()), Expr(a)), cumulate(b, x, op, identity, a)});
    b.output(0, choose(b, stage_label(b), candidates));
  };
}

/// x / norm(x) along one axis; 0 where the norm is 0.
void define_lp_normalization(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int64_t p = b.attr_int("p");
  if (p != 1 && p != 2) b.reject("attribute p is " + to_text(p) + " but must be 1 or 2");
  const Reduction over = reduction_over(b, x.dims(), {b.attr_int("axis")}, true);
  const DType t = compute_type(x.dtype());
  const Tensor sum = reduce_over(b, "norm", Op::Add, t, over,
                                 [&](const Exprs& at) { return p == 1 ? abs(widen(x(at))) : square(widen(x(at))); });
  b.output(0, b.compute("lp_normalization", x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr total = sum(over.result_at(i)), norm = p == 1 ? total : sqrt(total);
    return cast(x.dtype(), select(eq(total, zero(t)), zero(t), widen(x(i)) / norm));
  }));
}

}  // namespace

OpFamily reduction_ops() {
  const std::vector<AttrSpec> attrs = {{"keepdims", int64_t(1)}, {"noop_with_empty_axes", int64_t(0)}};
  const std::vector<AttrSpec> scan = {{"exclusive", int64_t(0)}, {"reverse", int64_t(0)}};
  const Part root = through_float(Op::Sqrt), logarithm = through_float(Op::Log);
  OpFamily rows = {
      joins_nothing("zero", {"ReduceSum", 13, attrs, over_axes(reduction(Op::Add)), "x axes"}),
      {"ReduceMean", 18, attrs, over_axes(mean), "x axes"},
      joins_nothing("lowest", {"ReduceMax", 20, attrs, over_axes(extremum(Op::Max)), "x axes"}),
      joins_nothing("highest", {"ReduceMin", 20, attrs, over_axes(extremum(Op::Min)), "x axes"}),
      joins_nothing("one", {"ReduceProd", 18, attrs, over_axes(reduction(Op::Mul)), "x axes"}),
      joins_nothing("zero", {"ReduceL1", 18, attrs, over_axes(reduction(Op::Add, absolute)), "x axes"}),
      joins_nothing("zero", {"ReduceL2", 18, attrs, over_axes(reduction(Op::Add, square, root)), "x axes"}),
      joins_nothing("zero", {"ReduceSumSquare", 18, attrs, over_axes(reduction(Op::Add, square)), "x axes"}),
      joins_nothing("zero", {"ReduceLogSum", 28, attrs, over_axes(reduction(Op::Add, {}, logarithm)), "x axes"}),
      joins_nothing("lowest", {"ReduceLogSumExp", 28, attrs, over_axes(log_sum_exp), "x axes"}),
      {"CumSum", 14, scan, cumulative(Op::Add, 0), "x axis", "cumsum"},
      {"CumProd", 26, scan, cumulative(Op::Mul, 1), "x axis", "cumprod"},
      {"LpNormalization", 22, {{"axis", int64_t(-1)}, {"p", int64_t(2)}}, define_lp_normalization},
  };
  for (OpFamily part : {softmax_ops(), search_ops(), loss_ops(), determinant_ops(), text_ops()})
    for (OpRow& row : part) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tc
