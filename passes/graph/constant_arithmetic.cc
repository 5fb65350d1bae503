#include "passes/graph/constant_arithmetic.h"

#include <algorithm>

namespace tc {

namespace {

/// NumPy's broadcasting of two shapes; false where they do not fit.
bool broadcast(const Dims& a, const Dims& b, Dims& both) {
  both.resize(std::max(a.size(), b.size()));
  for (size_t k = 0; k < both.size(); ++k) {
    auto size = [&](const Dims& d) { return k < d.size() ? d[d.size() - 1 - k] : 1; };
    const int64_t m = size(a), n = size(b);
    if (m != n && m != 1 && n != 1) return false;
    both[both.size() - 1 - k] = m == 1 ? n : m;
  }
  return true;
}

/// How far apart the elements of `of` lie along each axis of `shape`: 0 where one stands for all.
Dims strides_in(const Dims& of, const Dims& shape) {
  Dims strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t k = 0; k < of.size(); ++k) {
    const size_t at = of.size() - 1 - k;
    if (of[at] != 1) strides[shape.size() - 1 - k] = stride;
    stride *= of[at];
  }
  return strides;
}

/// Calls f(i, j) for each element of `shape` in its order, with what it reads of two tensors of these strides.
template <class F>
void for_each(const Dims& shape, const Dims& first, const Dims& second, const F& f) {
  Dims at(shape.size(), 0);
  int64_t i = 0, j = 0;
  for (int64_t left = num_elements(shape); left > 0; --left) {
    f(i, j);
    for (size_t k = shape.size(); k-- > 0;) {
      i += first[k], j += second[k];
      if (++at[k] < shape[k]) break;
      i -= shape[k] * first[k], j -= shape[k] * second[k];
      at[k] = 0;
    }
  }
}

template <class T, class F>
Constant pointwise(const TensorData& a, const TensorData& b, const F& f) {
  Dims shape;
  if (!broadcast(a.dims, b.dims, shape)) return nullptr;
  MutableTensor y = new_tensor(a.dtype, shape);
  T* out = y.as<T>();
  for_each(shape, strides_in(a.dims, shape), strides_in(b.dims, shape),
           [&](int64_t i, int64_t j) { *out++ = f(a.as<T>()[i], b.as<T>()[j]); });
  return std::make_shared<const TensorData>(std::move(y.data));
}

template <class T>
Constant pointwise(std::string_view op, const TensorData& a, const TensorData& b) {
  if (op == "Add") return pointwise<T>(a, b, [](T x, T y) { return x + y; });
  if (op == "Sub") return pointwise<T>(a, b, [](T x, T y) { return x - y; });
  if (op == "Mul") return pointwise<T>(a, b, [](T x, T y) { return x * y; });
  if (op == "Div") return pointwise<T>(a, b, [](T x, T y) { return x / y; });
  return nullptr;
}

template <class From, class To>
Constant converted(const TensorData& x, DType to) {
  MutableTensor y = new_tensor(to, x.dims);
  std::transform(x.as<From>(), x.as<From>() + x.size(), y.as<To>(), [](From v) { return To(v); });
  return std::make_shared<const TensorData>(std::move(y.data));
}

Constant expanded(const Constant& x, const Dims& dims) {
  if (x->size() != 1 || dims.size() < x->dims.size()) return nullptr;
  MutableTensor y = new_tensor(x->dtype, dims);
  const size_t bytes = x->num_bytes;
  for (int64_t i = 0; i < y.data.size(); ++i) std::copy_n(x->bytes.get(), bytes, y.bytes + size_t(i) * bytes);
  return std::make_shared<const TensorData>(std::move(y.data));
}

/// The sums over `axes`, which go; in the order of the elements.
Constant sums(const TensorData& x, const std::vector<int64_t>& axes) {
  Dims kept = x.dims, dims;
  for (int64_t a : axes) {
    if (a < 0 || a >= int64_t(kept.size())) return nullptr;
    kept[size_t(a)] = 1;
  }
  for (size_t k = 0; k < kept.size(); ++k)
    if (std::find(axes.begin(), axes.end(), int64_t(k)) == axes.end()) dims.push_back(kept[k]);
  MutableTensor y = new_tensor(x.dtype, dims);
  for_each(x.dims, strides_in(x.dims, x.dims), strides_in(kept, x.dims),
           [&](int64_t i, int64_t j) { y.as<double>()[j] += x.as<double>()[i]; });
  return std::make_shared<const TensorData>(std::move(y.data));
}

int64_t int_attr(const Attrs& attrs, const std::string& name, int64_t otherwise) {
  const auto found = attrs.find(name);
  const auto* v = found == attrs.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return v ? *v : otherwise;
}

bool is_wide_float(DType t) { return t == DType::F32 || t == DType::F64; }

Constant of_one(std::string_view op, const Constant& x, const Attrs& attrs) {
  const DType from = x->dtype;
  if (op == "Reciprocal") {
    if (from == DType::F32) return pointwise<float>("Div", *scalar_constant(from, 1), *x);
    return pointwise<double>("Div", *scalar_constant(from, 1), *x);
  }
  if (op != "Cast") return nullptr;
  const DType to = DType(int_attr(attrs, "to", 0));
  if (from == DType::F32 && to == DType::F64) return converted<float, double>(*x, to);
  if (from == DType::F64 && to == DType::F32) return converted<double, float>(*x, to);
  return nullptr;
}

/// `sizes`: a constant list of integers, or null.
Constant of_sizes(std::string_view op, const Constant& x, const TensorData& sizes, const Attrs& attrs) {
  if (sizes.dims.size() != 1) return nullptr;
  const std::vector<int64_t> list = sizes.as_ints();
  if (op == "ReduceSum" && x->dtype == DType::F64 && int_attr(attrs, "keepdims", 1) == 0 && !list.empty())
    return sums(*x, list);
  if (std::any_of(list.begin(), list.end(), [](int64_t d) { return d <= 0; })) return nullptr;
  if (op == "Reshape" && num_elements(list) == x->size()) return in_shape(x, list);
  return op == "Expand" ? expanded(x, list) : nullptr;
}

}  // namespace

Constant in_shape(const Constant& c, Dims dims) {
  TensorData view = *c;
  view.dims = std::move(dims);
  return std::make_shared<const TensorData>(std::move(view));
}

Constant constant_arithmetic(std::string_view op, const std::vector<Constant>& operands, const Attrs& attrs) {
  if (operands.empty() || operands.size() > 2) return nullptr;
  for (const Constant& c : operands)
    if (!c) return nullptr;
  const Constant& x = operands[0];
  if (!is_wide_float(x->dtype)) return nullptr;
  if (operands.size() == 1) return of_one(op, x, attrs);
  if (operands[1]->dtype == DType::I64) return of_sizes(op, x, *operands[1], attrs);
  if (operands[1]->dtype != x->dtype) return nullptr;
  return x->dtype == DType::F32 ? pointwise<float>(op, *x, *operands[1]) : pointwise<double>(op, *x, *operands[1]);
}

}  // namespace tc
