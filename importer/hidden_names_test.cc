#include <gtest/gtest.h>

#include "importer/test_import.h"

namespace tc::hidden_names_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

TEST(HiddenNames, InputsOfBodiesAreRenamed) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2] w, int64 n, bool c) => (float[2] y)
{
  y = Loop (n, c, w) <body = b (int64 i, bool c, float[2] w) => (bool c2, float[2] v)
  {
    c2 = If (c) <then_branch = t () => (bool a) { a = Not(c) }, else_branch = e () => (bool d) { d = Identity(c) }>
    v = Add(w, w)
  }>
})");
  EXPECT_NE(m.problems.find("TC0110"), std::string::npos) << m.problems;
  EXPECT_NE(m.problems.find("\"c\" and 1 more"), std::string::npos) << m.problems;
  EXPECT_NE(m.text.find("Add(w_1, w_1)"), std::string::npos) << m.text;
  EXPECT_NE(m.text.find("Not(c_1)"), std::string::npos) << m.text;
}

TEST(HiddenNames, WhatABodyDefinesTwiceIsNotRenamed) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[2] w, int64 n, bool c) => (float[2] y)
{
  y = Loop (n, c, w) <body = b (int64 i, bool k, float[2] w) => (bool k, float[2] w) { w = Add(w, w) }>
})");
  EXPECT_NE(m.problems.find("error[TC0110]"), std::string::npos) << m.problems;
}

}  // namespace
}  // namespace tc::hidden_names_test
