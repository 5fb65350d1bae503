#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "generated_tests/fuzz/targets.h"

namespace tc::fuzz {
namespace {

struct Field {
  uint64_t number = 0;
  int wire = 0;
  uint64_t value = 0;   // of a varint
  std::string payload;  // of all others
};

bool take_varint(std::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

/// The fields of an encoded message; nothing if it is none.
std::optional<std::vector<Field>> fields_of(std::string_view in) {
  std::vector<Field> fields;
  while (!in.empty()) {
    Field f;
    uint64_t tag = 0, size = 0;
    if (!take_varint(in, tag) || tag >> 3 == 0) return std::nullopt;
    f.number = tag >> 3;
    f.wire = int(tag & 7);
    if (f.wire == 0) {
      if (!take_varint(in, f.value)) return std::nullopt;
    } else {
      if (f.wire != 1 && f.wire != 2 && f.wire != 5) return std::nullopt;
      if (f.wire == 2 && !take_varint(in, size)) return std::nullopt;
      if (f.wire != 2) size = f.wire == 1 ? 8 : 4;
      if (size > in.size()) return std::nullopt;
      f.payload = in.substr(0, size);
      in.remove_prefix(size);
    }
    fields.push_back(std::move(f));
  }
  return fields;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value > 127; value >>= 7) out += char(value | 128);
  out += char(value);
}

std::string message_of(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& f : fields) {
    put_varint(out, f.number << 3 | uint64_t(f.wire));
    if (f.wire == 0) put_varint(out, f.value);
    if (f.wire == 2) put_varint(out, f.payload.size());
    out += f.payload;
  }
  return out;
}

std::string changed(std::string_view message, std::mt19937& rng) {
  static const uint64_t absurd[] = {
      0, 1, 7, 127, 65536, 1u << 31, uint64_t(1) << 40, INT64_MAX, uint64_t(INT64_MAX) + 1, UINT64_MAX};
  const auto below = [&](size_t n) { return size_t(rng() % n); };
  auto fields = fields_of(message);
  if (!fields || fields->empty()) return std::string(message);
  const size_t k = below(fields->size()), other = below(fields->size());
  Field& f = (*fields)[k];
  if (f.wire == 2 && f.payload.size() > 1 && below(8) != 0) {
    const auto inner = fields_of(f.payload);
    if (inner && !inner->empty()) {
      f.payload = changed(f.payload, rng);
      return message_of(*fields);
    }
  }
  switch (below(6)) {
    case 0: std::swap(f, (*fields)[other]); break;
    case 1: fields->erase(fields->begin() + long(k)); break;
    case 2: fields->insert(fields->begin() + long(other), Field(f)); break;
    case 3: f.number = 1 + below(21); break;
    case 4:
      f.value = absurd[below(std::size(absurd))];
      if (f.wire == 2) f.payload.resize(below(f.payload.size() + 1));
      break;
    default:
      if (f.wire == 2) f.payload = std::string((*fields)[other].payload);
  }
  return message_of(*fields);
}

}  // namespace

size_t change_field(uint8_t* data, size_t size, size_t most, uint32_t seed) {
  std::mt19937 rng(seed);
  const std::string out = changed({reinterpret_cast<const char*>(data), size}, rng);
  if (out.size() > most) return size;
  std::memcpy(data, out.data(), out.size());
  return out.size();
}

}  // namespace tc::fuzz
