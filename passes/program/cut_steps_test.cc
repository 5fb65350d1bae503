#include "passes/program/cut_steps.h"

#include <gtest/gtest.h>

namespace tc::cut_steps_test {
namespace {

std::vector<Step> calls(size_t n) { return std::vector<Step>(n, Step{Call{}}); }

std::vector<size_t> cuts(const std::vector<Step>& steps) {
  std::vector<size_t> at;
  for (size_t i = 0; i < steps.size(); i++)
    if (steps[i].begins_part) at.push_back(i);
  return at;
}

std::vector<size_t> cuts_of(std::vector<Step> steps, bool cuda) {
  Program p;
  p.steps = std::move(steps);
  cut_steps(p, cuda);
  return cuts(p.steps);
}

TEST(CutSteps, InCOnlyVeryLongListsAreCut) {
  EXPECT_EQ(cuts_of(calls(512), false), std::vector<size_t>());
  EXPECT_EQ(cuts_of(calls(600), false), (std::vector<size_t>{0, 256, 512}));
}

TEST(CutSteps, InCudaDecisionsOfTheHostBeginAnew) {
  EXPECT_EQ(cuts_of(calls(256), true), std::vector<size_t>());
  EXPECT_EQ(cuts_of(calls(600), true), (std::vector<size_t>{256, 512}));
  std::vector<Step> steps = calls(200), rest = calls(200);
  IfStep branch;
  branch.then = calls(300);
  steps.push_back({branch});
  steps.insert(steps.end(), rest.begin(), rest.end());
  Program p;
  p.steps = steps;
  cut_steps(p, true);
  EXPECT_EQ(cuts(p.steps), std::vector<size_t>());
  EXPECT_EQ(cuts(std::get<IfStep>(p.steps[200].kind).then), std::vector<size_t>{256});
}

TEST(CutSteps, CapturedLoopsCountWholeAndStayWhole) {
  LoopStep loop;
  loop.in_graph = true;
  loop.trips = 100;
  loop.body = calls(3);
  std::vector<Step> steps = calls(2);
  steps.push_back({loop});
  steps.push_back({Call{}});
  EXPECT_EQ(cuts_of(steps, true), std::vector<size_t>{3});
}

}  // namespace
}  // namespace tc::cut_steps_test
