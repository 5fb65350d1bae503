#include "ir/language/schedule_text.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::schedule_text_test {
namespace {

using namespace tc::language;

constexpr const char* kText = R"(schedule "conv2d_relu_8x8x16" on "x86-64-v3" of "0123456789abcdef"
  winograd(outputs = 4)
  tile(rows = 6, columns = 16, prefetch = -1)
)";

TEST(ScheduleText, IsReadAsItIsPrinted) {
  Problems problems;
  const std::vector<FunctionPlan> plans =
      read_schedules(std::string(kText) + "# a comment\n\nschedule \"*\"\n  naive()\n", problems);
  ASSERT_TRUE(problems.empty());
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(print(plans[0]), kText);
  EXPECT_EQ(print(plans[1]), "schedule \"*\"\n  naive()\n");
  EXPECT_EQ(plans[0].lines[1].numbers[2], (PlanNumber{"prefetch", -1}));
  EXPECT_EQ(plans[0].lines[1].at.line, 3);
}

TEST(ScheduleText, SaysForWhichFunctions) {
  const auto fits = [](const char* pattern, const char* text) { return FunctionPlan{pattern}.fits(text, "1"); };
  EXPECT_TRUE(fits("conv2d_*_k3", "conv2d_bias_relu_8x8_k3"));
  EXPECT_FALSE(fits("conv2d_*_k3", "conv2d_bias_relu_8x8_k1"));
  EXPECT_FALSE(fits("conv2d", "conv2d_relu"));
  EXPECT_TRUE(fits("*", ""));
  EXPECT_TRUE(fits("*a*b*", "xxaabb"));
  EXPECT_FALSE(fits("*a*b", "xxaabbc"));
  EXPECT_FALSE(fits("", "x"));
  EXPECT_FALSE((FunctionPlan{"*", "", "2"}.fits("x", "1")));
  EXPECT_TRUE((FunctionPlan{"*", "", "1"}.fits("x", "1")));
}

FunctionSelector selector(const std::string& text) {
  Problems problems;
  const std::vector<FunctionPlan> plans = read_schedules("schedule for " + text + "\n  naive()\n", problems);
  EXPECT_TRUE(problems.empty() && plans.size() == 1 && plans[0].selects) << text;
  return plans.empty() ? FunctionSelector() : plans[0].selects.value_or(FunctionSelector());
}

TEST(ScheduleText, SaysWhatIsComputedOnWhichShapes) {
  TensorFn fn;
  fn.inputs = {make_buffer("x", DType::F32, {Dim(1), Dim(8), Dim(64)}), make_buffer("b", DType::I8, {Dim(64)})};
  fn.outputs = {make_buffer("y", DType::F32, {Dim(1), Dim(8), Dim(16)})};
  const std::vector<std::string> stages = {"conv2d", "bias", "relu"};
  const auto fits = [&](const char* text) { return selector(text).fits(fn, stages); };
  for (const char* text :
       {"conv2d + bias + relu", "conv2d + *", "* + relu", "* + bias + *", "*", "* (f32[1, 8, 64], i8[64])", "* (*)",
        "conv2d + bias + relu + * (x: f32[*, *, 64], *) -> f32[1, 8, *]", "* -> *"})
    EXPECT_TRUE(fits(text)) << text;
  for (const char* text :
       {"conv2d", "conv2d + relu", "bias + *", "* (f32[1, 8, 64])", "* (f32[1, 8], *)", "* ()", "* (f32[1, 8, 65], *)",
        "* (w: f32[1, 8, 64], *)", "* (f32[1, 8, 64], u8[64])", "* -> f32[1, 8, 17]", "* -> f32[1, 8, 16], f32[2]"})
    EXPECT_FALSE(fits(text)) << text;
  const FunctionSelector own = selector_of(fn, stages);
  EXPECT_TRUE(own.fits(fn, stages) && own.is_exact());
  EXPECT_EQ(print(own), "conv2d + bias + relu (x: f32[1, 8, 64], b: i8[64]) -> f32[1, 8, 16]");
  EXPECT_EQ(selector(print(own)), own);
  for (const char* text : {"conv2d", "* (f32[1, *])", "* (f32[2], *)", "* () -> f32[], *"}) {
    EXPECT_EQ(print(selector(text)), text);
    EXPECT_FALSE(selector(text).is_exact()) << text;
  }
}

std::vector<std::string> problems_of(const std::string& text) {
  Problems problems;
  read_schedules(text, problems);
  std::vector<std::string> list;
  for (const Problem& p : problems)
    list.push_back(std::to_string(p.at.line) + ":" + std::to_string(p.at.column) + ": " + p.message);
  return list;
}

TEST(ScheduleText, TellsAllMistakes) {
  EXPECT_EQ(problems_of("schedule conv\n  naive()\nschedule \"a\"\nschedule \"b\"\n  tile(rows 6)\n"),
            (std::vector<std::string>{
                "1:10: expected the signature of a kernel, in quotes, or 'for' and what it computes, found 'conv'",
                "3:1: a schedule has one line at least: the name of a template, or a step",
                "5:13: expected ',' between arguments, found a number"}));
  EXPECT_EQ(problems_of("schedule \"a\"\n  tile(rows = 6, rows = 7)\n"),
            (std::vector<std::string>{"2:18: rows is given twice"}));
  EXPECT_EQ(problems_of("schedule \"a\"\n  tile(rows = six)\n").size(), 1u);
  EXPECT_EQ(problems_of("tile()\n").size(), 1u);
  EXPECT_EQ(problems_of("schedule for conv2d + 3\n  naive()\n"),
            (std::vector<std::string>{"1:23: expected the name of a stage, or '*' for any, found a number"}));
  EXPECT_EQ(problems_of("schedule for conv2d (x: f33[2])\n  naive()\n"),
            (std::vector<std::string>{"1:25: there is no element type f33"}));
  EXPECT_EQ(problems_of("schedule for * (f32[2], *, f32[3])\n  naive()\n"),
            (std::vector<std::string>{"1:26: expected ')' after the operands, found ','"}));
}

}  // namespace
}  // namespace tc::schedule_text_test
