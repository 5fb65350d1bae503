// Element types. The numbering is ONNX's TensorProto.DataType.
#pragma once
#include <cstdint>
#include <string_view>

namespace tc {

// clang-format off
enum class DType : uint8_t {
  Undefined = 0, F32 = 1, U8 = 2, I8 = 3, U16 = 4, I16 = 5, I32 = 6, I64 = 7, String = 8, Bool = 9, F16 = 10, F64 = 11,
  U32 = 12, U64 = 13, C64 = 14, C128 = 15, BF16 = 16, F8E4M3FN = 17, F8E4M3FNUZ = 18, F8E5M2 = 19, F8E5M2FNUZ = 20,
  U4 = 21, I4 = 22, F4E2M1 = 23, F8E8M0 = 24, U2 = 25, I2 = 26,
};
// clang-format on

/// Facts of one type. In memory every element takes `bytes` bytes; sub-byte types take one byte an element.
struct DTypeInfo {
  std::string_view name;       // "f32", in IR text and kernel names
  std::string_view onnx_name;  // "float", in messages
  std::string_view c_type;     // storage type in emitted C: "float", "uint16_t" (f16), "uint8_t" (f8, bool)
  int bytes;                   // of a string: room for its view, a pointer and a size; its text lies elsewhere
  int bits;                    // significant bits of an integer, width of a float
  bool is_float, is_signed_int, is_unsigned_int;
};
const DTypeInfo& info(DType t);

inline bool is_float(DType t) { return info(t).is_float; }
inline bool is_int(DType t) { return info(t).is_signed_int || info(t).is_unsigned_int; }
inline bool is_signed_int(DType t) { return info(t).is_signed_int; }
/// f16 or bf16.
inline bool is_half(DType t) { return t == DType::F16 || t == DType::BF16; }
/// Floats that are stored narrow and computed as f32: f16, bf16, f8*, f4.
inline bool is_narrow_float(DType t) { return is_float(t) && t != DType::F32 && t != DType::F64; }
inline bool is_complex(DType t) { return t == DType::C64 || t == DType::C128; }

/// A float widened to double: exact for every narrow type. `bits` holds the storage bits.
double narrow_float_to_double(DType t, uint16_t bits);
/// Round to nearest even; `saturate` decides what overflow of an f8 type gives, as ONNX's Cast does.
uint16_t double_to_narrow_float(DType t, double v, bool saturate = true);

}  // namespace tc
