#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "templates/canonical.h"

namespace tc::offset_test {
namespace {

// Text that is read has an expression for each that is printed; what templates decide is the same.
TEST(Offset, LoadsAreEachOnce) {
  const Buffer x = make_buffer("x", DType::F32, {Dim(8)}), y = make_buffer("y", DType::F32, {Dim(8)});
  const Buffer at = make_buffer("at", DType::I64, {Dim(8)});
  const Expr i = make_var("i");
  const auto of_x = [&](const Expr& index) { return load(x, {index}); };
  EXPECT_EQ(loads_of(of_x(i) * max(of_x(i), load(y, {i}))).size(), 2u);
  EXPECT_EQ(loads_of(of_x(i) * of_x(i + 1)).size(), 2u);
  EXPECT_EQ(loads_of(of_x(load(at, {i})) * of_x(load(at, {i}))).size(), 2u) << "and what the index reads";
  EXPECT_EQ(loads_of(of_x(i) * load(y, {i}), x).size(), 1u);
}

}  // namespace
}  // namespace tc::offset_test
