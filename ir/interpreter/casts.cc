// Conversions between register classes, with rounding to narrow floats.
#include "ir/interpreter/elements.h"
#include "ir/interpreter/machine.h"
#include "ir/interpreter/scalar.h"

namespace tc::interp {
namespace {

/// By way of single precision, as the emitted text (and ONNX Runtime) round doubles and whole numbers.
float round_to(DType t, float v, bool saturate) {
  return float(narrow_float_to_double(t, double_to_narrow_float(t, double(v), saturate)));
}

template <class From, class To, class F>
void each(Machine& m, const Instr& i, F f) {
  int n = m.count(i);
  const From* a = m.reg<From>(i.a);
  To* __restrict d = m.reg<To>(i.dst);
  for (int k = 0; k < n; ++k) d[k] = f(a[k]);
}

template <class From>
void to_f32(Machine& m, const Instr& i) {
  each<From, float>(m, i, [](From v) { return float(v); });
}
template <class From>
void to_f64(Machine& m, const Instr& i) {
  each<From, double>(m, i, [](From v) { return double(v); });
}
void f32_to_f16(Machine& m, const Instr& i) {
  each<float, float>(m, i, [](float v) { return half_to_float(float_to_half(v)); });
}
void f32_to_bf16(Machine& m, const Instr& i) {
  each<float, float>(m, i, [](float v) { return bfloat_to_float(float_to_bfloat(v)); });
}
template <class From>
void to_narrow(Machine& m, const Instr& i) {
  DType t = DType(i.aux & 255);
  bool saturate = i.aux >> 8;
  each<From, float>(m, i, [=](From v) { return round_to(t, float(v), saturate); });
}
template <class From>
void to_int(Machine& m, const Instr& i) {
  DType t = DType(i.aux & 255);
  each<From, int64_t>(m, i, [=](From v) {
    if constexpr (scalar::kFloat<From>)
      return float_to_int(t, double(v));
    else
      return wrap_int(t, int64_t(v));
  });
}

template <class From>
Fn cast_from(DType from, DType to) {
  if (to == DType::F32) return &to_f32<From>;
  if (to == DType::F64) return &to_f64<From>;
  if (!is_float(to)) return &to_int<From>;
  if constexpr (std::is_same_v<From, float>) {
    bool exact = from == to;
    if (exact) return &to_f32<float>;
    if (to == DType::F16) return &f32_to_f16;
    if (to == DType::BF16) return &f32_to_bf16;
  }
  return &to_narrow<From>;
}

}  // namespace

Fn cast_fn(DType from, DType to) {
  switch (class_of(from)) {
    case Class::F: return cast_from<float>(from, to);
    case Class::D: return cast_from<double>(from, to);
    case Class::I: return cast_from<int64_t>(from, to);
    case Class::U: return cast_from<uint64_t>(from, to);
  }
  return nullptr;
}

// The bits of a number as its type lies in memory, read back as another type of the same size.
void bitcast_op(Machine& m, const Instr& i) {
  DType from = DType(i.b), to = DType(i.c);
  int n = m.count(i);
  with_element(from, [&]<class A>() -> int {
    return with_element(to, [&]<class B>() -> int {
      if constexpr (sizeof(typename A::S) == sizeof(typename B::S)) {
        for (int k = 0; k < n; ++k) {
          auto bits = A::put(m.reg<typename A::R>(i.a)[i.a_step ? k : 0]);
          m.reg<typename B::R>(i.dst)[k] = B::get(std::bit_cast<typename B::S>(bits));
        }
      } else {
        check(false, "bitcast between types of different sizes");
      }
      return 0;
    });
  });
}

}  // namespace tc::interp
