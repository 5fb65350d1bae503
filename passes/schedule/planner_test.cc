// Numbers of plans: what they may be, in words, and what is stated of them.
#include "passes/schedule/planner.h"

#include <gtest/gtest.h>

namespace tc::planner_test {
namespace {

std::vector<int64_t> all(const KnobValues& v) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < v.count(); i++) list.push_back(v.at(i));
  return list;
}

TEST(KnobValues, SayWhatANumberMayBe) {
  EXPECT_EQ(all(KnobValues::range(1, 4)), (std::vector<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(all(KnobValues::range(10, 50, 16)), (std::vector<int64_t>{16, 32, 48}));
  EXPECT_EQ(all(KnobValues::range(3, 1)), (std::vector<int64_t>{3}));
  EXPECT_EQ(all(KnobValues::powers_of_two(3, 40)), (std::vector<int64_t>{4, 8, 16, 32}));
  EXPECT_EQ(all(KnobValues::divisors(12)), (std::vector<int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(all(KnobValues::divisors(36, 9)), (std::vector<int64_t>{1, 2, 3, 4, 6, 9}));
  EXPECT_EQ(all(KnobValues::flag(false)), (std::vector<int64_t>{0}));
}

TEST(KnobValues, FindTheNextOneBelow) {
  const KnobValues range = KnobValues::range(16, 64, 16), list = KnobValues::list({2, 5, 9});
  for (const auto& [value, at] : std::vector<std::pair<int64_t, int64_t>>{{-3, 0}, {16, 0}, {31, 0}, {48, 2}, {900, 3}})
    EXPECT_EQ(range.below(value), at) << value;
  for (const auto& [value, at] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {2, 0}, {8, 1}, {9, 2}, {100, 2}})
    EXPECT_EQ(list.below(value), at) << value;
  EXPECT_TRUE(range.has(48) && list.has(5));
  EXPECT_FALSE(range.has(40) || range.has(0) || range.has(80) || list.has(3) || list.has(10));
}

TEST(KnobValues, SayWhyItIsNoOtherOne) {
  EXPECT_EQ(KnobValues::range(1, 8).text(), "it is from 1 to 8");
  EXPECT_EQ(KnobValues::range(16, 70, 16).text(), "it is a multiple of 16 from 16 to 64");
  EXPECT_EQ(KnobValues::list({1, 4}, "16 bytes").text(), "it is one of 1, 4: 16 bytes");
  EXPECT_EQ(KnobValues::flag(false, "there is one chunk").text(), "here it is 0: there is one chunk");
}

// What a plan states of `rows`, or why it cannot be.
std::string stated(int64_t rows, bool recorded = false) {
  FunctionPlan plan{"*", "", "", {{"tile", {{"rows", rows}}}}};
  Planner planner = recorded ? Planner::beginning_with(plan) : Planner(plan);
  const PlanEntry entry(&planner, "tile");
  try {
    const int64_t taken = entry.in_range(
        "rows", [] { return 7; }, 1, 8);
    const bool other = entry.flag("parallel", true);
    planner.finish();
    return std::to_string(taken) + (other ? " parallel" : "");
  } catch (const PlanRefused& e) {
    return e.message;
  }
}

TEST(Planner, TakesWhatIsStatedAndSaysWhatIsMissing) {
  EXPECT_EQ(stated(9), "rows = 9: it is from 1 to 8");
  EXPECT_EQ(stated(3), "tile needs parallel");
  EXPECT_EQ(stated(3, true), "3 parallel") << "a plan that is completed gets the model's numbers";
  EXPECT_EQ(stated(0, true), "rows = 0: it is from 1 to 8");
}

}  // namespace
}  // namespace tc::planner_test
