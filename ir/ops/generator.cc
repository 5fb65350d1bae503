// Operators whose elements follow from positions: ranges, fills, shapes, masks. Windows and Fourier transforms stand in
// signal.cc, random numbers in random.cc.
#include <algorithm>
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// Element k of a constant as a literal.
Expr literal(const TensorData& c, int64_t k) {
  return is_float(c.dtype) ? make_float(c.dtype, c.as_double(k)) : make_int(c.dtype, c.as_int(k));
}

Constant known_number(OpBuilder& b, int i) {
  if (!b.has(i)) b.reject("input " + to_text(int64_t(i)) + " is missing", i);
  const Constant c = b.constant(i);
  if (!c) b.unsupported("this input must be known when the model is compiled: the result's size depends on it", i);
  if (c->size() != 1) b.reject("a single number is needed", i);
  return c;
}

/// ceil((limit - start) / delta), at least 0. Exact for integers.
int64_t range_length(OpBuilder& b, const TensorData& start, const TensorData& limit, const TensorData& delta) {
  if (is_float(start.dtype)) {
    const double step = delta.as_double(0), n = std::ceil((limit.as_double(0) - start.as_double(0)) / step);
    if (step == 0 || !std::isfinite(n)) b.reject("start, limit and delta give no finite range");
    if (n >= 9.0e18) throw Error("TC0501", ExitCode::Limit, "a size does not fit in 64 bits");
    return n > 0 ? int64_t(n) : 0;
  }
  const int64_t step = delta.as_int(0), s = start.as_int(0), e = limit.as_int(0);
  if (step == 0) b.reject("delta is 0", 2);
  if (step > 0 ? s >= e : s <= e) return 0;
  const uint64_t distance = step > 0 ? uint64_t(e) - uint64_t(s) : uint64_t(s) - uint64_t(e);
  const uint64_t width = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
  const uint64_t n = (distance - 1) / width + 1;
  if (n > uint64_t(INT64_MAX)) throw Error("TC0501", ExitCode::Limit, "a size does not fit in 64 bits");
  return int64_t(n);
}

/// Bounds that are known only at run time: the length is the declared one.
void run_time_range(OpBuilder& b) {
  const Dims dims = b.declared_dims(0, 1);
  if (dims.size() != 1) b.reject("the result has one axis");
  const Tensor start = b.in(0), delta = b.in(2);
  const DType t = start.dtype(), c = compute_type(t);
  if (delta.dtype() != t || (!is_float(t) && !is_int(t))) b.reject("the inputs must be numbers of one type");
  auto number = [](const Tensor& x) { return widen(x(Exprs(size_t(x.rank()), Expr(0)))); };
  b.output(0, b.compute("range", t, dims,
                        [&](const Exprs& i) { return cast(t, number(start) + cast(c, i[0]) * number(delta)); }));
}

void define_range(OpBuilder& b) {
  if (!b.known(0) || !b.known(1) || !b.known(2)) return run_time_range(b);
  const Constant start = known_number(b, 0), limit = known_number(b, 1), delta = known_number(b, 2);
  const DType t = start->dtype;
  if (limit->dtype != t || delta->dtype != t || (!is_float(t) && !is_int(t)))
    b.reject("the inputs must be numbers of one type");
  const int64_t n = range_length(b, *start, *limit, *delta);
  b.output(0, b.compute("range", t, {n}, [&](const Exprs& i) {
    const DType c = compute_type(t);
    return cast(t, widen(literal(*start, 0)) + cast(c, i[0]) * widen(literal(*delta, 0)));
  }));
}

void define_constant_of_shape(OpBuilder& b) {
  Expr value = make_float(DType::F32, 0);
  if (auto it = b.node().attrs.find("value"); it != b.node().attrs.end() && it->second.index() != 0) {
    const Constant* c = std::get_if<Constant>(&it->second);
    if (!c || !*c || (*c)->size() != 1) b.reject("attribute value must be a tensor of one element");
    if ((*c)->dtype == DType::String || is_complex((*c)->dtype))
      b.unsupported("a fill of type " + std::string(info((*c)->dtype).onnx_name) + " cannot be compiled");
    value = literal(**c, 0);
  }
  const Dims dims = b.known(0) ? Dims(b.const_ints(0)) : b.declared_dims(0, 0);
  b.output(0, b.compute("constant_of_shape", value->dtype, dims, [&](const Exprs&) { return value; }));
}

DType dtype_attr(OpBuilder& b, const std::string& name, DType otherwise) {
  if (!b.has_attr(name)) return otherwise;
  const int64_t t = b.attr_int(name);
  const bool known = t > 0 && t <= int64_t(DType::I2);
  if (!known || (!is_float(DType(t)) && !is_int(DType(t)) && DType(t) != DType::Bool))
    b.reject("attribute " + name + " names no numeric type");
  return static_cast<DType>(t);
}

