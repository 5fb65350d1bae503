#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::combine_parallel_dense_test {
namespace {

Value* dense(TestGraph& t, Value* x, const std::string& n, int64_t out) {
  return t.op(n + "a", "Add", {t.op(n + "m", "MatMul", {x, t.weight(n + "w", {4, out})}), t.weight(n + "b", {out})});
}

Value* reshaped(TestGraph& t, Value* v, const std::string& name, int64_t out) {
  return t.op(name, "Reshape", {v, t.ints(name + "s", {2, 3, out / 2, 2})});
}

TEST(CombineParallelDense, QueryKeyAndValue) {
  TestGraph t;
  Value* x = t.op("x0", "Relu", {t.in("x", {2, 3, 4})});
  Value* q = reshaped(t, dense(t, x, "q", 6), "qr", 6);
  Value* k = reshaped(t, dense(t, x, "k", 2), "kr", 2);
  Value* v = reshaped(t, dense(t, x, "v", 6), "vr", 6);
  const Graph g = after_passes(t.out({q, k, v}), {combine_parallel_dense});
  EXPECT_EQ(ops_of(g), "Relu MatMul Add Slice Slice Slice Reshape Reshape Reshape");
}

TEST(CombineParallelDense, ProductsThatMultiplyEachOtherStay) {
  TestGraph t;
  Value* x = t.in("x", {2, 3, 4});
  Value* y = t.op("y", "Mul", {t.op("s", "Sigmoid", {dense(t, x, "g", 6)}), dense(t, x, "u", 6)});
  EXPECT_EQ(ops_of(after_passes(t.out({y}), {combine_parallel_dense}, 1e-6)), "MatMul Add Sigmoid MatMul Add Mul");
}

TEST(CombineParallelDense, OtherOperandsAndLoneProductsStay) {
  TestGraph t;
  Value* a = reshaped(t, dense(t, t.in("x", {2, 3, 4}), "a", 6), "ar", 6);
  Value* b = reshaped(t, dense(t, t.in("z", {2, 3, 4}), "b", 6), "br", 6);
  EXPECT_EQ(ops_of(after_passes(t.out({a, b}), {combine_parallel_dense})), "MatMul Add Reshape MatMul Add Reshape");
}

}  // namespace
}  // namespace tc::combine_parallel_dense_test
