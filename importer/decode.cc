#include "importer/decode.h"

#include <bit>

namespace tc::importer {

static_assert(std::endian::native == std::endian::little, "raw data is read as it lies in the file");

int packed_bits(DType t) {
  switch (t) {
    case DType::U4:
    case DType::I4:
    case DType::F4E2M1: return 4;
    case DType::U2:
    case DType::I2: return 2;
    default: return info(t).bytes * 8;
  }
}

int64_t packed_bytes(DType t, int64_t elements) {
  const int bits = packed_bits(t);
  if (bits >= 8) return checked_mul(elements, bits / 8);
  const int per_byte = 8 / bits;
  return elements / per_byte + (elements % per_byte != 0);
}

namespace {

/// One element a byte from those of few bits that lie `per_byte` in each; signed types are sign-extended.
void unpack(DType t, const uint8_t* packed, int per_byte, int64_t n, uint8_t* out) {
  const int bits = packed_bits(t);
  const bool is_signed = is_signed_int(t);
  for (int64_t i = 0; i < n; ++i) {
    const int v = packed[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1);
    out[i] = uint8_t(is_signed && v >> (bits - 1) ? v - (1 << bits) : v);
  }
}

/// Raw data at its destination becomes elements: booleans are 0 or 1, sub-byte types one element a byte.
void finish_raw(DType t, std::vector<uint8_t>& packed, MutableTensor& m) {
  const int64_t n = m.data.size();
  if (packed_bits(t) < 8) unpack(t, packed.data(), 8 / packed_bits(t), n, m.bytes);
  if (t == DType::Bool)
    for (int64_t i = 0; i < n; ++i) m.bytes[i] = m.bytes[i] != 0;
}

template <class To, class Field>
void copy_values(const Field& field, MutableTensor& m) {
  To* to = m.as<To>();
  for (int i = 0; i < field.size(); ++i) to[i] = static_cast<To>(field[i]);
}

}  // namespace

bool raw_constant(DType t, const Dims& dims, const ReadBytes& read, Constant& out) {
  MutableTensor m = new_tensor(t, dims);
  const int64_t bytes = packed_bytes(t, m.data.size());
  std::vector<uint8_t> packed;
  uint8_t* to = m.bytes;
  if (packed_bits(t) < 8) {
    packed.resize(size_t(bytes));
    to = packed.data();
  }
  if (bytes > 0 && !read(to, size_t(bytes))) return false;
  finish_raw(t, packed, m);
  out = std::make_shared<TensorData>(std::move(m.data));
  return true;
}

TypedField typed_field(const onnx::TensorProto& t, DType type, int64_t n) {
  switch (type) {
    case DType::F32: return {t.float_data_size(), n};
    case DType::C64: return {t.float_data_size(), checked_mul(n, 2)};
    case DType::F64: return {t.double_data_size(), n};
    case DType::C128: return {t.double_data_size(), checked_mul(n, 2)};
    case DType::I64: return {t.int64_data_size(), n};
    case DType::U32:
    case DType::U64: return {t.uint64_data_size(), n};
    case DType::String: return {t.string_data_size(), n};
    default: break;
  }
  if (packed_bits(type) < 8) return {t.int32_data_size(), packed_bytes(type, n), t.int32_data_size() == n};
  return {t.int32_data_size(), n};
}

int64_t typed_values(const onnx::TensorProto& t) {
  return int64_t(t.float_data_size()) + t.int32_data_size() + t.string_data_size() + t.int64_data_size() +
         t.double_data_size() + t.uint64_data_size();
}

Constant typed_constant(const onnx::TensorProto& t, DType type, const Dims& dims) {
  MutableTensor m = new_tensor(type, dims);
  const int64_t n = m.data.size();
  switch (type) {
    case DType::String: m.data.strings.assign(t.string_data().begin(), t.string_data().end()); break;
    case DType::F32:
    case DType::C64: copy_values<float>(t.float_data(), m); break;
    case DType::F64:
    case DType::C128: copy_values<double>(t.double_data(), m); break;
    case DType::I64: copy_values<int64_t>(t.int64_data(), m); break;
    case DType::U64: copy_values<uint64_t>(t.uint64_data(), m); break;
    case DType::U32: copy_values<uint32_t>(t.uint64_data(), m); break;
    case DType::I32: copy_values<int32_t>(t.int32_data(), m); break;
    case DType::Bool:
      for (int64_t i = 0; i < n; ++i) m.bytes[i] = t.int32_data(int(i)) != 0;
      break;
    default:
      if (info(type).bytes == 2) {
        copy_values<uint16_t>(t.int32_data(), m);
      } else if (packed_bits(type) == 8) {
        copy_values<uint8_t>(t.int32_data(), m);
      } else {  // one element alone may be meant either way: it is in the lowest bits
        std::vector<uint8_t> packed(t.int32_data().begin(), t.int32_data().end());
        unpack(type, packed.data(), t.int32_data_size() == n ? 1 : 8 / packed_bits(type), n, m.bytes);
      }
  }
  return std::make_shared<TensorData>(std::move(m.data));
}

std::string element_type_name(int32_t t) {
  const DType known = element_type(t);
  if (known != DType::Undefined) return std::string(info(known).onnx_name);
  if (t == onnx::TensorProto::FLOAT6E2M3) return "float6e2m3";
  if (t == onnx::TensorProto::FLOAT6E3M2) return "float6e3m2";
  return to_text(int64_t(t));
}

DType element_type(int32_t t) { return t >= int(DType::F32) && t <= int(DType::I2) ? DType(t) : DType::Undefined; }

}  // namespace tc::importer
