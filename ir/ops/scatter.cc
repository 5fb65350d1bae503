// Operators that write where other tensors say: a copy of the data, then one update after the other, in order.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// How data of type `t` and updates are combined; of truth values a sum is true where one of them is, as the larger one is.
std::optional<Op> reduction_of(const OpBuilder& b, DType t) {
  const std::string how = b.attr_string("reduction", "none");
  if (how == "none") return std::nullopt;
  if (t == DType::String) b.unsupported("attribute reduction is \"" + printable(how) + "\", and strings have none", 0);
  const bool truth = t == DType::Bool;
  if (how == "add") return truth ? Op::Or : Op::Add;
  if (how == "mul") return truth ? Op::And : Op::Mul;
  if (how == "max") return truth ? Op::Or : Op::Max;
  if (how == "min") return truth ? Op::And : Op::Min;
  b.reject("attribute reduction must be none, add, mul, max or min");
}

Stmt update(const Buffer& y, const Exprs& at, const Expr& value, std::optional<Op> op) {
  if (op && y->dtype == DType::Bool) return store(y, at, apply(*op, {load(y, at), value}));
  if (!op || !is_narrow_float(y->dtype)) return store(y, at, value, op);
  return store(y, at, cast(y->dtype, apply(*op, {widen(load(y, at)), widen(value)})));
}

/// Operand 3: how many updates there are, where that is known at run time only. The condition stands inside of all loops, so that
/// those of a row are shared by the threads of a GPU.
Stmt counted_update(OpBuilder& b, const Expr& number, const Stmt& update) {
  return b.has(3) ? if_then(number < b.in(3)({}), update) : update;
}

/// The row of `n` that a position means; operand 4: how many of them there are, where that is known at run time only.
Expr row_of(OpBuilder& b, const Expr& position, int64_t n) {
  if (!b.has(4)) return checked_index(position, n);
  return apply(Op::Index, {cast(DType::I64, position), min(max(b.in(4)({}), Expr(0)), Expr(n))});
}

/// Output 0: the data, changed by `body` in a loop over `dims`.
void scatter(OpBuilder& b, const Tensor& data, const Dims& dims,
             const std::function<Stmt(const Buffer& y, const Exprs& i)>& body) {
  if (has_no_elements(data.dims()) && !has_no_elements(dims)) b.reject("the data have no element to be replaced", 0);
  const auto y = b.nest(
      stage_label(b), {ValueType::tensor(data.dtype(), data.buffer()->shape)}, [&](const std::vector<Buffer>& out) {
        const Stmt copy = for_each_index(data.dims(), [&](const Exprs& at) { return store(out[0], at, data(at)); });
        return seq({copy, for_each_index(dims, [&](const Exprs& i) { return body(out[0], i); })});
      });
  b.output(0, y[0]);
}

void define_scatter_elements(OpBuilder& b) {
  const Tensor data = b.in(0), indices = b.in(1), updates = b.in(2);
  const std::optional<Op> op = reduction_of(b, data.dtype());
  const int axis = b.axis(b.attr_int("axis"), data.rank());
  if (!is_int(indices.dtype())) b.reject("indices must be integers", 1);
  if (updates.dtype() != data.dtype() || updates.dims() != indices.dims() || indices.rank() != data.rank())
    b.reject("the updates must have the type of the data and the shape of the indices", 2);
  for (int d = 0; d < data.rank(); d++)
    if (d != axis && indices.dim(d) > data.dim(d))
      b.reject("the indices are longer than the data on axis " + to_text(int64_t(d)), 1);
  scatter(b, data, indices.dims(), [&](const Buffer& y, const Exprs& i) {
    const Exprs to = with_axis(i, axis, row_of(b, indices(i), data.dim(axis)));
    return counted_update(b, i[size_t(axis)], update(y, to, updates(i), op));
  });
}

