// Numbers of elements, also of tensors that have more than 64 bits can say.
#include "ir/types.h"

#include <gtest/gtest.h>

#include "ir/open_size.h"

namespace tc::types_test {
namespace {

TEST(Types, NoneAndOneElement) {
  EXPECT_TRUE(has_no_elements({3, 0, kOpenSize, kOpenSize}));
  EXPECT_FALSE(has_no_elements({}));
  EXPECT_TRUE(has_one_element({}));
  EXPECT_TRUE(has_one_element({1, 1}));
  EXPECT_FALSE(has_one_element({1, kOpenSize, kOpenSize}));
  EXPECT_FALSE(has_one_element({1, 0}));
}

TEST(Types, WhatNobodyCanStoreCompares) {
  const int64_t n = kOpenSize;
  EXPECT_THROW(num_elements({n, n}), Error);
  EXPECT_TRUE(std::is_eq(compare_elements({2, 3, n, n}, {6, n, 1, n})));
  EXPECT_TRUE(std::is_lt(compare_elements({2, n, n}, {3, n, n})));
  EXPECT_TRUE(std::is_gt(compare_elements({n, n}, {1000})));
  EXPECT_TRUE(std::is_eq(compare_elements({0, n, n}, {n, n, 0})));
  EXPECT_TRUE(std::is_lt(compare_elements({0}, {n, n})));
  EXPECT_THROW(compare_elements({n, n}, {n + 1, n + 1}), Error) << "neither fits";
  EXPECT_EQ(elements_in_proportion({8, n, n}, {n, 4, n}), std::pair(int64_t(8), int64_t(4)));
  EXPECT_THROW(elements_in_proportion({n, n}, {5}), Error) << "a quotient needs both";
  EXPECT_TRUE(has_several_open(Dims{n, 4, n}));
  EXPECT_FALSE(has_several_open(Dims{n, 4}));
}

}  // namespace
}  // namespace tc::types_test
