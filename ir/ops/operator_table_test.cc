#include "ir/ops/operator_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ir/ops/op.h"

namespace tc::operator_table_test {
namespace {

TEST(OperatorTable, DocumentIsCurrent) {
  std::ifstream file(std::string(TC_SOURCE_DIR) + "/docs/operators.md");
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str().ends_with("\n\n" + operator_table()))
      << "put what `tc-emit ops` prints at the end of docs/operators.md";
}

TEST(OperatorTable, OneLineEach) {
  const std::string table = operator_table();
  EXPECT_EQ(size_t(std::count(table.begin(), table.end(), '\n')), all_ops().size() + 2);
  EXPECT_NE(table.find("| ai.onnx | Gelu | 20 | `approximate = none` |  |\n"), std::string::npos);
}

TEST(OperatorTable, AWordMayStandInTheDomain) {
  const std::string table = operator_table("microsoft.gelu");
  EXPECT_NE(table.find("| com.microsoft | Gelu |"), std::string::npos) << table;
  EXPECT_EQ(table.find("ai.onnx"), std::string::npos);
  EXPECT_FALSE(has_operator("no.such"));
}

}  // namespace
}  // namespace tc::operator_table_test
