// Sketches of the C target. See templates/test_sketch.h.
#include "templates/cpu/test_schedule.h"
#include "templates/test_sketch.h"

namespace tc::sketch_test {
namespace {

using namespace tc::testing;

Scheduled for_cpu(const TestFunction& f, const ScheduleOptions& o) {
  return schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4"), o);
}

std::optional<Sketched> sketch(const TestFunction& f, const std::vector<PlanLine>& lines, bool strict = false) {
  return testing::sketch(for_cpu, f, lines, strict);
}

void expect_sound(const TestFunction& f, int steps, size_t least) {
  const auto same = [](const Scheduled& loops, const TestFunction& g, const std::vector<Constant>& in,
                       const Constant& expected) {
    for (const int vl : {1, 4, 16}) {
      const std::vector<float> got = run_scheduled(loops, g.fn, in, vl);
      ASSERT_EQ(std::memcmp(got.data(), expected->bytes.get(), expected->num_bytes), 0) << vl << " lanes";
    }
  };
  testing::expect_sound(for_cpu, same, f, steps, least);
}

TEST(Sketch, KeepsABilinearForm) { expect_sound(bilinear(6, 5, 3, 40), 60, 20); }
TEST(Sketch, KeepsAFilter) { expect_sound(filter(5, 20, 3), 60, 20); }
TEST(Sketch, KeepsSeveralStages) { expect_sound(spread_rows(2, 3, 4, 18), 60, 20); }

TEST(Sketch, KnowsLanesOfResultsAndOfSums) {
  const auto lanes = [](const TestFunction& f) {
    std::vector<int64_t> list;
    const std::optional<Sketched> made = sketch(f, {{"sketch", {}}});
    for (const Knob& k : made->knobs)
      for (int64_t i = 0; k.name.starts_with("lanes") && i < k.values.count(); i++) list.push_back(k.values.at(i));
    return list;
  };
  EXPECT_EQ(lanes(bilinear(6, 5, 3, 40)), std::vector<int64_t>({0, 4}));
  EXPECT_EQ(lanes(bilinear(6, 16, 3, 40)), std::vector<int64_t>({0, 2, 4})) << "w lies side by side in a copy";
  EXPECT_EQ(lanes(filter(5, 20, 3)), std::vector<int64_t>({0, 3, 0}))
      << "what is turned lies side by side along no loop of both";
}

TEST(Sketch, KeepsTheOrderOfStrictSums) {
  const TestFunction f = bilinear(6, 5, 3, 40);
  const std::optional<Sketched> made = sketch(f, {{"sketch", {}}}, true);
  ASSERT_TRUE(made);
  EXPECT_EQ(text_of(made->written).find("rfactor"), std::string::npos);
  EXPECT_FALSE(sketch(f, {{"sketch", {{"lanes", 4}}}}, true)) << "a sum a lane is another order";
}

TEST(Sketch, IsNeverTheModelsChoice) {
  const TestFunction f = bilinear(6, 5, 3, 40);
  EXPECT_EQ(text_of(sketch(f, {})->lines).substr(0, 5), "rows(");
}

}  // namespace
}  // namespace tc::sketch_test
