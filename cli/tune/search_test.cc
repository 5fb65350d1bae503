// The space of plans, the regression, and whether the search finds what is best.
#include "cli/tune/search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cli/tune/record.h"
#include "templates/cpu/backend.h"
#include "templates/cpu/test_functions.h"
#include "templates/cuda/backend.h"

namespace tc::search_test {
namespace {

using namespace tc::testing;

const Backend& backend() {
  static const CpuBackend made(*find_cpu("x86-64-v3"));
  return made;
}

PlanSpace space_of(const TestFunction& f, int threads = 1) { return {f.fn, f.constant, backend(), {}, threads}; }

int64_t number(const PlanPoint& p, const std::string& name) {
  for (const Knob& k : p.knobs)
    if (k.name == name) return k.value;
  return -1;
}

std::set<std::string> texts(const std::vector<PlanPoint>& points) {
  std::set<std::string> s;
  for (const PlanPoint& p : points) s.insert(plan_text(p.lines));
  return s;
}

TEST(PlanSpace, TemplatesSayWhatCouldBe) {
  const PlanSpace space = space_of(convolution({.h = 14, .w = 14, .c = 32, .oc = 32}));
  const PlanPoint model = space.model();
  EXPECT_EQ(model.family(), "winograd tile");
  const std::vector<PlanPoint> others = space.alternatives();
  const auto direct =
      std::find_if(others.begin(), others.end(), [](const auto& p) { return p.family() == "contraction tile"; });
  ASSERT_NE(direct, others.end());
  EXPECT_GT(direct->cost, 0);
  for (const PlanPoint& p : others) EXPECT_NE(p.lines[0].name, "naive");
  const std::vector<PlanPoint> grid = space.grid(*direct);
  EXPECT_GT(texts(grid).size(), 60u);
  for (const PlanPoint& p : grid) {
    const auto again = space.point(p.lines);
    ASSERT_TRUE(again) << plan_text(p.lines);
    EXPECT_EQ(plan_text(again->lines), plan_text(p.lines)) << "a complete plan is taken as it is";
  }
}

// Steps over loops, where templates know little of them; what is written down are the steps.
TestFunction bilinear() {
  FunctionBuilder b;
  const Buffer x = b.input("x", {8, 24}), w = b.input("w", {6, 24, 32}), z = b.input("z", {8, 32});
  return b.take(b.reduce("form", Op::Add, {8, 6}, {24, 32}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0]}) * load(w, {i[1], r[0], r[1]}) * load(z, {i[0], r[1]});
  }));
}

TEST(PlanSpace, PlainLoopsHaveSketches) {
  const PlanSpace space = space_of(bilinear());
  EXPECT_EQ(space.model().lines[0].name, "rows");
  const std::vector<PlanPoint> others = space.alternatives();
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].lines[0].name, "sketch");
  EXPECT_EQ(others[0].written[0].name, "naive");
  EXPECT_GT(others[0].written.size(), 5u);
  EXPECT_EQ(plan_text(space.point(others[0].written)->written), plan_text(others[0].written));
  std::set<std::string> families;
  for (const PlanPoint& p : space.grid(others[0])) families.insert(p.family());
  EXPECT_GT(families.size(), 1u) << "loops over other lanes are of another kind";
  for (const PlanPoint& p : space_of(product(1, 23, 70, 31, false, true)).alternatives())
    EXPECT_NE(p.lines[0].name, "sketch") << "templates know products";
}

// Terms that only a part of the results has: a template goes over these, and knows little of the loops that do.
TEST(PlanSpace, TermsInRangeHaveSketches) {
  FunctionBuilder b;
  const Buffer band = b.input("a", {64, 64}), x = b.input("x", {16, 64});
  const TestFunction banded = b.take(b.reduce("banded", Op::Add, {16, 64}, {9}, [&](const Exprs& i, const Exprs& r) {
    const Expr at = i[1] + r[0] - Expr(4);
    return select(i[1] + r[0] >= Expr(4) && at < Expr(64), load(band, {i[1], at}) * load(x, {i[0], at}),
                  make_float(DType::F32, 0));
  }));
  const PlanSpace space = space_of(banded);
  EXPECT_EQ(space.model().lines[0].name, "terms_in_range");
  const std::vector<PlanPoint> others = space.alternatives();
  EXPECT_TRUE(
      std::any_of(others.begin(), others.end(), [](const PlanPoint& p) { return p.lines[0].name == "sketch"; }));
}

TEST(PlanSpace, PlainLoopsHaveSketchesOnCuda) {
  const CudaBackend gpu(*find_arch("sm_80"));
  const TestFunction form = bilinear(), known = product(1, 128, 64, 128, false, true);
  const auto sketched = [&](const TestFunction& f) {
    std::vector<PlanPoint> points = PlanSpace(f.fn, f.constant, gpu, {}, 1).alternatives();
    std::erase_if(points, [](const PlanPoint& p) { return p.lines[0].name != "sketch"; });
    return points;
  };
  const std::vector<PlanPoint> points = sketched(form);
  ASSERT_EQ(points.size(), 1u);
  const auto again = PlanSpace(form.fn, form.constant, gpu, {}, 1).point(points[0].written);
  ASSERT_TRUE(again);
  EXPECT_EQ(plan_text(again->written), plan_text(points[0].written));
  EXPECT_TRUE(sketched(known).empty()) << "templates know products";
}

