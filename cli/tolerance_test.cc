#include "cli/tolerance.h"

#include <gtest/gtest.h>

namespace tc::tolerance_test {
namespace {

Tolerance with(DType t, Precision p = Precision::F32) {
  Graph g;
  g.add_input(ModelText("x"), ValueType::tensor(DType::F32, {Dim(2)}));
  g.add_input(ModelText("h"), ValueType::tensor(t, {Dim(2)}));
  return tolerance_of(g, p);
}

TEST(Tolerance, FollowsTheCoarsestFloatOfTheModel) {
  EXPECT_EQ(with(DType::F32).relative, "1e-3");
  EXPECT_EQ(with(DType::I8).relative, "1e-3");
  EXPECT_EQ(with(DType::F16).relative, "1e-2");  // steps of f16 are 1e-3 apart
  EXPECT_EQ(with(DType::BF16).relative, "8e-2");
  EXPECT_EQ(with(DType::F32, Precision::Tf32).relative, "1e-2");
  EXPECT_EQ(with(DType::F16, Precision::Bf16).absolute, "3e-1");
}

}  // namespace
}  // namespace tc::tolerance_test
