// Softmax and its relatives, in the stable form: the largest element of the axis is taken out first.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

struct Shifted {
  Reduction over;
  Tensor largest;
};

/// `count`: of the elements that take part; null: all do.
Shifted largest_of(OpBuilder& b, const Tensor& x, const Expr& count = {}) {
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const Reduction over = reduction_over(b, x.dims(), {axis}, false);
  const DType t = compute_type(x.dtype());
  return {over, reduce_over(b, "max", Op::Max, t, over, [&](const Exprs& at) {
            return count ? select(at[size_t(axis)] < count, widen(x(at)), lowest(t)) : widen(x(at));
          })};
}

/// `or_zero`: rows are zero where they would be NaN: where every element is -inf, as attention wants it of a query that may see
/// no key, and where one is NaN or inf.
void softmax_of(OpBuilder& b, bool or_zero, const Expr& count = {}) {
  const Tensor x = b.in(0);
  const DType t = compute_type(x.dtype());
  const size_t axis = size_t(b.axis(b.attr_int("axis"), x.rank()));
  const auto [over, largest] = largest_of(b, x, count);
  const Tensor e = b.compute("exp", t, x.dims(), [&](const Exprs& i) {
    const Expr m = largest(over.result_at(i));
    return exp(widen(x(i)) - (or_zero ? select(eq(m, lowest(t)), zero(t), m) : m));
  });
  const Tensor sum = reduce_over(b, "sum", Op::Add, t, over, [&](const Exprs& at) {
    return count ? select(at[axis] < count, e(at), zero(t)) : e(at);
  });
  b.output(0, b.compute("softmax", x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr s = sum(over.result_at(i)), share = e(i) / s;
    return cast(x.dtype(), or_zero ? select(s > zero(t), share, zero(t)) : share);
  }));
}

void define_softmax(OpBuilder& b) { softmax_of(b, false); }
void define_softmax_or_zero(OpBuilder& b) { softmax_of(b, true); }

/// Softmax of the first `count` elements along the axis. What lies behind them may be anything, in x and in the result.
void define_counted_softmax(OpBuilder& b) { softmax_of(b, b.attr_int("or_zero") != 0, b.in(1)({})); }

void define_log_softmax(OpBuilder& b) {
  const Tensor x = b.in(0);
  const DType t = compute_type(x.dtype());
  const auto [over, largest] = largest_of(b, x);
  auto shifted = [&](const Exprs& i) { return widen(x(i)) - largest(over.result_at(i)); };
  const Tensor sum = reduce_over(b, "sum", Op::Add, t, over, [&](const Exprs& at) { return exp(shifted(at)); });
  b.output(0, b.compute("log_softmax", x.dtype(), x.dims(),
                        [&](const Exprs& i) { return cast(x.dtype(), shifted(i) - log(sum(over.result_at(i)))); }));
}

/// 1 at the first of the largest elements, 0 elsewhere.
void define_hardmax(OpBuilder& b) {
  const Tensor x = b.in(0);
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const Reduction over = reduction_over(b, x.dims(), {axis}, false);
  const Tensor first = arg_extremum(b, x, axis, false, true, false);
  b.output(0, b.compute("hardmax", x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr hit = eq(first(over.result_at(i)), i[size_t(axis)]);
    return select(hit, make_const(x.dtype(), 1), zero(x.dtype()));
  }));
}

}  // namespace

OpFamily softmax_ops() {
  const std::vector<AttrSpec> attrs = {{"axis", int64_t(-1)}};
  return {
      {"Softmax", 13, attrs, define_softmax},
      {"LogSoftmax", 13, attrs, define_log_softmax},
      {"Hardmax", 13, attrs, define_hardmax},
      {"counted_softmax",
       1,
       {{"axis", int64_t(-1)}, {"or_zero", int64_t(0)}},
       define_counted_softmax,
       "x count",
       "softmax",
       "tc"},
      {"softmax_or_zero", 1, attrs, define_softmax_or_zero, "x", "softmax", "tc"},
  };
}

}  // namespace tc
