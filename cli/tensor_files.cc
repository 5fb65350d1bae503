#include "cli/tensor_files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "cli/new_file.h"
#include "support/read_file.h"
#include "support/text.h"

namespace tc {
namespace {

std::string varint(uint64_t n) {
  std::string s;
  for (; n > 127; n >>= 7) s += char(n | 128);
  return s + char(n);
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& why = "") {
  throw Error("TC0601", ExitCode::Io, "cannot write " + printable(path) + why);
}

// A TensorProto: dims, data_type STRING, string_data.
void save_strings(const std::string& path, const TensorData& t) {
  std::ofstream f(path, std::ios::binary);
  for (const int64_t d : t.dims) f << '\x08' << varint(uint64_t(d));
  f << "\x10\x08";
  for (const std::string& s : t.strings) f << '\x32' << varint(s.size()) << s;
  if (!f) cannot_write(path);
}

/// Has NumPy a type of such numbers?
bool is_numpys(DType t) {
  const DTypeInfo& i = info(t);
  return t == DType::Bool || t == DType::F16 || !(is_narrow_float(t) || i.bits < 8);
}

// A TensorProto: dims, data_type, raw_data. Numbers of less than 8 bits share bytes, the first one lowest.
void save_raw(const std::string& path, const TensorData& t) {
  const int bits = info(t.dtype).bits, together = bits < 8 ? 8 / bits : 1;
  std::string raw(reinterpret_cast<const char*>(t.bytes.get()), t.num_bytes);
  if (together > 1) {
    const std::string each =
        std::exchange(raw, std::string((t.num_bytes + size_t(together) - 1) / size_t(together), '\0'));
    for (size_t k = 0; k < each.size(); k++)
      raw[k / size_t(together)] |= char((each[k] & ((1 << bits) - 1)) << int(k % size_t(together)) * bits);
  }
  std::ofstream f(path, std::ios::binary);
  for (const int64_t d : t.dims) f << '\x08' << varint(uint64_t(d));
  f << '\x10' << varint(uint64_t(t.dtype)) << '\x4a' << varint(raw.size()) << raw;
  if (!f) cannot_write(path);
}

// CRC-32 of ISO 3309, which zip archives have.
uint32_t crc32(const std::string& bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; bit++) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  uint32_t c = 0xffffffffu;
  for (const char ch : bytes) c = table[(c ^ uint8_t(ch)) & 255] ^ (c >> 8);
  return ~c;
}

std::string little_endian(uint64_t v, int bytes) {
  std::string s;
  for (int i = 0; i < bytes; i++) s += char(v >> (8 * i));
  return s;
}

// What a file's own header and its entry in the directory at the end have in common: stored, no date.
std::string zip_fields(const std::string& name, const std::string& bytes) {
  return little_endian(20, 2) + little_endian(0, 4) + little_endian(0, 2) + little_endian(33, 2) +
         little_endian(crc32(bytes), 4) + little_endian(bytes.size(), 4) + little_endian(bytes.size(), 4) +
         little_endian(name.size(), 2) + little_endian(0, 2);
}

}  // namespace

void save_tensor(const std::string& stem, const TensorData& t) {
  if (t.dtype == DType::String) return save_strings(stem + ".pb", t);
  if (!is_numpys(t.dtype)) return save_raw(stem + ".pb", t);
  const std::string path = stem + ".npy";
  const DTypeInfo& i = info(t.dtype);
  const char kind = t.dtype == DType::Bool ? 'b' : i.is_float ? 'f' : i.is_signed_int ? 'i' : 'u';
  std::string shape;
  for (const int64_t d : t.dims) shape += to_text(d) + ",";
  std::string head = std::string("{'descr': '") + (i.bytes == 1 ? "|" : "<") + kind + to_text(int64_t(i.bytes)) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((head.size() + 11) % 64 != 0) head += ' ';
  head += '\n';
  std::ofstream f(path, std::ios::binary);
  f << std::string("\x93NUMPY\x01\x00", 8) << char(head.size() & 255) << char(head.size() >> 8) << head;
  f.write(reinterpret_cast<const char*>(t.bytes.get()), std::streamsize(t.num_bytes));
  if (!f) cannot_write(path);
}

IoTensor in_sizes(IoTensor t, const std::map<int, int64_t>& sizes) {
  const auto size = [&](size_t k) {
    const auto it = sizes.find(int(k));
    return it == sizes.end() ? 0 : it->second;
  };
  for (const IoSize& s : t.sizes) t.dims[size_t(s.axis)] = std::max<int64_t>(0, s.sum.value(size));
  return t;
}

Constant filled_tensor(const IoTensor& t, FillMode mode, uint64_t seed) {
  MutableTensor m = new_tensor(t.dtype, t.dims);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x1234567u;
  const int64_t n = num_elements(t.dims);
  for (int64_t i = 0; i < n && mode != FillMode::Zeros; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double unit = double(state >> 11) / double(uint64_t(1) << 53);
    if (t.dtype == DType::String) {
      constexpr std::string_view kWords[] = {"a", "b", "c", "cat", "dog", "Red", "new york"};
      m.data.strings[size_t(i)] = mode == FillMode::Ones ? "1" : kWords[size_t(unit * 7)];
      continue;
    }
    const double v = mode == FillMode::Ones   ? 1
                     : is_float(t.dtype)      ? unit * 2 - 1
                     : t.dtype == DType::Bool ? (unit < 0.5 ? 0 : 1)
                                              : double(int64_t(unit * 2));
    const Constant one = scalar_constant(t.dtype, v);
    std::copy_n(one->bytes.get(), info(t.dtype).bytes, m.bytes + i * info(t.dtype).bytes);
  }
  return std::make_shared<TensorData>(std::move(m.data));
}

void save_npz(const std::string& path, const std::string& folder, const std::string& kind, size_t count) {
  NewFile(path, [&](std::ostream& out) {
    std::string directory;
    uint64_t at = 0;
    for (size_t k = 0; k < count; k++) {
      const std::string name = kind + "_" + to_text(int64_t(k)) + ".npy";
      const std::optional<std::string> read = try_read_file(folder + "/" + name);
      if (!read)
        cannot_write(path, ": NumPy has no type for " + kind + " " + to_text(int64_t(k)) + "; a folder takes it");
      const std::string &bytes = *read, fields = zip_fields(name, bytes);
      const std::string head = "PK\x03\x04" + fields + name;
      if (at + head.size() + bytes.size() > 0xffff0000u || count > 0xfff0)
        cannot_write(path, ": more than an archive of 4 GiB holds; a folder does");
      directory += "PK\x01\x02" + little_endian(20, 2) + fields + little_endian(0, 10) + little_endian(at, 4) + name;
      out << head << bytes;
      at += head.size() + bytes.size();
    }
    out << directory << "PK\x05\x06" << little_endian(0, 4) << little_endian(count, 2) << little_endian(count, 2)
        << little_endian(directory.size(), 4) << little_endian(at, 4) << little_endian(0, 2);
  }).put_in_place();
}

}  // namespace tc