void define_eye_like(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (x.rank() != 2) b.reject("a matrix is needed", 0);
  const DType t = dtype_attr(b, "dtype", x.dtype());
  const int64_t k = b.attr_int("k");
  b.output(0, b.compute("eye_like", t, x.dims(),
                        [&](const Exprs& i) { return select(eq(i[1] - i[0], Expr(k)), make_const(t, 1), zero(t)); }));
}

/// values = {off, on}; indices count from the end when negative, and hit nothing outside.
void define_one_hot(OpBuilder& b) {
  const Tensor indices = b.in(0), values = b.in(2);
  if (values.dims() != Dims{2}) b.reject("two values are needed, off and on", 2);
  const int axis = b.axis(b.attr_int("axis"), indices.rank() + 1);
  int64_t depth = 0;
  if (b.known(1)) {
    const Constant known = known_number(b, 1);
    depth = is_float(known->dtype) ? int64_t(known->as_double(0)) : known->as_int(0);
  } else {
    const Dims declared = b.declared_dims(0, 1);
    if (int(declared.size()) != indices.rank() + 1) b.reject("the declared shape does not fit the indices", 1);
    depth = declared[size_t(axis)];
  }
  if (depth < 0) b.reject("the depth is negative", 1);
  Dims dims = indices.dims();
  dims.insert(dims.begin() + axis, depth);
  b.output(0, b.compute("one_hot", values.dtype(), dims, [&](const Exprs& i) {
    const Expr index = cast(DType::I64, indices(remove_axis(i, axis))), at = i[size_t(axis)];
    return select(eq(index, at) || eq(index + Expr(depth), at), values({1}), values({0}));
  }));
}

void define_trilu(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (x.rank() < 2) b.reject("at least two axes are needed", 0);
  Expr k = 0;
  if (b.has(1)) {
    const Tensor t = b.in(1);
    if (!has_one_element(t.dims()) || !is_int(t.dtype())) b.reject("k must be one integer", 1);
    k = b.constant(1) ? Expr(b.const_int(1)) : cast(DType::I64, t(Exprs(size_t(t.rank()), Expr(0))));
  }
  const bool upper = b.attr_int("upper") != 0;
  b.output(0, b.compute("trilu", x.dtype(), x.dims(), [&](const Exprs& i) {
    const Expr diagonal = i[i.size() - 1] - i[i.size() - 2];
    return select(upper ? diagonal >= k : diagonal <= k, x(i), zero(x.dtype()));
  }));
}

/// The sizes of the operand, whatever its element type.
Dims operand_dims(OpBuilder& b) {
  if (!b.has(0)) b.reject("input 0 is missing", 0);
  const ValueType& t = b.node().inputs[0]->type;
  if (!t.is_tensor()) b.reject("this input must be a tensor, not a " + to_text(t), 0);
  if (!t.is_static_tensor()) b.unsupported("the sizes of this input are not known: " + to_text(t), 0);
  return static_dims(t.shape);
}

void define_shape(OpBuilder& b) {
  const Dims d = operand_dims(b);
  const auto rank = int64_t(d.size());
  auto border = [&](int64_t p) { return std::clamp<int64_t>(p < 0 ? p + rank : p, 0, rank); };
  const int64_t start = border(b.attr_int("start")), end = border(b.attr_int("end", rank));
  b.output(0, b.compute("shape", DType::I64, {std::max<int64_t>(0, end - start)}, [&](const Exprs& i) {
    Expr e = end > start ? Expr(d[size_t(end - 1)]) : Expr(0);
    for (int64_t k = end - 1; k-- > start;) e = select(eq(i[0], Expr(k - start)), Expr(d[size_t(k)]), e);
    return e;
  }));
}

void define_size(OpBuilder& b) {
  const int64_t n = num_elements(operand_dims(b));
  b.output(0, b.compute("size", DType::I64, {}, [&](const Exprs&) { return Expr(n); }));
}

}  // namespace

OpFamily generator_ops() {
  OpFamily rows = {
      {"Range", 27, {{"stash_type", int64_t(1)}}, define_range, "start limit delta"},
      {"ConstantOfShape", 25, {{"value", {}}}, define_constant_of_shape, "shape"},
      marked(OpTrait::PlacesFromFront, {"EyeLike", 22, {{"dtype", {}}, {"k", int64_t(0)}}, define_eye_like}),
      {"OneHot", 28, {{"axis", int64_t(-1)}}, define_one_hot, "indices depth values"},
      marked(OpTrait::PlacesFromFront, {"Trilu", 14, {{"upper", int64_t(1)}}, define_trilu, "x k"}),
      {"Shape", 25, {{"start", int64_t(0)}, {"end", {}}}, define_shape},
      {"Size", 25, {}, define_size},
  };
  for (OpFamily part : {signal_ops(), random_ops()})
    for (OpRow& row : part) rows.push_back(std::move(row));
  return rows;
}

}  // namespace tc
