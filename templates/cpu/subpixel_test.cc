// Transposed convolutions, subpixel by subpixel, equal the plain loops: any strides, dilations, groups, one to three
// axes.
#include <algorithm>

#include "ir/ops/test_ops.h"
#include "templates/cpu/test_schedule.h"

namespace tc::subpixel_test {
namespace {

struct Shape {
  Dims in, kernel, strides, dilations;  // of the spatial axes
  int64_t c = 8, oc = 16, groups = 1, batch = 1;
  Dims more = Dims(in.size(), 0);  // output_padding
};

// Channels last; pads that leave no position outside of the input, as explicit_pad makes them.
testing::TestFunction transposed(const Shape& s) {
  Graph g;
  Dims x = {s.batch}, w = {s.c, s.oc / s.groups}, pads;
  x.insert(x.end(), s.in.begin(), s.in.end());
  x.push_back(s.c);
  w.insert(w.end(), s.kernel.begin(), s.kernel.end());
  for (size_t d = 0; d < s.in.size(); d++) pads.push_back((s.kernel[d] - 1) * s.dilations[d]);
  for (size_t d = 0; d < s.in.size(); d++) pads.push_back(pads[d] + s.more[d]);
  const std::vector<Value*> in = {g.add_constant(ModelText("x"), testing::small_integers(x, 1)),
                                  g.add_constant(ModelText("w"), testing::small_integers(w, 2)),
                                  g.add_constant(ModelText("b"), testing::small_integers({s.oc}, 3))};
  Node* n = g.append("ConvTranspose", in, {ModelText("y")},
                     {{"data_layout", std::string("NHWC")},
                      {"strides", s.strides},
                      {"dilations", s.dilations},
                      {"pads", pads},
                      {"output_padding", s.more},
                      {"group", s.groups}},
                     "");
  infer_types(g, *n);
  return {tensor_fn(*n), {false, true, true}};
}

TEST(CpuSubpixels, StridesKernelsAndDilations) {
  for (const int64_t stride : {2, 3, 5})
    for (const int64_t kernel : {1, 2, 3, 4, 7})
      for (const int64_t dilation : {1, 2})
        testing::expect_equal(transposed({{9}, {kernel}, {stride}, {dilation}}), "phases");
}

TEST(CpuSubpixels, AxesGroupsAndPadding) {
  testing::expect_equal(transposed({{7, 6}, {4, 4}, {2, 2}, {1, 1}, 5, 33}), "phases");
  testing::expect_equal(transposed({{6, 7}, {3, 5}, {2, 3}, {2, 1}, 12, 24, 3}), "phases");
  testing::expect_equal(transposed({{6, 7}, {3, 4}, {1, 2}, {1, 1}, 20, 20, 20}), "phases");  // channel by channel
  testing::expect_equal(transposed({{4, 5, 4}, {2, 3, 4}, {2, 2, 2}, {1, 1, 1}, 4, 16, 1, 2}), "phases");
  testing::expect_equal(transposed({{5, 6}, {4, 4}, {2, 2}, {1, 1}, 16, 3}), "phases");  // a picture
}

// One channel: results of different subpixels lie side by side, and vectors run along the sum.
TEST(CpuSubpixels, OneChannel) {
  testing::expect_equal(transposed({{9}, {16}, {8}, {1}, 32, 1}), "phases");
  testing::expect_equal(transposed({{6, 7}, {3, 3}, {2, 2}, {1, 1}, 12, 1}), "phases");        // uneven subpixels
  testing::expect_equal(transposed({{5, 6}, {2, 2}, {3, 3}, {1, 1}, 16, 1, 1, 2}), "phases");  // some take no terms
  testing::expect_equal(transposed({{7}, {128}, {64}, {1}, 20, 1, 1, 2}), "phases");           // a short-time spectrum
  testing::expect_equal(transposed({{3, 4}, {32, 32}, {16, 16}, {1, 1}, 9, 1}), "phases");
}

// One channel of few terms: each subpixel a formula, stored in turn.
TEST(CpuSubpixels, InTurn) {
  testing::expect_equal(transposed({{9, 40}, {4, 4}, {2, 2}, {1, 1}, 1, 1}), "phases");
  testing::expect_equal(transposed({{5, 35}, {3, 3}, {3, 3}, {1, 1}, 2, 1, 1, 2}),
                        "phases");  // results behind the last three
  testing::expect_equal(transposed({{4, 33}, {5, 7}, {2, 4}, {1, 1}, 3, 1}), "phases");
  testing::expect_equal(transposed({{4, 5}, {3, 3}, {2, 2}, {1, 1}, 1, 1}), "phases");   // too short for vectors
  testing::expect_equal(transposed({{3, 20}, {2, 2}, {3, 3}, {1, 1}, 1, 1}), "phases");  // some take no terms
}

// Few channels of subpixels that take the same elements: columns of one product.
TEST(CpuSubpixels, ChannelsOfSeveralSubpixels) {
  for (const int64_t channels : {2, 3, 5}) {
    const testing::TestFunction f = transposed({{6, 7}, {4, 4}, {4, 4}, {1, 1}, 9, channels});
    testing::expect_equal(f, "phases");
    const Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("generic"));
    EXPECT_TRUE(std::any_of(s.prologue_layouts.begin(), s.prologue_layouts.end(), [](const std::string& l) {
      return l == "packed: ow_phase_oc";
    }));  // the bias of each column
  }
}

// Several axes of many subpixels: a kernel a group, not one a subpixel.
TEST(CpuSubpixels, EvenSubpixelsAreOneFunction) {
  const testing::TestFunction f = transposed({{5, 5}, {16, 16}, {8, 8}, {1, 1}});
  testing::expect_equal(f, "phases");
  const Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("generic"));
  EXPECT_LE(s.prologue.outputs.size(), 4u);
}

}  // namespace
}  // namespace tc::subpixel_test
