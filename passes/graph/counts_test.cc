// Sizes as polynomials of counts, against numbers.
#include "passes/graph/counts.h"

#include <gtest/gtest.h>

#include "ir/test_random.h"
#include "passes/graph/test_graph.h"

namespace tc::counts_test {
namespace {

/// Counts a, b and c of 0 to 9, 2 to 7 and 1 to 40.
struct Sizes {
  Graph g;
  Counts counts;
  std::vector<Value*> values;
  Sizes() {
    for (const auto& [name, least, most] : {std::tuple("a", 0, 9), {"b", 2, 7}, {"c", 1, 40}, {"d", 90, 200}}) {
      values.push_back(g.add_input(ModelText(name), ValueType::tensor(DType::I64, {})));
      counts.add(values.back(), most, least);
    }
  }
  SizeForm of(size_t k) const { return *counts.find(values[k]); }
};

TEST(Counts, ProductsAndQuotients) {
  Sizes s;
  const SizeForm a = s.of(0), b = s.of(1), c = s.of(2);
  EXPECT_EQ((a + b) * (a - b), a * a - b * b);
  EXPECT_EQ(exact_quotient(a * b * 6, b * 2), a * 3);
  EXPECT_EQ(exact_quotient((a + fixed_size(1)) * (b * c + a), b * c + a), a + fixed_size(1));
  EXPECT_FALSE(exact_quotient(a * b + a, b));
  EXPECT_FALSE(exact_quotient(a * 3, fixed_size(2)));
  EXPECT_FALSE(exact_quotient(a, fixed_size(0)));
  EXPECT_EQ(s.counts.bound(a * b - c), 62);
  EXPECT_EQ(s.counts.least(a * b - c), -40);
  EXPECT_EQ(s.counts.least(b * c), 2);
}

TEST(Counts, WhereFormsOfOneCountAreEqual) {
  Sizes s;
  const SizeForm b = s.of(1), c = s.of(2), halved = s.counts.quotient(c, 2);
  const auto same = s.counts.where_equal(s.counts.quotient(halved, 2) * 2, halved);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->count, s.values[2]);
  EXPECT_EQ(same->factor, 4);
  EXPECT_EQ(same->least, 1);
  EXPECT_EQ(same->most, 10);
  const SizeForm rows = s.of(3),
                 quarter = s.counts.quotient(s.counts.quotient(rows + fixed_size(1), 2) + fixed_size(1), 2);
  const auto met = s.counts.where_equal(quarter * 4, rows);  // 90, 120, ... 180 do by chance, halved upwards
  ASSERT_TRUE(met);
  EXPECT_EQ(met->factor, 4);
  EXPECT_FALSE(s.counts.where_equal(c, c + fixed_size(1))) << "never";
  EXPECT_FALSE(s.counts.where_equal(b, c)) << "two counts";
  EXPECT_FALSE(s.counts.where_equal(s.counts.quotient(b, 8) * 8, b)) << "no multiple of 8 from 2 to 7";
}

TEST(Counts, EqualQuotientsAreEqual) {
  Sizes s;
  const SizeForm c = s.of(2);
  const auto half_up = [&](const SizeForm& f) { return s.counts.quotient(f + fixed_size(1), 2); };
  EXPECT_EQ(half_up(half_up(c)), s.counts.quotient(c + fixed_size(3), 4));
  EXPECT_EQ(s.counts.quotient(c * 6 + fixed_size(5), 3), c * 2 + fixed_size(1));
  EXPECT_EQ(s.counts.quotient(c * 2 + fixed_size(4), 6), s.counts.quotient(c + fixed_size(2), 3));
  EXPECT_EQ(s.counts.quotient(c * -1, 2), s.counts.quotient(c * 1, 2) - c);
  EXPECT_NE(s.counts.quotient(c, 2), half_up(c));
  EXPECT_EQ(s.counts.bound(half_up(c)), 20);
  EXPECT_EQ(s.counts.least(s.counts.quotient(c, 2)), 0);
}

TEST(Counts, RemaindersAndEndsAreKnownByTheirEnds) {
  Sizes s;
  const SizeForm c = s.of(2), four = fixed_size(4);
  const auto mod4 = [&](const SizeForm& f) { return f - s.counts.quotient(f, 4) * 4; };
  EXPECT_EQ(s.counts.bound(mod4(c)), 3);
  EXPECT_EQ(s.counts.least(mod4(c)), 0);
  const SizeForm up = c + mod4(four - mod4(c));  // filled up to a multiple of 4
  EXPECT_EQ(exact_quotient(up, four), s.counts.quotient(c + fixed_size(3), 4));
  EXPECT_EQ(s.counts.bound(up), 40);
  const SizeForm a = s.of(0), b = s.of(1);
  EXPECT_EQ(s.counts.lesser(c, fixed_size(40)), c);
  EXPECT_EQ(s.counts.lesser(a, b), s.counts.lesser(b, a));
  EXPECT_EQ(s.counts.bound(s.counts.lesser(a, b)), 7);
  EXPECT_EQ(s.counts.least(s.counts.larger(a, b)), 2);
  EXPECT_EQ(s.counts.least(s.counts.larger(a - c, fixed_size(0))), 0);
}

/// What a form's value computes, for numbers.
int64_t number_of(const Value* v, const std::vector<Value*>& symbols, const std::vector<int64_t>& numbers) {
  if (v->constant) return v->constant->as_int(0);
  for (size_t k = 0; k < symbols.size(); k++)
    if (symbols[k] == v) return numbers[k];
  const Node& n = *v->producer;
  const int64_t x = number_of(n.inputs[0], symbols, numbers), y = number_of(n.inputs[1], symbols, numbers);
  return n.is("Add") ? x + y : n.is("Mul") ? x * y : x / y;
}

TEST(Counts, RandomFormsComputeWhatTheySay) {
  testing::Dice dice(7);
  const auto between = [&](int64_t least, int64_t most) { return least + dice.below(most - least + 1); };
  for (int round = 0; round < 200; round++) {
    Sizes s;
    const std::vector<int64_t> numbers = {between(0, 9), between(2, 7), between(1, 40)};
    std::vector<std::pair<SizeForm, int64_t>> forms;
    for (size_t k = 0; k < 3; k++) forms.push_back({s.of(k), numbers[k]});
    forms.push_back({fixed_size(3), 3});
    for (int step = 0; step < 6; step++) {
      const auto [f, x] = forms[size_t(between(0, int64_t(forms.size()) - 1))];
      const auto [h, y] = forms[size_t(between(0, int64_t(forms.size()) - 1))];
      const int64_t n = between(1, 6);
      switch (between(0, 2)) {
        case 0: forms.push_back({f + h * n, x + y * n}); break;
        case 1:
          if (f.terms.size() + h.terms.size() < 6) forms.push_back({f * h, x * y});
          break;
        default: forms.push_back({s.counts.quotient(f + fixed_size(n), n + 1), (x + n) / (n + 1)});
      }
    }
    for (const auto& [f, x] : forms) {
      EXPECT_LE(s.counts.least(f), x);
      EXPECT_GE(s.counts.bound(f), x);
      if (f.fixed())
        EXPECT_EQ(f.addend, x);
      else
        EXPECT_EQ(number_of(s.counts.value_of(s.g, nullptr, f, ModelText("v")), s.values, numbers), x);
    }
  }
}

}  // namespace
}  // namespace tc::counts_test
