#include "support/reserved.h"

#include <gtest/gtest.h>

namespace tc::reserved_test {
namespace {

TEST(Reserved, NamesOfTheLibraryAreFound) {
  for (const char* name : {"abort",         "exp",    "main",       "yn",          "fits",    "signgam",
                           "significand",   "int8_t", "cudaMalloc", "expf",        "out",     "all",
                           "clock_gettime", "in",     "s",          "input0_dims", "bytes",   "weights",
                           "sizes",         "cpu",    "choose",     "x",           "tc_simd", "math",
                           "stdio",         "stdint", "features",   "string",      "std"})
    EXPECT_TRUE(is_library_name(name)) << name;
  for (const char* name : {"digits", "resnet50", "expo", "m", "xx", "tc_simd_model", ""})
    EXPECT_FALSE(is_library_name(name)) << name;
}

}  // namespace
}  // namespace tc::reserved_test
