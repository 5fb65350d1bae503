#include "importer/size_sum.h"

#include <gtest/gtest.h>

#include "importer/test_import.h"

namespace tc::size_sum_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

TEST(SizeSum, SumsOfNamesAndNumbers) {
  EXPECT_EQ(parse_size_expression("past+seq"), (SizeExpression{{{"past", 1}, {"seq", 1}}, 0}));
  EXPECT_EQ(parse_size_expression("2*n - 3 + m.x*4"), (SizeExpression{{{"n", 2}, {"m.x", 4}}, -3}));
  EXPECT_EQ(parse_size_expression("-n+10"), (SizeExpression{{{"n", -1}}, 10}));
  EXPECT_EQ(parse_size_expression("n + n"), (SizeExpression{{{"n", 2}}, 0}));
  EXPECT_EQ(to_text(*parse_size_expression("2*n-1+m")), "2 * n + m - 1");
}

TEST(SizeSum, OtherTextsAreNone) {
  for (const char* text :
       {"", "8", "1..8", "n n", "n*m", "n+", "+", "n-n", "2*", "*n", "n/2", "(n)", "1000000000*n", "n\n+m"})
    EXPECT_FALSE(parse_size_expression(text)) << text;
}

std::string import_with(std::map<std::string, SizeRange> dims, Graph* graph = nullptr) {
  ImportOptions o;
  o.dims = std::move(dims);
  Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 18]>
net (float[past, 2] a, float[seq, 2] b, float[total, 2] c) => (float[total, 2] y) {
  t = Concat <axis = 0> (a, b)
  y = Add (t, c)
})",
                           o);
  if (graph) *graph = std::move(m.graph);
  return m.problems;
}

TEST(SizeSum, ADimensionFollowsFromOthers) {
  Graph g;
  ASSERT_EQ(import_with({{"past", {0, 8}}, {"seq", {1, 4}}, {"total", *parse_size_expression("past+seq")}}, &g), "");
  const Dim total = g.inputs()[2]->type.shape[0];
  EXPECT_EQ(total.terms, (std::vector<DimTerm>{{"past", 1, 0, 8}, {"seq", 1, 1, 4}}));
  EXPECT_EQ(total.value, 12);
  EXPECT_EQ(total.least, 1);
  ASSERT_EQ(import_with({{"past", 3}, {"seq", 2}, {"total", *parse_size_expression("past+seq")}}, &g), "");
  EXPECT_EQ(g.inputs()[2]->type.shape[0], Dim(5));
}

TEST(SizeSum, WhatItFollowsFromMustBeKnown) {
  EXPECT_NE(import_with({{"past", {0, 8}}, {"seq", {1, 4}}, {"total", *parse_size_expression("past+other")}})
                .find("other has no size"),
            std::string::npos);
  EXPECT_NE(import_with(
                {{"past", {0, 8}}, {"seq", *parse_size_expression("total")}, {"total", *parse_size_expression("seq")}})
                .find("has no size"),
            std::string::npos);
  EXPECT_NE(import_with({{"past", 1}, {"seq", 4}, {"total", *parse_size_expression("past-seq")}}).find("that is -3"),
            std::string::npos);
}

}  // namespace
}  // namespace tc::size_sum_test
