#include <gtest/gtest.h>

#include "importer/test_import.h"

namespace tc::fix_inputs_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x, int64 rate, float[N] scale) => (float[2] y)
{
  r = Cast <to = 1> (rate)
  h = Mul(x, r)
  y = Mul(h, scale)
})";

Imported with(std::map<std::string, std::vector<std::string>> values) {
  return import_text(kModel, {.input_values = std::move(values)});
}

TEST(FixInputs, NumbersBecomeConstants) {
  const Imported m = with({{"rate", {"9007199254740993"}}, {"scale", {"0.5", "-2"}}});
  EXPECT_EQ(m.problems, "");
  ASSERT_EQ(m.graph.inputs().size(), 1u);
  EXPECT_NE(m.text.find("rate: i64[] = const 9007199254740993"), std::string::npos) << m.text;
  EXPECT_NE(m.text.find("scale: f32[2] = const [0.5, -2.0]"), std::string::npos) << m.text;
}

TEST(FixInputs, SaysWhatDoesNotFit) {
  EXPECT_NE(with({{"rates", {"1"}}, {"scale", {"1", "1"}}}).problems.find("--input-value rates names no input"),
            std::string::npos);
  EXPECT_NE(with({{"rate", {"1", "2"}}, {"scale", {"1", "1"}}}).problems.find("2 numbers do not fill the shape"),
            std::string::npos);
  EXPECT_NE(with({{"rate", {"1.5"}}, {"scale", {"1", "1"}}}).problems.find("\"1.5\" is no number of type int64"),
            std::string::npos);
}

}  // namespace
}  // namespace tc::fix_inputs_test
