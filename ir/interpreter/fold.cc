#include "ir/interpreter.h"
#include "ir/interpreter/scalar.h"

namespace tc {

// What x86-64 gives NumPy and ONNX Runtime, and tc_scalar.h on every machine: the smallest i32 (i64) for what does not
// fit; narrower types take the low bits of the i32, u32 those of the i64; u64 wraps below zero.
int64_t float_to_int(DType t, double v) {
  if (t == DType::Bool) return v != 0;  // NaN is true
  const bool fits64 = v >= -9223372036854775808.0 && v < 9223372036854775808.0;
  const int64_t wide = fits64 ? int64_t(v) : INT64_MIN;
  if (t == DType::U64) return v >= 9223372036854775808.0 && v < 18446744073709551616.0 ? int64_t(uint64_t(v)) : wide;
  if (t == DType::I64 || t == DType::U32 || info(t).bits < 8) return wrap_int(t, wide);
  const int64_t narrow = v > -2147483649.0 && v < 2147483648.0 ? int64_t(v) : INT32_MIN;
  return wrap_int(t, narrow);
}

}  // namespace tc
