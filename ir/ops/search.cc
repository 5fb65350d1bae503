// Positions of the largest and smallest elements. To ArgMax and ArgMin NaN is the most extreme value of all, as in NumPy; to TopK
// it is the largest one, as in PyTorch and ONNX's reference: ONNX Runtime's order depends on where it stands.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"
#include "ir/ops/top_k.h"

namespace tc {
namespace {

Define arg(bool largest) {
  return [largest](OpBuilder& b) {
    const Tensor x = b.in(0);
    require_number(b, x.dtype());
    const int axis = b.axis(b.attr_int("axis"), x.rank());
    if (x.dim(axis) == 0) b.reject("there is no element to choose from", 0);
    b.output(0, arg_extremum(b, x, axis, b.attr_int("keepdims") != 0, largest, b.attr_int("select_last_index") != 0));
  };
}

/// A K that is known only at run time must be what the model declares.
int64_t declared_k(OpBuilder& b, int axis, int rank) {
  const Dims dims = b.declared_dims(b.declares(0) ? 0 : 1, 1);  // of the values, or their positions
  if (int(dims.size()) != rank) b.reject("the declared shape does not fit the input", 1);
  return dims[size_t(axis)];
}

/// The first in order alone, and where it is: no list, a reduction like ArgMax.
void define_top_1(OpBuilder& b, const Tensor& x, int axis, bool largest) {
  const Reduction over = reduction_over(b, x.dims(), {axis}, true);
  const DType t = compute_type(x.dtype());
  const auto best = b.reduce_tuple(
      "top_1", {t, DType::I64}, over.out, over.raxes,
      [&](const Exprs& i, const Exprs& r) {
        return Exprs{widen(x(over.at(i, r))), r[0]};
      },
      {last_in_order(t, largest), make_int(DType::I64, INT64_MAX)},
      [&](const Exprs& p, const Exprs& q) {
        const Expr first_wins = comes_before(p[0], p[1], q[0], q[1], largest);
        return Exprs{select(first_wins, p[0], q[0]), select(first_wins, p[1], q[1])};
      });
  b.output(0, convert(b, best[0], x.dtype(), "value"));
  b.output(1, best[1]);
}

void define_top_k(OpBuilder& b) {
  const Tensor x = b.in(0);
  require_number(b, x.dtype());
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const int64_t k = b.known(1) ? b.const_int(1) : declared_k(b, axis, x.rank());
  if (k < 0 || k > x.dim(axis))
    b.reject("K is " + to_text(k) + " but the axis has " + to_text(x.dim(axis)) + " elements", 1);
  if (k == 1) return define_top_1(b, x, axis, b.attr_int("largest") != 0);
  Dims dims = x.dims();
  dims[size_t(axis)] = k;
  const auto result =
      b.nest("top_k", {ValueType::tensor(x.dtype(), to_shape(dims)), ValueType::tensor(DType::I64, to_shape(dims))},
             [&](const std::vector<Buffer>& out) {
               return top_k_loops({x.buffer(), out[0], out[1], axis, b.attr_int("largest") != 0});
             });
  b.output(0, result[0]);
  b.output(1, result[1]);
}

}  // namespace

Tensor arg_extremum(OpBuilder& b, const Tensor& x, int axis, bool keepdims, bool largest, bool last) {
  const Reduction over = reduction_over(b, x.dims(), {axis}, keepdims);
  const DType t = compute_type(x.dtype());
  // A value no better than any other, at a position that every tie beats.
  const Exprs nothing = {largest ? lowest(t) : highest(t), make_int(DType::I64, last ? -1 : INT64_MAX)};
  const auto best = b.reduce_tuple(
      largest ? "argmax" : "argmin", {t, DType::I64}, over.out, over.raxes,
      [&](const Exprs& i, const Exprs& r) {
        return Exprs{widen(x(over.at(i, r))), r[0]};
      },
      nothing,
      [&](const Exprs& p, const Exprs& q) {
        const Expr tie = equally_extreme(p[0], q[0]) && (last ? p[1] > q[1] : p[1] < q[1]);
        const Expr first_wins = more_extreme(p[0], q[0], largest) || tie;
        return Exprs{select(first_wins, p[0], q[0]), select(first_wins, p[1], q[1])};
      });
  return best[1];
}

OpFamily search_ops() {
  const std::vector<AttrSpec> attrs = {
      {"axis", int64_t(0)}, {"keepdims", int64_t(1)}, {"select_last_index", int64_t(0)}};
  return {
      joins_nothing("lowest", {"ArgMax", 13, attrs, arg(true), "x", "argmax"}),
      joins_nothing("highest", {"ArgMin", 13, attrs, arg(false), "x", "argmin"}),
      {"TopK",
       24,
       {{"axis", int64_t(-1)}, {"largest", int64_t(1)}, {"sorted", int64_t(1)}},
       define_top_k,
       "x k",
       "top_k"},
  };
}

}  // namespace tc
