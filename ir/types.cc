#include "ir/types.h"

#include <algorithm>
#include <cstring>

#include "ir/open_size.h"
#include "support/sum_text.h"
#include "support/text.h"

namespace tc {

Dim sum_of(std::vector<DimTerm> terms, int64_t addend) {
  Dim d(addend);
  d.least = addend;
  std::vector<std::pair<std::string, int64_t>> parts;
  for (const DimTerm& t : terms) {
    const int64_t a = checked_mul(t.factor, t.least), b = checked_mul(t.factor, t.most);
    d.least = checked_add(d.least, std::min(a, b));
    d.value = checked_add(d.value, std::max(a, b));
    parts.emplace_back(t.symbol, t.factor);
  }
  d.symbol = sum_text(parts, addend);
  d.least = std::max<int64_t>(0, d.least);  // a run with fewer is refused
  d.value = std::max<int64_t>(0, d.value);
  d.terms = std::move(terms);
  d.addend = addend;
  return d;
}

bool is_static(const Shape& s) {
  for (const Dim& d : s)
    if (!d.is_const()) return false;
  return true;
}

Dims static_dims(const Shape& s) {
  Dims d;
  for (const Dim& x : s) {
    check(x.is_const(), "a size is not constant");
    d.push_back(x.value);
  }
  return d;
}

Shape to_shape(const Dims& d) { return Shape(d.begin(), d.end()); }

int64_t num_elements(const Dims& d) {
  int64_t n = 1;
  for (const int64_t x : d)
    if (x == 0) return 0;
  for (const int64_t x : d) n = checked_mul(n, x);
  return n;
}

bool has_no_elements(const Dims& d) { return std::find(d.begin(), d.end(), 0) != d.end(); }
bool has_one_element(const Dims& d) {
  return std::all_of(d.begin(), d.end(), [](int64_t n) { return n == 1; });
}

namespace {

void drop_common_axes(Dims& a, Dims& b) {
  for (auto it = a.begin(); it != a.end();) {
    const auto twin = *it == 0 ? b.end() : std::find(b.begin(), b.end(), *it);
    if (twin == b.end()) {
      ++it;
    } else {
      b.erase(twin);
      it = a.erase(it);
    }
  }
}

/// As many, or INT64_MAX.
int64_t saturated_elements(const Dims& d) {
  if (has_no_elements(d)) return 0;
  int64_t n = 1;
  for (const int64_t x : d)
    if (__builtin_mul_overflow(n, x, &n)) return INT64_MAX;
  return n;
}

}  // namespace

std::pair<int64_t, int64_t> elements_in_proportion(Dims a, Dims b) {
  drop_common_axes(a, b);
  return {num_elements(a), num_elements(b)};
}

std::strong_ordering compare_elements(Dims a, Dims b) {
  drop_common_axes(a, b);
  const int64_t m = saturated_elements(a), n = saturated_elements(b);
  return m == INT64_MAX && n == INT64_MAX ? num_elements(a) <=> num_elements(b) : m <=> n;
}

std::string to_text(const Shape& s) {
  if (s.empty()) return "scalar";
  std::vector<std::string> parts;
  for (const Dim& d : s)
    parts.push_back(!d.symbol.empty() ? printable(d.symbol) : d.value < 0 ? "?" : axis_text(d.value));
  return join(parts, "x");
}

bool ValueType::operator==(const ValueType& o) const {
  if (kind != o.kind || dtype != o.dtype || shape != o.shape || has_rank != o.has_rank) return false;
  if (!element || !o.element) return !element && !o.element;
  return *element == *o.element;
}

std::string to_text(const ValueType& t) {
  switch (t.kind) {
    case ValueType::Kind::None: return "?";
    case ValueType::Kind::Sequence: return "seq(" + (t.element ? to_text(*t.element) : "?") + ")";
    case ValueType::Kind::Optional: return "optional(" + (t.element ? to_text(*t.element) : "?") + ")";
    case ValueType::Kind::Tensor: break;
  }
  std::string s = std::string(info(t.dtype).name) + "[";
  if (!t.has_rank) return s + "...]";
  for (size_t i = 0; i < t.shape.size(); i++) s += (i > 0 ? "," : "") + to_text(Shape{t.shape[i]});
  return s + "]";
}

double TensorData::as_double(int64_t i) const {
  switch (dtype) {
    case DType::F32: return double(as<float>()[i]);
    case DType::F64: return as<double>()[i];
    case DType::F16:
    case DType::BF16: return narrow_float_to_double(dtype, as<uint16_t>()[i]);
    default: break;
  }
  if (is_narrow_float(dtype)) return narrow_float_to_double(dtype, as<uint8_t>()[i]);
  if (dtype == DType::U64) return double(as<uint64_t>()[i]);
  return double(as_int(i));
}

int64_t TensorData::as_int(int64_t i) const {
  switch (dtype) {
    case DType::I64:
    case DType::U64: return as<int64_t>()[i];
    case DType::I32: return as<int32_t>()[i];
    case DType::U32: return as<uint32_t>()[i];
    case DType::I16: return as<int16_t>()[i];
    case DType::U16: return as<uint16_t>()[i];
    case DType::I8:
    case DType::I4:
    case DType::I2: return as<int8_t>()[i];
    case DType::U8:
    case DType::U4:
    case DType::U2:
    case DType::Bool: return as<uint8_t>()[i];
    default: break;
  }
  check(is_float(dtype), "as_int of a tensor without numbers");
  return static_cast<int64_t>(as_double(i));
}

std::vector<int64_t> TensorData::as_ints() const {
  std::vector<int64_t> v;
  for (int64_t i = 0; i < size(); i++) v.push_back(as_int(i));
  return v;
}

MutableTensor new_tensor(DType t, Dims dims) {
  if (t == DType::String) {
    MutableTensor m;
    m.data.strings.resize(size_t(num_elements(dims)));
    m.data.dtype = t;
    m.data.dims = std::move(dims);
    return m;
  }
  const int64_t n = checked_mul(num_elements(dims), info(t).bytes);
  std::shared_ptr<uint8_t> p(new uint8_t[size_t(n) + 64](), std::default_delete<uint8_t[]>());
  MutableTensor m;
  m.bytes = p.get();
  m.data = TensorData{t, std::move(dims), p, size_t(n), {}};
  return m;
}

Constant make_constant(DType t, Dims dims, const void* bytes) {
  check(t != DType::String, "make_constant: strings have no bytes");
  MutableTensor m = new_tensor(t, std::move(dims));
  if (m.data.num_bytes > 0) std::memcpy(m.bytes, bytes, m.data.num_bytes);
  return std::make_shared<TensorData>(std::move(m.data));
}

Constant int64_constant(const std::vector<int64_t>& v) {
  return make_constant(DType::I64, {int64_t(v.size())}, v.data());
}

Constant string_constant(Dims dims, std::vector<std::string> v) {
  check(num_elements(dims) == int64_t(v.size()), "string_constant: one string per element");
  MutableTensor m = new_tensor(DType::String, std::move(dims));
  m.data.strings = std::move(v);
  return std::make_shared<TensorData>(std::move(m.data));
}

Constant scalar_constant(DType t, double v) {
  check(t != DType::String, "scalar_constant: a number");
  MutableTensor m = new_tensor(t, {});
  switch (t) {
    case DType::F32: *m.as<float>() = float(v); break;
    case DType::F64: *m.as<double>() = v; break;
    case DType::F16:
    case DType::BF16: *m.as<uint16_t>() = double_to_narrow_float(t, v); break;
    default:
      if (is_narrow_float(t)) {
        *m.as<uint8_t>() = uint8_t(double_to_narrow_float(t, v));
      } else {
        const auto i = static_cast<int64_t>(v);
        std::memcpy(m.bytes, &i, size_t(info(t).bytes));  // little endian hosts
      }
  }
  return std::make_shared<TensorData>(std::move(m.data));
}

}  // namespace tc
