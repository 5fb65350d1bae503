#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "ir/ops/test_cases.h"

namespace tc::case_testing::non_max_suppression_test {
namespace {

using Row = std::vector<int64_t>;

struct Scene {
  int64_t batches = 1, classes = 1, count = 1;
  std::vector<float> boxes, scores;
  Constant boxes_tensor() const { return floats({batches, count, 4}, boxes); }
  Constant scores_tensor() const { return floats({batches, classes, count}, scores); }
};

/// Boxes on a coarse grid, so that many touch or coincide, in either order of corners; few different scores.
Scene random_scene(unsigned seed, int64_t batches, int64_t classes, int64_t count) {
  std::mt19937 g{seed};
  Scene s{batches, classes, count, {}, {}};
  for (int64_t k = 0; k < batches * count * 4; k++) s.boxes.push_back(float(g() % 6));
  for (int64_t k = 0; k < batches * classes * count; k++) s.scores.push_back(float(g() % 8) / 8);
  return s;
}

bool overlap(const float* p, const float* q, float threshold) {
  float common = 1, first = 1, second = 1;
  for (int axis : {1, 0}) {
    const float a = std::min(p[axis], p[axis + 2]), b = std::max(p[axis], p[axis + 2]);
    const float c = std::min(q[axis], q[axis + 2]), d = std::max(q[axis], q[axis + 2]);
    if (std::min(b, d) <= std::max(a, c)) return false;
    common *= std::min(b, d) - std::max(a, c);
    first *= b - a;
    second *= d - c;
  }
  return common / (first + second - common) > threshold;
}

/// Another way to the same: all boxes by falling score, each taken unless one taken before overlaps it.
std::vector<double> expected(const Scene& s, int64_t limit, float threshold, float least) {
  std::vector<double> rows;
  for (int64_t b = 0; b < s.batches; b++)
    for (int64_t c = 0; c < s.classes; c++) {
      const float* score = &s.scores[size_t((b * s.classes + c) * s.count)];
      const float* box = &s.boxes[size_t(b * s.count * 4)];
      Row order(size_t(s.count)), taken;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t p, int64_t q) { return score[p] > score[q]; });
      for (int64_t k : order) {
        const bool dropped = std::any_of(taken.begin(), taken.end(),
                                         [&](int64_t t) { return overlap(box + t * 4, box + k * 4, threshold); });
        if (score[k] > least && !dropped && int64_t(taken.size()) < limit) taken.push_back(k);
      }
      for (int64_t k : taken) rows.insert(rows.end(), {double(b), double(c), double(k)});
    }
  return rows;
}

Call call(const Scene& s, int64_t limit, float threshold, float least) {
  return {"NonMaxSuppression",
          {s.boxes_tensor(), s.scores_tensor(), ints({1}, {limit}), floats({1}, {threshold}), floats({1}, {least})}};
}

ValueType rows_of(int64_t n) { return ValueType::tensor(DType::I64, to_shape({n, 3})); }

TEST(NonMaxSuppression, SelectsTheBestBoxesThatDoNotOverlap) {
  for (unsigned seed = 0; seed < 12; seed++) {
    const Scene s = random_scene(seed, 1 + seed % 2, 1 + seed % 3, 1 + 5 * (seed % 4));
    const float threshold = seed % 3 == 0 ? 0.0f : 0.3f, least = seed % 4 == 0 ? -1.0f : 0.2f;
    const int64_t limit = seed % 5 == 0 ? 2 : 100;
    const std::vector<double> want = expected(s, limit, threshold, least);
    Call declared = call(s, limit, threshold, least);
    declared.declared = {rows_of(int64_t(want.size()) / 3)};
    EXPECT_EQ(values(declared), want) << seed;
    // The number of boxes may come at run time, too.
    declared.run_time = {0, 1, 2, 3, 4};
    EXPECT_EQ(values(declared), want) << seed;
  }
}

TEST(NonMaxSuppression, AnotherNumberOfRowsThanTheDeclaredOneIsRefused) {
  const Scene s = random_scene(3, 1, 2, 9);
  const int64_t right = int64_t(expected(s, 100, 0.3f, 0.2f).size()) / 3;
  for (int64_t wrong : {right - 1, right + 1}) {
    Call c = call(s, 100, 0.3f, 0.2f);
    c.declared = {rows_of(wrong)};
    EXPECT_NE(error_of(c), "") << wrong;
  }
}

TEST(NonMaxSuppression, CountsItsRowsWhereNothingIsDeclared) {
  const Scene s = random_scene(5, 2, 2, 7);
  std::vector<double> want = expected(s, 4, 0.3f, 0.2f);
  Call c = call(s, 4, 0.3f, 0.2f);
  c.outputs = 2;
  const Result r = run(c);
  EXPECT_EQ(values(r.outputs[1]), (std::vector<double>{double(want.size() / 3)}));
  EXPECT_EQ(r.outputs[0]->dims, (Dims{2 * 2 * 4, 3}));  // batches, classes, the limit
  want.resize(size_t(num_elements(r.outputs[0]->dims)), 0);
  EXPECT_EQ(values(r.outputs[0]), want);
}

TEST(NonMaxSuppression, CentersAndDefaults) {
  // Two boxes of 2 x 2 whose centers lie 1 apart overlap by a third of their union; the third box has no area.
  const Constant boxes = floats({1, 3, 4}, {1, 1, 2, 2, 2, 1, 2, 2, 1, 1, 0, 2});
  const Constant scores = floats({1, 1, 3}, {0.5f, 0.75f, 0.25f});
  const Attrs centers = {{"center_point_box", int64_t(1)}};
  Call c = {"NonMaxSuppression", {boxes, scores, ints({}, {5}), floats({}, {0.3f})}, centers, {}, {rows_of(2)}};
  EXPECT_EQ(values(c), (std::vector<double>{0, 0, 1, 0, 0, 2}));
  c.inputs[3] = floats({}, {0.34f});
  c.declared = {rows_of(3)};
  EXPECT_EQ(values(c), (std::vector<double>{0, 0, 1, 0, 0, 0, 0, 0, 2}));
  // Without a limit nothing is selected.
  EXPECT_EQ(run({"NonMaxSuppression", {boxes, scores}}).outputs[0]->dims, (Dims{0, 3}));
  EXPECT_NE(error_of({"NonMaxSuppression", {boxes, floats({1, 1, 2}, {1, 1})}}), "");
  EXPECT_NE(error_of({"NonMaxSuppression", {boxes, scores, ints({2}, {1, 1})}}), "");
}

}  // namespace
}  // namespace tc::case_testing::non_max_suppression_test
