// Elements of a TensorProto in the layout of our constants. Internal to importer/.
#pragma once
#include "importer/tensors.h"

namespace tc::importer {

/// Bits that an element takes in raw data: sub-byte types are packed, the first element in the low bits.
int packed_bits(DType t);
/// Bytes of raw data for that many elements; throws Error where they do not fit in 64 bits.
int64_t packed_bytes(DType t, int64_t elements);

/// Delivers raw bytes to a destination; false if they cannot be read.
using ReadBytes = std::function<bool(uint8_t* to, size_t bytes)>;
/// Elements from the raw bytes that `read` delivers: read once, to where they stay.
bool raw_constant(DType t, const Dims& dims, const ReadBytes& read, Constant& out);

/// How many values the typed field of `t` holds, and how many it must hold for n elements.
struct TypedField {
  int64_t given = 0, needed = 0;
  bool also_unpacked = false;  // sub-byte types: the text syntax gives one value an element
};
TypedField typed_field(const onnx::TensorProto& t, DType type, int64_t n);
/// Values in all typed fields together, whatever the element type.
int64_t typed_values(const onnx::TensorProto& t);
/// Elements from the typed field, whose length has been checked.
Constant typed_constant(const onnx::TensorProto& t, DType type, const Dims& dims);

}  // namespace tc::importer
