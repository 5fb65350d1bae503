#include "support/xxh64.h"

#include <gtest/gtest.h>

namespace tc::xxh64_test {
namespace {

// However bytes are cut, their hash is that of the whole.
TEST(Xxh64, OfPartsIsThatOfTheWhole) {
  std::string bytes;
  for (int i = 0; i < 300; i++) bytes += char(i * 37 + i / 7);
  for (size_t n : {0, 1, 4, 31, 32, 33, 63, 64, 107, 300})
    for (size_t step : {1, 5, 8, 31, 32, 33, 64, 300}) {
      Xxh64 parts;
      for (size_t at = 0; at < n; at += step) parts.add(std::string_view(bytes).substr(at, std::min(step, n - at)));
      EXPECT_EQ(parts.value(), xxh64(bytes.data(), n)) << n << " bytes in steps of " << step;
    }
}

}  // namespace
}  // namespace tc::xxh64_test
