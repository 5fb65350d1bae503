// SHA-1 (FIPS 180-4), for the checksum key of ONNX's external data. It guards against mix-ups, not against forgery.
#include <array>
#include <cstring>

#include "importer/external_data.h"

namespace tc::importer {

namespace {

using State = std::array<uint32_t, 5>;

uint32_t rotate(uint32_t v, int n) { return v << n | v >> (32 - n); }

void add_block(State& h, const uint8_t* block) {
  uint32_t w[80];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(block[4 * i]) << 24 | uint32_t(block[4 * i + 1]) << 16 | uint32_t(block[4 * i + 2]) << 8 |
           uint32_t(block[4 * i + 3]);
  for (int i = 16; i < 80; ++i) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = h;
  for (int i = 0; i < 80; ++i) {
    uint32_t f = 0, k = 0;
    if (i < 20)
      f = (b & c) | (~b & d), k = 0x5a827999;
    else if (i < 40)
      f = b ^ c ^ d, k = 0x6ed9eba1;
    else if (i < 60)
      f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
    else
      f = b ^ c ^ d, k = 0xca62c1d6;
    const uint32_t next = rotate(a, 5) + f + e + k + w[i];
    e = d, d = c, c = rotate(b, 30), b = a, a = next;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

}  // namespace

std::string sha1_of_file(int fd, int64_t size) {
  State h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::vector<uint8_t> buffer(1 << 16);
  int64_t done = 0;
  for (; size - done >= 64;) {
    const int64_t n = std::min<int64_t>(int64_t(buffer.size()), (size - done) / 64 * 64);
    if (!read_at(fd, done, buffer.data(), size_t(n))) return "";
    for (int64_t i = 0; i < n; i += 64) add_block(h, &buffer[size_t(i)]);
    done += n;
  }
  // The tail: what is left, a one bit, zeros, and the length in bits as the last eight bytes of a block.
  const size_t rest = size_t(size - done);
  uint8_t tail[128] = {};
  if (!read_at(fd, done, tail, rest)) return "";
  tail[rest] = 0x80;
  const size_t end = rest + 9 <= 64 ? 64 : 128;
  for (int i = 0; i < 8; ++i) tail[end - 1 - size_t(i)] = uint8_t(uint64_t(size) * 8 >> (8 * i));
  for (size_t i = 0; i < end; i += 64) add_block(h, tail + i);
  std::string text;
  for (const uint32_t v : h) text += hex(v, 8);
  return text;
}

}  // namespace tc::importer