void define_scatter_nd(OpBuilder& b) {
  const Tensor data = b.in(0), indices = b.in(1), updates = b.in(2);
  const std::optional<Op> op = reduction_of(b, data.dtype());
  if (!is_int(indices.dtype())) b.reject("indices must be integers", 1);
  if (indices.rank() < 1 || indices.dim(-1) > data.rank())
    b.reject("the index tuples are longer than the data has axes", 1);
  const int64_t k = indices.dim(-1);
  const Dims d = data.dims(), outer = indices.dims();
  Dims dims(outer.begin(), outer.end() - 1);
  dims.insert(dims.end(), d.begin() + k, d.end());
  if (updates.dtype() != data.dtype() || updates.dims() != dims)
    b.reject("the updates' type or shape does not fit data and indices", 2);
  scatter(b, data, dims, [&](const Buffer& y, const Exprs& i) {
    const Exprs lead(i.begin(), i.begin() + indices.rank() - 1);
    Exprs at;
    for (int64_t c = 0; c < k; c++) at.push_back(row_of(b, indices(concat(lead, {Expr(c)})), data.dim(int(c))));
    at.insert(at.end(), i.begin() + indices.rank() - 1, i.end());
    const Stmt one = update(y, at, updates(i), op);
    return lead.empty() ? one : counted_update(b, lead[0], one);
  });
}

/// A cache with `update` written at a position per sequence: a copy, and what changes of it, so that a result in the cache's place is
/// that change alone. Operand 3: how much of the update there is, where that is known at run time only.
void define_tensor_scatter(OpBuilder& b) {
  const Tensor cache = b.in(0), news = b.in(1);
  const int axis = b.axis(b.attr_int("axis"), cache.rank());
  const std::string mode = b.attr_string("mode");
  if (mode != "linear" && mode != "circular") b.reject("attribute mode must be linear or circular");
  if (axis == 0) b.reject("axis 0 is the batch and cannot be written along");
  if (news.rank() != cache.rank() || news.dtype() != cache.dtype() ||
      without_axis(news.dims(), axis) != without_axis(cache.dims(), axis) || news.dim(axis) > cache.dim(axis))
    b.reject("the update does not fit the cache", 1);
  const Tensor start = b.has(2) ? b.in(2) : Tensor();
  if (start && start.dims() != Dims{cache.dim(0)}) b.reject("one write index per sequence is needed", 2);
  const int64_t n = cache.dim(axis), written = news.dim(axis);
  const bool circular = mode == "circular" && n > 0;
  const Dims dims = cache.dims(), lead(dims.begin(), dims.begin() + axis), trail(dims.begin() + axis + 1, dims.end());
  const Expr count = b.has(3) ? min(max(b.in(3)({}), Expr(0)), Expr(written)) : Expr(written);
  const auto y = b.nest(
      stage_label(b), {ValueType::tensor(cache.dtype(), cache.buffer()->shape)}, [&](const std::vector<Buffer>& out) {
        const Stmt copy = for_each_index(dims, [&](const Exprs& at) { return store(out[0], at, cache(at)); });
        const Stmt rows = for_each_index(lead, [&](const Exprs& i) {
          const Var row = make_var("row"), first = make_var("first");
          const Expr from = start ? cast(DType::I64, start({i[0]})) : Expr(0), place = Expr(first) + Expr(row);
          const Stmt slice = for_each_index(
              trail,
              [&](const Exprs& j) {
                const Expr to = circular ? floor_mod(place, Expr(n)) : place;
                return store(out[0], concat(concat(i, {to}), j), news(concat(concat(i, {Expr(row)}), j)));
              },
              "j");
          return let(first, circular || !start ? from : apply(Op::Index, {from, Expr(n + 1) - count}),
                     loop(row, count, slice));
        });
        return seq({copy, rows});
      });
  b.output(0, y[0]);
}

}  // namespace

OpFamily scatter_ops() {
  const std::vector<AttrSpec> attrs = {{"axis", int64_t(0)}, {"reduction", std::string("none")}};
  return {
      {"ScatterElements", 18, attrs, define_scatter_elements, "data indices updates count rows"},
      {"Scatter", 11, {{"axis", int64_t(0)}}, define_scatter_elements, "data indices updates", "scatter_elements"},
      {"ScatterND",
       18,
       {{"reduction", std::string("none")}},
       define_scatter_nd,
       "data indices updates count rows",
       "scatter_nd"},
      {"TensorScatter",
       24,
       {{"axis", int64_t(-2)}, {"mode", std::string("linear")}},
       define_tensor_scatter,
       "cache update write_indices count"},
  };
}

}  // namespace tc
