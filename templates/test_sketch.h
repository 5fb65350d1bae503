// For tests of sketches: every point of the space computes what the definition says, and its steps alone give the same loops.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/test_random.h"
#include "passes/schedule/planner.h"
#include "templates/cpu/test_functions.h"

namespace tc::testing {

struct Sketched {
  Scheduled loops;
  std::vector<PlanLine> lines, written;
  std::vector<Knob> knobs;
};

/// The templates of a target.
using MakeLoops = std::function<Scheduled(const TestFunction& f, const ScheduleOptions& options)>;

/// What begins with `lines`; null where they are refused.
inline std::optional<Sketched> sketch(const MakeLoops& make, const TestFunction& f, const std::vector<PlanLine>& lines,
                                      bool strict = false) {
  FunctionPlan plan{"*"};
  plan.lines = lines;
  Planner planner = Planner::beginning_with(std::move(plan));
  ScheduleOptions o;
  o.strict_fp = strict;
  o.planner = &planner;
  try {
    Scheduled s = make(f, o);
    planner.finish();
    return Sketched{std::move(s), planner.lines(), planner.written(), planner.knobs()};
  } catch (const PlanRefused&) {
    return {};
  }
}

inline std::string text_of(const std::vector<PlanLine>& lines) {
  std::string all;
  for (const PlanLine& l : lines) all += language::print(l) + "\n";
  return all;
}

/// y[n, o] = sum(i, j) x[n, i] * w[o, i, j] * z[n, j]
inline TestFunction bilinear(int64_t n, int64_t o, int64_t i, int64_t j) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {n, i}), w = b.input("w", {o, i, j}), z = b.input("z", {n, j});
  return b.take(b.reduce("bilinear", Op::Add, {n, o}, {i, j}, [&](const Exprs& a, const Exprs& r) {
    return load(x, {a[0], r[0]}) * load(w, {a[1], r[0], r[1]}) * load(z, {a[0], r[1]});
  }));
}

/// A depthwise filter with a bias and channels that become rows.
inline TestFunction filter(int64_t n, int64_t c, int64_t k) {
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
inline TestFunction spread_rows(int64_t n, int64_t h, int64_t c, int64_t w) {
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

/// Compares the loops with the definition's result.
using ExpectSame = std::function<void(const Scheduled& loops, const TestFunction& f, const std::vector<Constant>& in,
                                      const Constant& expected)>;

/// As tune does: a number at a time, from wherever that is possible. `least`: so many different lists of steps come by.
inline void expect_sound(const MakeLoops& make, const ExpectSame& expect_same, const TestFunction& f, int steps,
                         size_t least) {
  std::vector<Constant> in;
  for (const Buffer& b : f.fn.inputs) in.push_back(small_integers(static_dims(b->shape), uint32_t(in.size() + 1)));
  const Constant expected = evaluate(f.fn, in)[0];
  std::optional<Sketched> at = sketch(make, f, {{"sketch", {}}});
  ASSERT_TRUE(at) << to_text(f.fn);
  std::set<std::string> seen;
  uint64_t dice = 1;
  const auto roll = [&](size_t n) {
    return size_t((dice = dice * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
  };
  for (int i = 0; i < steps; i++) {
    if (seen.insert(text_of(at->written)).second) {
      const std::optional<Sketched> again = sketch(make, f, at->written);
      ASSERT_TRUE(again) << text_of(at->written);
      EXPECT_EQ(text_of(again->written), text_of(at->written));
      ASSERT_EQ(to_text(again->loops.body), to_text(at->loops.body)) << text_of(at->lines);
      SCOPED_TRACE(text_of(at->lines) + to_text(at->loops.body));
      ASSERT_NO_FATAL_FAILURE(expect_same(at->loops, f, in, expected));
    }
    const Knob& k = at->knobs[roll(at->knobs.size())];
    std::vector<PlanLine> lines = {{"sketch", {}}};
    for (const PlanNumber& number : at->lines[0].numbers) {
      const bool changed = number.name == k.name;
      const int64_t value = changed ? k.values.at(int64_t(roll(size_t(k.values.count())))) : number.value;
      lines[0].numbers.push_back({number.name, value});
      if (changed) break;
    }
    if (auto next = sketch(make, f, lines)) at = std::move(next);
  }
  EXPECT_GE(seen.size(), least);
}

}  // namespace tc::testing
