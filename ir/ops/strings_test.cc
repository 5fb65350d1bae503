// Operators on the text of strings, by the interpreter; references are written plainly.
#include <gtest/gtest.h>

#include "ir/ops/expansion.h"
#include "ir/ops/test_cases.h"
#include "ir/text.h"

namespace tc::strings_test {
namespace {

using case_testing::Call;
using case_testing::error_of;
using Strings = std::vector<std::string>;

Constant words(const Strings& v) { return string_constant({int64_t(v.size())}, v); }
ValueType text_type(const Dims& d) { return ValueType::tensor(DType::String, to_shape(d)); }

TEST(StringOps, ConcatBroadcasts) {
  const Constant x = string_constant({2, 1}, {"a", ""}), y = words({"b", std::string("\0c", 2), ""});
  const Constant z = case_testing::run({"StringConcat", {x, y}}).outputs[0];
  EXPECT_EQ(z->dims, (Dims{2, 3}));
  EXPECT_EQ(z->strings, (Strings{"ab", std::string("a\0c", 3), "a", "b", std::string("\0c", 2), ""}));
}

// Pieces of each string, padded with empty ones to `capacity`.
std::vector<Constant> split(const Strings& x, const std::string& delimiter, int64_t most, int64_t capacity) {
  Attrs attrs;
  if (!delimiter.empty()) attrs["delimiter"] = delimiter;
  if (most >= 0) attrs["maxsplit"] = most;
  const auto n = int64_t(x.size());
  Call c = {"StringSplit",
            {words(x)},
            attrs,
            {},
            {text_type({n, capacity}), ValueType::tensor(DType::I64, to_shape({n}))},
            2};
  return case_testing::run(c).outputs;
}

TEST(StringOps, OperatorsOnNumbersRefuseStrings) {
  for (const char* op : {"Abs", "Neg", "Relu", "Ceil", "Not", "IsNaN", "ReduceMax", "Cast", "Softmax", "NonZero"})
    EXPECT_NE(error_of({op, {words({"a", "b"})}, {{"to", int64_t(1)}}}), "") << op;
  for (const char* op : {"Add", "Less", "Greater", "Max", "And", "Pow", "MatMul", "CumSum"})
    EXPECT_NE(error_of({op, {words({"a", "b"}), words({"a", "b"})}}), "") << op;
}

TEST(StringOps, SplitsAtADelimiter) {
  const auto y = split({"a,b", "", ",", "a,,b,"}, ",", -1, 4);
  EXPECT_EQ(y[0]->strings, (Strings{"a", "b", "", "", "", "", "", "", "", "", "", "", "a", "", "b", ""}));
  EXPECT_EQ(y[1]->as_ints(), (std::vector<int64_t>{2, 1, 2, 4}));
  EXPECT_EQ(split({"a::b:::c"}, "::", -1, 3)[0]->strings, (Strings{"a", "b", ":c"}));
  EXPECT_EQ(split({"a,b,c"}, ",", 1, 2)[0]->strings, (Strings{"a", "b,c"}));
  EXPECT_EQ(split({"a,b,c"}, ",", 0, 1)[0]->strings, (Strings{"a,b,c"}));
}

TEST(StringOps, SplitsAtWhiteSpace) {
  const auto y = split({" a \t b\n", "", "c"}, "", -1, 2);
  EXPECT_EQ(y[0]->strings, (Strings{"a", "b", "", "", "c", ""}));
  EXPECT_EQ(y[1]->as_ints(), (std::vector<int64_t>{2, 0, 1}));
  EXPECT_EQ(split({"  a  b  c "}, "", 1, 2)[0]->strings, (Strings{"a", "b  c "}));
}

TEST(StringOps, OtherSizesThanDeclaredAreAnError) {
  EXPECT_THROW(split({"a,b,c"}, ",", -1, 2), Error);
  EXPECT_THROW(split({"a"}, ",", -1, 2), Error);
}

TEST(StringOps, LettersFollowUnicodesSimpleMapping) {
  EXPECT_EQ(in_case("aZ09", true), "AZ09");
  EXPECT_EQ(in_case("\xc3\x89t\xc3\xa9 \xd0\x96", false), "\xc3\xa9t\xc3\xa9 \xd0\xb6");
  EXPECT_EQ(in_case("\xc3\xbf\xc3\x9f", true), "\xc5\xb8\xc3\x9f");       // two bytes; no capital sharp s
  EXPECT_EQ(in_case("\xc8\xba", false), "\xe2\xb1\xa5");                  // two bytes become three
  EXPECT_EQ(in_case("\xe1\xba\x9e\xff\xc3", false), "\xc3\x9f\xff\xc3");  // bytes that are no UTF-8 stay
  EXPECT_EQ(in_case(std::string("a\0b", 3), true), std::string("A\0B", 3));
}

}  // namespace
}  // namespace tc::strings_test
