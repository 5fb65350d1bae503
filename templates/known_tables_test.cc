// Tables of positions become outputs of the prologue; what reads them is scheduled as if they were operands.
#include "templates/known_tables.h"

#include "ir/ops/test_ops.h"
#include "templates/cpu/test_schedule.h"

namespace tc::known_tables_test {
namespace {

testing::TestFunction node(const char* op, const std::vector<Value*>& in, Graph& g, const Attrs& attrs) {
  Node* n = g.append(op, in, {ModelText("y")}, attrs, "");
  infer_types(g, *n);
  const TensorFn& fn = tensor_fn(*n);
  return {fn, std::vector<bool>(fn.inputs.size(), false)};
}

testing::TestFunction average(bool padding_counts) {
  Graph g;
  Value* x = g.add_constant(ModelText("x"), testing::small_integers({2, 3, 14, 24}, 1));
  return node("AveragePool", {x}, g,
              {{"kernel_shape", Dims{4, 2}},
               {"pads", Dims{2, 1, 2, 1}},
               {"count_include_pad", int64_t(padding_counts ? 1 : 0)}});
}

TEST(KnownTables, AveragesDivideByATable) {
  const testing::TestFunction f = average(false);
  ASSERT_TRUE(known_tables(f.fn));
  testing::expect_equal(f, "window_rows");
  const Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("generic"));
  ASSERT_EQ(s.prologue.outputs.size(), 1u);
  EXPECT_TRUE(s.prologue.inputs.empty());
  EXPECT_EQ(s.inputs.size(), 1u);
}

TEST(KnownTables, NoTableNoChange) {
  EXPECT_FALSE(known_tables(average(true).fn));
  EXPECT_FALSE(known_tables(testing::row_statistics(4, 64).fn));
}

// A result that needs no operand is no table, and neither is one that is as large as what it serves.
TEST(KnownTables, OnlyWhereTheyAreReadOften) {
  for (const bool large : {false, true}) {
    testing::FunctionBuilder b;
    const Buffer x = b.input("x", {6, 20});
    const Dims dims = large ? Dims{6, 20} : Dims{20};
    const Buffer t = b.compute(
        "t", dims, [](const Exprs& i) { return exp(cast(DType::F32, i.back()) * make_float(DType::F32, -1)); });
    const testing::TestFunction f =
        b.take(b.compute("y", {6, 20}, [&](const Exprs& i) { return load(x, i) * load(t, large ? i : Exprs{i[1]}); }));
    EXPECT_EQ(bool(known_tables(f.fn)), !large);
    TensorFn both = f.fn;
    both.outputs.push_back(t);
    EXPECT_FALSE(known_tables(both));
  }
}

}  // namespace
}  // namespace tc::known_tables_test
