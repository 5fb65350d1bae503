// XXH64, seed 0, of a block of memory: the content hash of weights blobs, the same as tc_xxh64 in the support text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tc {

uint64_t xxh64(const void* data, size_t bytes);

/// The same of bytes that come one part after another.
class Xxh64 {
 public:
  Xxh64();
  void add(std::string_view part);
  uint64_t value() const;

 private:
  uint64_t lanes_[4];
  uint64_t bytes_ = 0;
  std::string rest_;  // fewer than 32
};

}  // namespace tc
