// Sketches: every point of the space computes what the definition says, and its steps alone give the same loops.
#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "passes/schedule/planner.h"
#include "templates/cpu/test_schedule.h"

namespace tc {
namespace {

using namespace tc::testing;

struct Sketched {
  Scheduled loops;
  std::vector<PlanLine> lines, written;
  std::vector<Knob> knobs;
};

/// What begins with `lines`; null where they are refused.
std::optional<Sketched> sketch(const TestFunction& f, const std::vector<PlanLine>& lines, bool strict = false) {
  FunctionPlan plan{"*"};
  plan.lines = lines;
  Planner planner = Planner::beginning_with(std::move(plan));
  ScheduleOptions o;
  o.strict_fp = strict;
  o.planner = &planner;
  try {
    Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4"), o);
    planner.finish();
    return Sketched{std::move(s), planner.lines(), planner.written(), planner.knobs()};
  } catch (const PlanRefused&) {
    return {};
  }
}

std::string text_of(const std::vector<PlanLine>& lines) {
  std::string all;
  for (const PlanLine& l : lines) all += language::print(l) + "\n";
  return all;
}

TestFunction bilinear(int64_t n, int64_t o, int64_t i, int64_t j) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {n, i}), w = b.input("w", {o, i, j}), z = b.input("z", {n, j});
  return b.take(b.reduce("bilinear", Op::Add, {n, o}, {i, j}, [&](const Exprs& a, const Exprs& r) {
    return load(x, {a[0], r[0]}) * load(w, {a[1], r[0], r[1]}) * load(z, {a[0], r[1]});
  }));
}

/// A depthwise filter with a bias and channels that become rows.
TestFunction filter(int64_t n, int64_t c, int64_t k) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {n + k - 1, n + k - 1, c}), w = b.input("w", {k, k, c}), bias = b.input("b", {c});
  const Buffer sums = b.reduce("filter", Op::Add, {n, n, c}, {k, k}, [&](const Exprs& a, const Exprs& r) {
    return load(x, {a[0] + r[0], a[1] + r[1], a[2]}) * load(w, {r[0], r[1], a[2]});
  });
  return b.take(b.compute("turned", {c, n, n}, [&](const Exprs& a) {
    return load(sums, {a[1], a[2], a[0]}) + load(bias, {a[0]});
  }));
}

/// Rows less their maximum, doubled, and over their sum, of columns between the rows' elements.
TestFunction spread_rows(int64_t n, int64_t h, int64_t c, int64_t w) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {n, h, c, w});
  const Buffer top = b.reduce("top", Op::Max, {n, c}, {h, w}, [&](const Exprs& a, const Exprs& r) {
    return load(x, {a[0], r[0], a[1], r[1]});
  });
  const Buffer less = b.compute("less", {n, h, c, w}, [&](const Exprs& a) {
    return (load(x, a) - load(top, {a[0], a[2]})) * load(x, a);
  });
  const Buffer total = b.reduce("total", Op::Add, {n, c}, {h, w}, [&](const Exprs& a, const Exprs& r) {
    return load(less, {a[0], r[0], a[1], r[1]});
  });
  return b.take(b.compute("out", {n, h, c, w}, [&](const Exprs& a) {
    return load(less, a) + load(total, {a[0], a[2]});
  }));
}

// As tune does: a number at a time, from wherever that is possible.
void expect_sound(const TestFunction& f, int steps, size_t least) {
  std::vector<Constant> in;
  for (const Buffer& b : f.fn.inputs) in.push_back(small_integers(static_dims(b->shape), uint32_t(in.size() + 1)));
  const Constant expected = evaluate(f.fn, in)[0];
  std::optional<Sketched> at = sketch(f, {{"sketch", {}}});
  ASSERT_TRUE(at) << to_text(f.fn);
  std::set<std::string> seen;
  uint64_t dice = 1;
  const auto roll = [&](size_t n) {
    return size_t((dice = dice * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
  };
  for (int i = 0; i < steps; i++) {
    if (seen.insert(text_of(at->written)).second) {
      const std::optional<Sketched> again = sketch(f, at->written);
      ASSERT_TRUE(again) << text_of(at->written);
      EXPECT_EQ(text_of(again->written), text_of(at->written));
      ASSERT_EQ(to_text(again->loops.body), to_text(at->loops.body)) << text_of(at->lines);
      for (const int vl : {1, 4, 16}) {
        const std::vector<float> got = run_scheduled(at->loops, f.fn, in, vl);
        ASSERT_EQ(std::memcmp(got.data(), expected->bytes.get(), expected->num_bytes), 0)
            << vl << " lanes\n"
            << text_of(at->lines) << to_text(at->loops.body);
      }
    }
    const Knob& k = at->knobs[roll(at->knobs.size())];
    std::vector<PlanLine> lines = {{"sketch", {}}};
    for (const PlanNumber& number : at->lines[0].numbers) {
      const bool changed = number.name == k.name;
      const int64_t value = changed ? k.values.at(int64_t(roll(size_t(k.values.count())))) : number.value;
      lines[0].numbers.push_back({number.name, value});
      if (changed) break;
    }
    if (auto next = sketch(f, lines)) at = std::move(next);
  }
  EXPECT_GE(seen.size(), least);
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
}  // namespace tc
