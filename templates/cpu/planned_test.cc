// Schedules that are stated: the same numbers give the same loops, other numbers other loops that compute the same.
#include "passes/schedule/planner.h"
#include "templates/cpu/test_schedule.h"

namespace tc::planned_test {
namespace {

using namespace tc::testing;

struct Made {
  Scheduled s;
  std::vector<PlanLine> lines;
};

Made schedule_by(const TestFunction& f, Planner planner, const char* cpu) {
  ScheduleOptions o;
  o.planner = &planner;
  Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu(cpu), o);
  planner.finish();
  return {std::move(s), planner.lines()};
}

// The loops, or why they are refused.
std::string attempt(const TestFunction& f, const std::vector<PlanLine>& lines, const char* cpu,
                    const std::vector<Constant>& in, const Constant& expected) {
  try {
    const Made made = schedule_by(f, Planner(FunctionPlan{"*", "", "", lines}), cpu);
    for (const int vl : {4, 16}) {
      const std::vector<float> got = run_scheduled(made.s, f.fn, in, vl);
      EXPECT_EQ(std::memcmp(got.data(), expected->bytes.get(), expected->num_bytes), 0) << to_text(made.s.body);
    }
    return to_text(made.s.body);
  } catch (const PlanRefused& e) {
    return "refused: " + e.message;
  }
}

// Every number of every line is changed in turn.
void expect_open(const TestFunction& f, const char* cpu = "x86-64-v3") {
  std::vector<Constant> in;
  for (size_t i = 0; i < f.fn.inputs.size(); i++)
    in.push_back(small_integers(static_dims(f.fn.inputs[i]->shape), uint32_t(i + 1)));
  const Constant expected = evaluate(f.fn, in)[0];
  const Made made = schedule_by(f, Planner(), cpu);
  const std::string text = to_text(made.s.body);
  EXPECT_EQ(attempt(f, made.lines, cpu, in, expected), text);
  EXPECT_EQ(to_text(schedule_cpu(f.fn, f.constant, *find_cpu(cpu)).body), text) << "who listens changes nothing";
  for (size_t i = 0; i < made.lines.size(); i++)
    for (size_t k = 0; k < made.lines[i].numbers.size(); k++)
      for (const int64_t other : {-1, 0, 1, 2, 3, 5, 8, 16, 32, 48, 1000000}) {
        std::vector<PlanLine> lines = made.lines;
        auto& [name, value, at] = lines[i].numbers[k];
        if (value == other) continue;
        value = other;
        std::vector<PlanLine> changed = lines;
        const std::string got = attempt(f, changed, cpu, in, expected);
        EXPECT_NE(got, text) << lines[i].name << " " << name << " = " << other;
        if (other == 1000000 || other < 0) {
          EXPECT_TRUE(got.starts_with("refused: " + name + " = ")) << got;
        }
      }
}

TEST(PlannedSchedules, EveryNumberOfAContractionCounts) {
  expect_open(convolution({.h = 10, .w = 13, .c = 5, .oc = 33, .residual = true}));
  expect_open(convolution({.h = 33, .w = 31, .c = 8, .oc = 72, .kernel = 1}));
  expect_open(convolution({.h = 9, .w = 9, .c = 12, .oc = 24, .groups = 3}));
  expect_open(product(1, 23, 70, 31, false, true));
  expect_open(product(1, 1, 100, 37, false, true));
  expect_open(product(3, 17, 45, 9, true, false));
  for (const char* cpu : {"x86-64-v4", "generic"})  // fewer rows than a tile would have
    expect_open(convolution({.h = 8, .w = 8, .c = 12, .oc = 24}), cpu),
        expect_open(product(1, 5, 64, 40, false, true), cpu);
}

TEST(PlannedSchedules, EveryNumberOfAWindowCounts) {
  expect_open(pool(Op::Max, 13, 11, 40, 3, 2));
  expect_open(pool(Op::Add, 9, 9, 70, 2, 1));
}

TEST(PlannedSchedules, AnotherTemplateMayBeStated) {
  const TestFunction f = convolution({.h = 14, .w = 14, .c = 32, .oc = 32});
  const Made made = schedule_by(f, Planner(), "x86-64-v3");
  ASSERT_EQ(made.lines.at(0).name, "winograd");
  const Made direct =
      schedule_by(f, Planner(FunctionPlan{"*", "", "", {{"contraction", {}}, made.lines.at(1)}}), "x86-64-v3");
  EXPECT_EQ(direct.s.family, "matmul");
  const Made plain = schedule_by(f, Planner(FunctionPlan{"*", "", "", {{"naive", {}}}}), "x86-64-v3");
  EXPECT_EQ(plain.s.family, "naive");
}

std::string refusal(const TestFunction& f, std::vector<PlanLine> lines) {
  try {
    schedule_by(f, Planner(FunctionPlan{"*", "", "", std::move(lines)}), "x86-64-v3");
  } catch (const PlanRefused& e) {
    return e.message;
  }
  return "taken";
}

TEST(PlannedSchedules, WhatDoesNotFitIsRefused) {
  const TestFunction f = product(1, 23, 70, 31, false, true);
  const std::vector<PlanLine> good = schedule_by(f, Planner(), "x86-64-v3").lines;
  ASSERT_EQ(good.size(), 2u);
  EXPECT_EQ(refusal(f, good), "taken");
  EXPECT_NE(refusal(f, {{"recurrence", {}}}).find("no template of that name takes this function"), std::string::npos);
  EXPECT_NE(refusal(f, {{"quicksort", {}}}).find("no template of that name takes this function"), std::string::npos);
  EXPECT_EQ(refusal(f, {good[0], good[1], good[1]}), "nothing is left to decide");
  EXPECT_EQ(refusal(f, {good[0]}), "here the template decides on tile");
  std::vector<PlanLine> lines = good;
  lines[1].numbers.erase(lines[1].numbers.begin());
  EXPECT_EQ(refusal(f, lines), "tile needs rows");
  lines = good;
  lines[1].numbers.push_back({"colour", 3});
  EXPECT_EQ(refusal(f, lines), "tile has no number colour");
}

}  // namespace
}  // namespace tc::planned_test
