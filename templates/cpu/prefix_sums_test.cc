// Sums that go on from the one before equal those of the definition, which has their axis in front.
#include "templates/cpu/test_schedule.h"

namespace tc::prefix_sums_test {
namespace {

struct Form {
  int axis;
  bool exclusive, reverse;
};

// As CumSum is defined: a scan, and a stage that moves the axis back to its place.
testing::TestFunction running_sums(const Dims& dims, const Form& form, Op op = Op::Add) {
  const int64_t n = dims[size_t(form.axis)];
  Dims scanned = dims;
  scanned.erase(scanned.begin() + form.axis);
  scanned.insert(scanned.begin(), n);
  const Buffer x = make_buffer("x", DType::F32, to_shape(dims)), s = make_buffer("s", DType::F32, to_shape(scanned)),
               y = make_buffer("y", DType::F32, to_shape(dims));
  Stage scan, moved;
  Exprs here, at;
  for (size_t d = 0; d < dims.size(); d++) {
    scan.axes.push_back({make_var("i" + std::to_string(d)), Dim(scanned[d])});
    moved.axes.push_back({make_var("j" + std::to_string(d)), Dim(dims[d])});
    here.push_back(Expr(scan.axes[d].var));
    at.push_back(Expr(moved.axes[d].var));
  }
  const Expr step = here[0];
  auto term = [&](const Expr& t) {
    Exprs index(here.begin() + 1, here.end());
    index.insert(index.begin() + form.axis, form.reverse ? Expr(n - 1) - t : t);
    return load(x, index);
  };
  Exprs before = here;
  before[0] = step - Expr(1);
  const Expr first = form.exclusive ? make_float(DType::F32, op == Op::Mul ? 1 : 0) : term(step);
  scan.values = {
      select(eq(step, 0), first, apply(op, {load(s, before), term(form.exclusive ? step - Expr(1) : step)}))};
  scan.outputs = {s};
  scan.scan = 0;
  const Expr place = form.reverse ? Expr(n - 1) - at[size_t(form.axis)] : at[size_t(form.axis)];
  at.erase(at.begin() + form.axis);
  at.insert(at.begin(), place);
  moved.values = {load(s, at)};
  moved.outputs = {y};
  testing::TestFunction f;
  f.fn.inputs = {x};
  f.fn.outputs = {y};
  f.fn.stages = {scan, moved};
  f.constant = {false};
  return f;
}

TEST(CpuPrefixSums, EqualTheDefinition) {
  for (const bool exclusive : {false, true})
    for (const bool reverse : {false, true}) {
      for (const Dims& dims : std::vector<Dims>{{9}, {1, 9}, {4, 9}, {3, 7}, {5, 23}, {2, 3, 11}, {1, 1, 2}})
        testing::expect_equal(running_sums(dims, {int(dims.size()) - 1, exclusive, reverse}), "prefix_sums");
      for (const Dims& dims : std::vector<Dims>{{9, 37}, {9, 3}, {9, 1}, {2, 5, 16}, {3, 4, 5}, {2, 3, 4, 6}, {70, 60}})
        for (int axis = 0; axis + 1 < int(dims.size()); axis++)
          testing::expect_equal(running_sums(dims, {axis, exclusive, reverse}), "prefix_sums", "x86-64-v3");
    }
  testing::expect_equal(running_sums({3, 6}, {1, true, false}, Op::Mul), "prefix_sums");
}

TEST(CpuPrefixSums, RowsAreSharedAmongThreads) {
  const testing::TestFunction rows = running_sums({70, 500}, {1, false, false}),
                              few = running_sums({7, 50}, {1, false, false});
  const auto text = [](const testing::TestFunction& f) {
    return to_text(schedule_cpu(f.fn, f.constant, *find_cpu("generic"), {}).body);
  };
  EXPECT_NE(text(rows).find("parallel"), std::string::npos) << text(rows);
  EXPECT_EQ(text(few).find("parallel"), std::string::npos) << text(few);
  testing::expect_equal(rows, "prefix_sums");
}

// What is made of the sums on the way must be as the definition makes it: only moves are known.
TEST(CpuPrefixSums, OthersAreStages) {
  testing::TestFunction part = running_sums({4, 9}, {1, false, false});
  Stage& moved = part.fn.stages[1];
  moved.values = {load(part.fn.stages[0].outputs[0], {Expr(moved.axes[1].var), Expr(0)})};  // one row, four times
  testing::expect_equal(part, "stages");
}

}  // namespace
}  // namespace tc::prefix_sums_test
