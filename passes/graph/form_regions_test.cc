#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::form_regions_test {
namespace {

const std::vector<void (*)(Graph&, PassContext&)> kRegions = {
    convert_layout, explicit_pad, simplify_expr, fold_constant, to_functions, compose_moves, fuse_ops, form_regions};

struct Block {
  int64_t size = 32, channels = 4, expanded = 600, stride = 1;
  bool squeeze = false, second_reader = false, residual = false;
};

Graph inverted_residual(const Block& b) {
  TestGraph t;
  Value* in = t.in("x", {1, b.channels, b.size, b.size});
  Value* x = t.op("stem", "Conv", {in, t.weight("ws", {b.channels, b.channels, 3, 3})},
                  {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  Value* e = t.op("e", "Relu", {t.op("expand", "Conv", {x, t.weight("we", {b.expanded, b.channels, 1, 1})})});
  Value* d = t.op("d", "Relu",
                  {t.op("filter", "Conv", {e, t.weight("wd", {b.expanded, 1, 3, 3}), t.weight("bd", {b.expanded})},
                        {{"group", b.expanded},
                         {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                         {"strides", std::vector<int64_t>{b.stride, b.stride}}})});
  if (b.squeeze) d = t.op("s", "Mul", {d, t.op("pool", "GlobalAveragePool", {d})});
  Value* y = t.op("y", "Conv", {d, t.weight("wp", {b.channels, b.expanded, 1, 1})});
  if (b.residual) y = t.op("r", "Add", {y, x});
  Value* z = t.op("head", "Conv", {y, t.weight("wh", {b.channels, b.channels, 3, 3})});
  return b.second_reader ? t.out({z, e}) : t.out({z});
}

/// How many kernels hold an expansion, a filter and a projection.
int regions_of(const Graph& before, bool strict_fp = false) {
  TestTarget target;
  PassContext& cx = target.cx;
  cx.options.strict_fp = strict_fp;
  Graph g = before.clone();
  for (auto* pass : kRegions) {
    pass(g, cx);
    verify(g);
  }
  int regions = 0;
  for (const auto& n : g.nodes()) {
    int sums = 0;
    if (n->fn)
      for (const Stage& s : n->fn->stages) sums += s.kind == Stage::Kind::Reduce;
    regions += sums == 3;
  }
  return regions;
}

TEST(FormRegions, InvertedResidualsLargerThanTheCaches) {
  EXPECT_EQ(regions_of(inverted_residual({})), 1);
  EXPECT_EQ(regions_of(inverted_residual({.stride = 2})), 1);
  EXPECT_EQ(regions_of(inverted_residual({.residual = true})), 1);
}

TEST(FormRegions, WhatStaysInTheCachesStaysApart) { EXPECT_EQ(regions_of(inverted_residual({.expanded = 64})), 0); }

TEST(FormRegions, OtherReadersForbidARegion) {
  EXPECT_EQ(regions_of(inverted_residual({.squeeze = true})), 0);
  EXPECT_EQ(regions_of(inverted_residual({.second_reader = true})), 0);
}

TEST(FormRegions, StrictFloatingPointKeepsTheOrderOfSums) { EXPECT_EQ(regions_of(inverted_residual({}), true), 0); }

TEST(FormRegions, ResultsStayTheSame) {
  (void)after_passes(inverted_residual({.size = 24, .expanded = 512, .residual = true}), kRegions);
}

}  // namespace
}  // namespace tc::form_regions_test
