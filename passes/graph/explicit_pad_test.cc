#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::explicit_pad_test {
namespace {

using Ints = std::vector<int64_t>;

TEST(ExplicitPad, ConvolutionsShareOnePad) {
  TestGraph t;
  Value* x = t.op("r", "Relu", {t.in("x", {1, 2, 5, 5})});
  Value* a = t.op("a", "Conv", {x, t.weight("w", {3, 2, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
  Value* b = t.op("b", "Conv", {x, t.weight("v", {3, 2, 3, 3})}, {{"auto_pad", std::string("SAME_UPPER")}});
  Value* c = t.op("c", "Conv", {x, t.weight("u", {3, 2, 3, 3})}, {{"pads", Ints{0, 1, 2, 1}}});
  const Graph g = after_passes(t.out({a, b, c}), {explicit_pad});
  EXPECT_EQ(ops_of(g), "Relu Pad Conv Conv Pad Conv");
}

TEST(ExplicitPad, MaxPoolPadsWithInfinityAndRoundsUp) {
  TestGraph t;
  const Attrs last = {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"data_layout", std::string("NHWC")}};
  Attrs pads = last, ceil = last, small = last;
  pads["pads"] = Ints{1, 1, 1, 1};
  ceil["ceil_mode"] = int64_t(1);
  small["kernel_shape"] = Ints{2, 2};
  small["pads"] = Ints{1, 1, 1, 1};
  Value* x = t.in("x", {1, 6, 6, 2});
  Value* a = t.op("a", "MaxPool", {x}, pads);
  Value* b = t.op("b", "MaxPool", {x}, ceil);
  Value* m = t.op("m", "Neg", {t.op("n", "Abs", {x})});  // the border must not win over negative numbers
  Value* c = t.op("c", "MaxPool", {m}, small);
  const Graph g = after_passes(t.out({a, b, c}), {explicit_pad});
  EXPECT_EQ(ops_of(g), "Pad MaxPool Pad MaxPool Abs Neg Pad MaxPool");
}

TEST(ExplicitPad, PoolsOfFloatsWithTheChannelsFirstStay) {
  TestGraph t;
  Attrs attrs = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  Value* x = t.in("x", {1, 2, 6, 6});
  Value* a = t.op("a", "MaxPool", {x}, attrs);
  attrs["count_include_pad"] = int64_t(1);
  Value* b = t.op("b", "AveragePool", {x}, attrs);
  EXPECT_EQ(ops_of(after_passes(t.out({a, b}), {explicit_pad})), "MaxPool AveragePool");
}

TEST(ExplicitPad, ChannelsLast) {
  TestGraph t;
  Value* x = t.in("x", {1, 3, 5, 5});
  Value* a = t.op("a", "Conv", {x, t.weight("w", {3, 3, 3, 3})}, {{"pads", Ints{1, 2, 1, 2}}, {"strides", Ints{2, 2}}});
  const Graph g = after_passes(t.out({a}), {convert_layout, explicit_pad});
  EXPECT_EQ(ops_of(g), "Transpose Pad Conv Transpose");
}

TEST(ExplicitPad, AveragesThatDoNotCountThePaddingStay) {
  TestGraph t;
  Value* x = t.in("x", {1, 6, 6, 2});
  Attrs attrs = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}, {"data_layout", std::string("NHWC")}};
  Value* a = t.op("a", "AveragePool", {x}, attrs);
  attrs["count_include_pad"] = int64_t(1);
  Value* b = t.op("b", "AveragePool", {x}, attrs);
  EXPECT_EQ(ops_of(after_passes(t.out({a, b}), {explicit_pad}, 1e-6)), "AveragePool Pad AveragePool");
}

TEST(ExplicitPad, WindowsOfOneStayUnpadded) {
  TestGraph t;
  Value* a = t.op("a", "Conv", {t.in("x", {1, 2, 5, 5}), t.weight("w", {3, 2, 1, 1})}, {{"strides", Ints{2, 2}}});
  EXPECT_EQ(ops_of(after_passes(t.out({a}), {explicit_pad})), "Conv");
}

}  // namespace
}  // namespace tc::explicit_pad_test
