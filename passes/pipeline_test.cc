#include <chrono>

#include "passes/graph/test_graph.h"
#include "passes/pass.h"

namespace tc::pipeline_test {
namespace {

Graph through_all(const Graph& before, int level, double tolerance) {
  Graph g = before.clone();
  TestTarget target;
  PassContext& cx = target.cx;
  cx.options.opt_level = level;
  cx.options.verify_each = true;
  std::string log;
  run_passes(graph_passes(), g, cx, log);
  expect_same(before, g, 11, tolerance);
  return g;
}

using Ints = std::vector<int64_t>;

TEST(Pipeline, AConvolutionalNetworkBecomesFewKernels) {
  TestGraph t;
  Value* x = t.in("x", {1, 3, 8, 8});
  auto block = [&](const std::string& name, Value* v, int64_t in, int64_t out) {
    Value* c = t.op(name + "c", "Conv", {v, t.weight(name + "w", {out, in, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
    Value* b = t.op(name + "b", "BatchNormalization",
                    {c, t.weight(name + "s", {out}), t.weight(name + "t", {out}), t.weight(name + "m", {out}),
                     t.weight(name + "v", {out}, 1, 4)});
    return t.op(name + "r", "Relu", {b});
  };
  Value* a = block("a", x, 3, 4);
  Value* s = t.op("s", "Add", {a, block("b", a, 4, 4)});
  Value* p = t.op("p", "GlobalAveragePool", {s});
  Value* y = t.op("y", "Gemm", {t.op("f", "Flatten", {p}), t.weight("g", {5, 4}), t.weight("h", {5})},
                  {{"transB", int64_t(1)}});
  const Graph before = t.out({y});
  const Graph g = through_all(before, 2, 1e-5);
  EXPECT_EQ(kernels_of(g),
            "transpose+pad conv2d+bias+relu pad conv2d+bias+relu+add reduce_mean+reduce_mean Reshape matmul+add");
  through_all(before, 0, 1e-5);
  through_all(before, 1, 1e-5);
}

TEST(Pipeline, VerifyingEachPassLeavesAModelsProblemAProblem) {
  TestGraph t;
  Value* x = t.in("x", {2, 3});
  Node* n = t.g.append("MatMul", {x, x}, {ModelText("y")});
  Graph g = t.out({t.g.append("Relu", {n->outputs[0]}, {ModelText("z")})->outputs[0]});
  Diagnostics problems;
  TestTarget target;
  PassContext& cx = target.cx;
  cx.diagnostics = &problems;
  cx.options.verify_each = true;
  std::string log;
  run_passes({graph_passes().front()}, g, cx, log);
  EXPECT_TRUE(problems.has_errors());
}

TEST(Pipeline, AttentionReadsItsHeadsInPlace) {
  TestGraph t;
  Value* x = t.in("x", {1, 6, 8});
  auto heads = [&](const std::string& n, const Ints& perm) {
    Value* m = t.op(n + "m", "MatMul", {x, t.weight(n + "w", {8, 8})});
    Value* a = t.op(n + "a", "Add", {m, t.weight(n + "b", {8})});
    return t.op(n + "t", "Transpose", {t.op(n + "r", "Reshape", {a, t.ints(n + "s", {1, 6, 2, 4})})}, {{"perm", perm}});
  };
  Value *q = heads("q", {0, 2, 1, 3}), *k = heads("k", {0, 2, 3, 1}), *v = heads("v", {0, 2, 1, 3});
  Value* s = t.op("s", "Div", {t.op("qk", "MatMul", {q, k}), t.scalar("two", 2)});
  Value* o = t.op("o", "MatMul", {t.op("p", "Softmax", {s}, {{"axis", int64_t(-1)}}), v});
  Value* c =
      t.op("c", "Reshape", {t.op("ot", "Transpose", {o}, {{"perm", Ints{0, 2, 1, 3}}}), t.ints("cs", {1, 6, 8})});
  const Graph g = through_all(t.out({c}), 2, 1e-5);
  EXPECT_EQ(kernels_of(g),
            "matmul+add transpose+transpose+matmul+mul max+exp+sum+softmax "
            "transpose+matmul+transpose Reshape");
}

TEST(Pipeline, LongGraphsTakeLinearTime) {
  TestGraph t;
  Value* v = t.in("x", {4});
  for (int i = 0; i < 20000; ++i) v = t.op("v" + std::to_string(i), i % 3 ? "Sigmoid" : "Neg", {v});
  Graph g = t.out({v});
  TestTarget target;
  PassContext& cx = target.cx;
  std::string log;
  const auto start = std::chrono::steady_clock::now();
  run_passes(graph_passes(), g, cx, log);
  // A second on an idle machine; quadratic passes would take minutes.
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 15.0);
}

}  // namespace
}  // namespace tc::pipeline_test
