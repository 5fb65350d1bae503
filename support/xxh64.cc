#include "support/xxh64.h"

#include <algorithm>

#include "templates/text/tc_rt.h"

namespace tc {
namespace {

constexpr uint64_t kPrimes[] = {0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                                0x27D4EB2F165667C5};
constexpr size_t kStripe = 32;

uint64_t round_of(uint64_t lane, uint64_t word) { return tc_rotate(lane + word * kPrimes[1], 31) * kPrimes[0]; }

const unsigned char* bytes_of(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }

}  // namespace

// One definition serves the tool and the emitted text.
uint64_t xxh64(const void* data, size_t bytes) { return tc_xxh64(data, bytes); }

Xxh64::Xxh64() : lanes_{kPrimes[0] + kPrimes[1], kPrimes[1], 0, 0 - kPrimes[0]} {}

void Xxh64::add(std::string_view part) {
  const auto stripes = [this](std::string_view s) {
    const unsigned char* p = bytes_of(s);
    for (const unsigned char* const end = p + s.size() / kStripe * kStripe; p < end; p += kStripe)
      for (int i = 0; i < 4; i++) lanes_[i] = round_of(lanes_[i], tc_read_le8(p + 8 * i));
    return s.substr(s.size() / kStripe * kStripe);
  };
  bytes_ += part.size();
  if (!rest_.empty()) {
    const size_t missing = std::min(kStripe - rest_.size(), part.size());
    rest_ += part.substr(0, missing);
    part.remove_prefix(missing);
    if (rest_.size() < kStripe) return;
    stripes(rest_);
    rest_.clear();
  }
  rest_ = stripes(part);
}

uint64_t Xxh64::value() const {
  if (bytes_ < kStripe) return xxh64(rest_.data(), rest_.size());
  uint64_t h = 0;
  constexpr int kRotations[] = {1, 7, 12, 18};
  for (int i = 0; i < 4; i++) h += tc_rotate(lanes_[i], kRotations[i]);
  for (const uint64_t lane : lanes_) h = (h ^ round_of(0, lane)) * kPrimes[0] + kPrimes[3];
  h += bytes_;
  const unsigned char *p = bytes_of(rest_), *const end = p + rest_.size();
  for (; end - p >= 8; p += 8) h = tc_rotate(h ^ round_of(0, tc_read_le8(p)), 27) * kPrimes[0] + kPrimes[3];
  if (end - p >= 4) {
    const uint64_t word = p[0] | uint64_t(p[1]) << 8 | uint64_t(p[2]) << 16 | uint64_t(p[3]) << 24;
    h = tc_rotate(h ^ word * kPrimes[0], 23) * kPrimes[1] + kPrimes[2];
    p += 4;
  }
  for (; p < end; p++) h = tc_rotate(h ^ *p * kPrimes[4], 11) * kPrimes[0];
  h = (h ^ h >> 33) * kPrimes[1];
  h = (h ^ h >> 29) * kPrimes[2];
  return h ^ h >> 32;
}

}  // namespace tc