TEST(PlanSpace, WhatCannotBeIsNoPoint) {
  const PlanSpace space = space_of(product(1, 23, 70, 31, false, true));
  EXPECT_TRUE(space.point({}));
  EXPECT_TRUE(space.point({{"contraction", {}}, {"tile", {{"rows", 5}}}}));
  EXPECT_FALSE(space.point({{"contraction", {}}, {"tile", {{"rows", 99}}}}));
  EXPECT_FALSE(space.point({{"contraction", {}}, {"tile", {{"colour", 5}}}}));
  EXPECT_FALSE(space.point({{"recurrence", {}}}));
}

TEST(PlanSpace, NeighboursDifferAndThreadsAreAQuestionOfThreads) {
  const TestFunction f = product(1, 230, 270, 310, false, true);
  const auto changes_parallel = [&](int threads) {
    const PlanSpace space = space_of(f, threads);
    const PlanPoint model = space.model();
    bool changed = false;
    for (const PlanPoint& p : space.neighbours(model)) {
      EXPECT_NE(plan_text(p.lines), plan_text(model.lines));
      changed =
          changed || (number(p, "parallel") != number(model, "parallel") && number(p, "rows") == number(model, "rows"));
    }
    return changed;
  };
  EXPECT_FALSE(changes_parallel(1));
  EXPECT_TRUE(changes_parallel(2));
}

TEST(PlanSpace, CrossesTakeNumbersOfBoth) {
  const PlanSpace space = space_of(product(1, 23, 70, 31, false, true));
  const auto a = space.point({{"contraction", {}}, {"tile", {{"rows", 2}, {"columns", 16}}}});
  const auto b = space.point({{"contraction", {}}, {"tile", {{"rows", 5}, {"columns", 32}}}});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(plan_text(space.cross(*a, *b, 0)->lines), plan_text(a->lines));
  const auto c = space.cross(*a, *b, 1);
  ASSERT_TRUE(c);
  EXPECT_EQ(number(*c, "rows"), 5);
  EXPECT_EQ(number(*c, "columns"), 16);
}

TEST(Ridge, FindsALine) {
  std::vector<std::vector<double>> rows;
  std::vector<double> y;
  for (int i = 0; i < 8; i++) {
    rows.push_back({double(i), 7.0, 1.0});  // a column that says nothing, beside the constant
    y.push_back(3.0 * i - 2);
  }
  const std::vector<double> x = ridge(rows, y, 1e-9);
  for (const double at : {-1.0, 4.0, 20.0}) EXPECT_NEAR(x[0] * at + x[1] * 7 + x[2], 3 * at - 2, 1e-4);
  EXPECT_LT(std::abs(ridge(rows, y, 1e6)[0]), 0.1) << "a large lambda believes nothing";
  EXPECT_TRUE(ridge({}, {}, 1).empty());
}

// As if rows took so long: best at `rows`, `columns`.
double pretend(const PlanPoint& p, double rows, double columns) {
  return 1 + std::abs(std::log2(double(number(p, "rows")) / rows)) +
         0.5 * std::abs(std::log2(double(number(p, "columns")) / columns));
}

TEST(TimeModel, MeasurementsCorrectTheCostModel) {
  const PlanSpace space = space_of(product(1, 230, 270, 310, false, true));
  const PlanPoint model = space.model();
  TimeModel time(model);
  EXPECT_NEAR(time.predict(model), 1, 1e-9);
  std::vector<std::pair<PlanPoint, double>> measured;
  const std::vector<PlanPoint> grid = space.grid(model);
  for (size_t i = 0; i < grid.size(); i += 3) measured.push_back({grid[i], pretend(grid[i], 2, 64)});
  time.fit(measured);
  double right = 0, all = 0;
  for (size_t i = 1; i < grid.size(); i += 3)
    for (size_t k = 2; k < grid.size(); k += 3) {
      const double told = time.predict(grid[i]) - time.predict(grid[k]);
      const double is = pretend(grid[i], 2, 64) - pretend(grid[k], 2, 64);
      if (std::abs(is) < 0.2) continue;
      all++;
      right += (told < 0) == (is < 0) ? 1 : 0;
    }
  EXPECT_GT(right / all, 0.8);
}

TEST(PlanSearch, FindsTheBestInFewTrialsAndTriesNothingTwice) {
  PlanSearch search(space_of(product(1, 230, 270, 310, false, true)));
  ASSERT_TRUE(search.has_choice());
  const double own = pretend(search.model(), 9, 32);
  std::set<std::string> tried;
  double best = 1e9;
  for (int trials = 0; trials < 40;) {
    const std::vector<PlanPoint> points = search.next(2);
    ASSERT_FALSE(points.empty());
    if (trials == 0) {
      EXPECT_EQ(plan_text(points[0].lines), plan_text(search.model().lines)) << "the model's plan is the first";
    }
    for (const PlanPoint& p : points) {
      EXPECT_TRUE(tried.insert(plan_text(p.lines)).second);
      const bool tile = number(p, "rows") > 0;
      const double ns = tile ? pretend(p, 9, 32) : 100;
      search.tell(p, ns / own);
      best = std::min(best, ns);
      trials++;
    }
  }
  EXPECT_LT(best, 1.2);
}

TEST(PlanSearch, EndsWhereNothingIsLeft) {
  PlanSearch search(space_of(product(1, 1, 8, 16, false, true)));
  size_t trials = 0;
  for (std::vector<PlanPoint> points = search.next(8); !points.empty() && trials < 5000; points = search.next(8))
    for (const PlanPoint& p : points) {
      search.tell(p, trials % 3 == 0 ? 0 : 1.5);
      trials++;
    }
  EXPECT_LT(trials, 5000u);
  EXPECT_TRUE(search.next(1).empty());
  EXPECT_FALSE(search.recall({{"recurrence", {}}}, 1));
}

}  // namespace
}  // namespace tc::search_test
