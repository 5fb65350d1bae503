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

/// The axes of operand 1; none given means all, or none at all with noop_with_empty_axes.
Reduction reduction_of(OpBuilder& b, const Tensor& x) {
  std::vector<int64_t> axes;
  if (b.has(1)) axes = b.const_ints(1);
  if (axes.empty() && b.attr_int("noop_with_empty_axes") == 0) axes = all_axes(x.rank());
  return reduction_over(b, x.dims(), axes, b.attr_int("keepdims", 1) != 0);
}

using Part = std::function<Expr(Expr)>;

/// y = post(op over the axes of pre(x)); post works on the accumulator's type and runs in a stage of its own.
Define reduction(Op op, Part pre = {}, Part post = {}) {
  return [=](OpBuilder& b) {
    const Tensor x = b.in(0);
    require_number(b, x.dtype());
    const Reduction over = reduction_of(b, x);
    const Tensor sum = reduce_over(b, word(b), op, compute_type(x.dtype()), over, [&](const Exprs& at) {
      const Expr e = widen(x(at));
      return pre ? pre(e) : e;
    });
    if (!post) return b.output(0, convert(b, sum, x.dtype(), word(b)));
    b.output(0, b.compute(word(b), x.dtype(), over.out, [&](const Exprs& i) { return cast(x.dtype(), post(sum(i))); }));
  };
}

/// Max and Min also take bool, where they are "any" and "all".
Define extremum(Op op) {
  return [op, numeric = reduction(op)](OpBuilder& b) {
    const Tensor x = b.in(0);
    if (x.dtype() != DType::Bool) return numeric(b);
    const Reduction over = reduction_of(b, x);
    b.output(0, reduce_over(b, word(b), op == Op::Max ? Op::Or : Op::And, DType::Bool, over,
                            [&](const Exprs& at) { return x(at); }));
  };
}

void define_mean(OpBuilder& b) {
  const Tensor x = b.in(0);
  require_number(b, x.dtype());
  const Reduction over = reduction_of(b, x);
  const double count = double(num_elements(over.raxes));
  const Tensor sum = reduce_over(b, "reduce_mean", Op::Add, compute_type(x.dtype()), over,
                                 [&](const Exprs& at) { return widen(x(at)); });
  b.output(0, b.compute("reduce_mean", x.dtype(), over.out,
                        [&](const Exprs& i) { return cast(x.dtype(), sum(i) / num(sum(i), count)); }));
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
void define_log_sum_exp(OpBuilder& b) {
  const Tensor x = b.in(0);
  require_number(b, x.dtype());
  const Reduction over = reduction_of(b, x);
  const DType t = is_int(x.dtype()) ? DType::F64 : compute_type(x.dtype());
  const Tensor largest = reduce_over(b, "max", Op::Max, t, over, [&](const Exprs& at) { return cast(t, x(at)); });
  const Tensor shift = b.compute("shift", t, over.out, [&](const Exprs& i) {
    return select(apply(Op::IsInf, {largest(i)}), zero(t), largest(i));
  });
  const Tensor sum = reduce_over(b, "sum", Op::Add, t, over,
                                 [&](const Exprs& at) { return exp(cast(t, x(at)) - shift(over.result_at(at))); });
  b.output(0, b.compute("log_sum_exp", x.dtype(), over.out,
                        [&](const Exprs& i) { return cast(x.dtype(), log(sum(i)) + shift(i)); }));
}

/// CumSum and CumProd: a scan along the axis, which the scan needs in front.
Define cumulative(Op op, double identity) {
  return [op, identity](OpBuilder& b) {
    const Tensor x = b.in(0);
    require_number(b, x.dtype());
    if (x.rank() == 0) b.reject("the input needs at least one axis", 0);
    const int axis = b.axis(b.const_int(1), x.rank());
    const bool exclusive = b.attr_int("exclusive") != 0, reverse = b.attr_int("reverse") != 0;
    const int64_t n = x.dim(axis);
    const DType t = compute_type(x.dtype());
    Dims scanned = without_axis(x.dims(), axis);
    scanned.insert(scanned.begin(), n);
    b.begin_scan();
    const Tensor sums = b.declare(word(b), t, scanned);
    b.define(sums, [&](const Exprs& i) {
      const Exprs rest(i.begin() + 1, i.end());
      auto element = [&](const Expr& step) {
        return widen(x(insert_axis(rest, axis, reverse ? Expr(n - 1) - step : step)));
      };
      const Expr before = sums(with_axis(i, 0, i[0] - 1));
      const Expr start = make_const(t, identity);
      if (!exclusive) return select(eq(i[0], 0), element(i[0]), apply(op, {before, element(i[0])}));
      return select(eq(i[0], 0), start, apply(op, {before, element(i[0] - 1)}));
    });
    b.end_scan();
    if (axis == 0 && !reverse) return b.output(0, convert(b, sums, x.dtype(), word(b)));
    b.output(0, b.compute(word(b), x.dtype(), x.dims(), [&](const Exprs& i) {
      const Expr step = reverse ? Expr(n - 1) - i[size_t(axis)] : i[size_t(axis)];
      return cast(x.dtype(), sums(insert_axis(remove_axis(i, axis), 0, step)));
    }));
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
      {"ReduceSum", 13, attrs, reduction(Op::Add), "x axes"},
      {"ReduceMean", 18, attrs, define_mean, "x axes"},
      {"ReduceMax", 20, attrs, extremum(Op::Max), "x axes"},
      {"ReduceMin", 20, attrs, extremum(Op::Min), "x axes"},
      {"ReduceProd", 18, attrs, reduction(Op::Mul), "x axes"},
      {"ReduceL1", 18, attrs, reduction(Op::Add, absolute), "x axes"},
      {"ReduceL2", 18, attrs, reduction(Op::Add, square, root), "x axes"},
      {"ReduceSumSquare", 18, attrs, reduction(Op::Add, square), "x axes"},
      {"ReduceLogSum", 28, attrs, reduction(Op::Add, {}, logarithm), "x axes"},
      {"ReduceLogSumExp", 28, attrs, define_log_sum_exp, "x axes"},
      {"CumSum", 14, scan, cumulative(Op::Add, 0), "x axis", "cumsum"},
      {"CumProd", 26, scan, cumulative(Op::Mul, 1), "x axis", "cumprod"},
      {"LpNormalization", 22, {{"axis", int64_t(-1)}, {"p", int64_t(2)}}, define_lp_normalization},
  };
  for (OpFamily part : {softmax_ops(), search_ops(), loss_ops(), determinant_ops(), text_ops()})
    for (OpRow& row : part) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tc
