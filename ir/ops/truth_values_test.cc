// Operands of truth values: a row has a meaning for them or refuses them. No sum and no product of theirs gets through,
// and what gets through is said by its text.
#include <gtest/gtest.h>

#include "ir/language/test_round_trip.h"
#include "ir/loop/build.h"
#include "ir/ops/op.h"
#include "ir/verify.h"

namespace tc::truth_values_test {
namespace {

struct Call {
  std::string op;
  std::vector<Dims> shapes;  // of the operands
  Attrs attrs = {};
  std::string domain = "";
};

/// What a node with operands of these types means is sound; else the message that refuses it.
std::string refusal(const Call& c, const std::vector<DType>& types) {
  Graph g;
  std::vector<Value*> in;
  for (size_t k = 0; k < c.shapes.size(); k++)
    in.push_back(g.add_input(ModelText("x" + to_text(int64_t(k))), ValueType::tensor(types[k], to_shape(c.shapes[k]))));
  Node* n = g.append(c.op, in, {ModelText("y")}, c.attrs, c.domain);
  g.set_outputs(n->outputs);
  const OpRow& row = *find_op(c.domain, c.op);
  try {
    if (row.expand && row.expand(g, n)) g.erase(n);
    for (const auto& node : g.nodes()) {
      infer_types(g, *node);
      verify(tensor_fn(*node));
      language::testing::expect_round_trip(tensor_fn(*node));
    }
  } catch (const Error& e) {
    return e.diagnostic().render();
  }
  return "";
}

std::string refusal(const Call& c, DType t) { return refusal(c, std::vector<DType>(c.shapes.size(), t)); }

const Attrs kWindow = {{"kernel_shape", std::vector<int64_t>{2, 2}}};

TEST(TruthValues, HaveNoSumsAndProducts) {
  const Dims image = {1, 4, 4, 4}, square = {4, 4}, row = {4};
  const std::string ms = "com.microsoft";
  std::vector<Call> calls = {
      {"AveragePool", {image}, kWindow},
      {"LpPool", {image}, kWindow},
      {"LRN", {image}, {{"size", int64_t(3)}}},
      {"Conv", {image, {4, 4, 1, 1}}, {}},
      {"ConvTranspose", {image, {4, 4, 1, 1}}, {}},
      {"Gemm", {square, square}},
      {"Gemm", {square, square, row}},
      {"Einsum", {square, square}, {{"equation", std::string("ij,jk->ik")}}},
      {"LayerNormalization", {square, row}},
      {"RMSNormalization", {square, row}},
      {"InstanceNormalization", {image, row, row}},
      {"BatchNormalization", {image, row, row, row, row}},
      {"LpNormalization", {square}, {{"p", int64_t(1)}}},
      {"FusedMatMul", {square, square}, {}, ms},
      {"FusedConv", {image, {4, 4, 1, 1}}, {}, ms},
      {"SkipLayerNormalization", {{1, 4, 4}, {1, 4, 4}, row}, {}, ms},
      {"BiasGelu", {square, row}, {}, ms},
  };
  for (const char* op : {"GlobalAveragePool",
                         "GlobalLpPool",
                         "LpNormalization",
                         "MeanVarianceNormalization",
                         "ReduceSum",
                         "ReduceMean",
                         "ReduceProd",
                         "ReduceL1",
                         "ReduceL2",
                         "ReduceSumSquare",
                         "ReduceLogSum",
                         "ReduceLogSumExp",
                         "Softmax",
                         "LogSoftmax",
                         "Neg",
                         "Reciprocal",
                         "LeakyRelu",
                         "HardSigmoid",
                         "HardSwish",
                         "Softsign"})
    calls.push_back({op, {image}});
  for (const char* op : {"MatMul", "Add", "Sub", "Mul", "Div", "Mod", "Pow", "Sum", "Mean"})
    calls.push_back({op, {square, square}});
  for (const Call& c : calls) {
    EXPECT_EQ(refusal(c, DType::F32), "") << c.op;
    const std::string why = refusal(c, DType::Bool);
    EXPECT_NE(why.find("node of type " + c.op), std::string::npos) << c.op << ": " << why;
  }
}

TEST(TruthValues, AloneHaveLogic) {
  for (const char* op : {"And", "Or"}) {
    EXPECT_EQ(refusal({op, {{2}, {2}}}, DType::Bool), "");
    EXPECT_NE(refusal({op, {{2}, {2}}}, DType::F32).find(" is of bool, not of f32"), std::string::npos);
  }
  EXPECT_NE(refusal({"Not", {{2}}}, DType::I32).find("not is of bool, not of i32"), std::string::npos);
}

TEST(TruthValues, HaveLargestAndSmallest) {
  for (const char* op : {"ReduceMax", "ReduceMin"}) EXPECT_EQ(refusal({op, {{2, 3}}}, DType::Bool), "");
}

// Every row on operands of all ranks, all of truth values or one of them.
TEST(TruthValues, NoRowIsAtALoss) {
  int sound = 0, refused = 0;
  for (const OpRow* row : all_ops()) {
    if ((!row->define && !row->expand) || row->domain == "tc") continue;  // the compiler's own get what they need
    for (int operands = 1; operands <= 3; operands++)
      for (int rank = 0; rank <= 4; rank++)
        for (int only = -1; only < operands; only++) {
          Call c{std::string(row->name), {}, {}, std::string(row->domain)};
          c.shapes.assign(size_t(operands), Dims(size_t(rank), 2));
          for (const AttrSpec& a : row->attrs)
            if (a.name == "kernel_shape" && rank > 2)
              c.attrs["kernel_shape"] = std::vector<int64_t>(size_t(rank) - 2, 2);
          std::vector<DType> types(size_t(operands), only < 0 ? DType::Bool : DType::F32);
          if (only >= 0) types[size_t(only)] = DType::Bool;
          try {
            (refusal(c, types).empty() ? sound : refused)++;
          } catch (const std::exception& e) {
            ADD_FAILURE() << c.op << " of " << operands << " operands of rank " << rank << ", bool " << only << ": "
                          << e.what();
          }
        }
  }
  EXPECT_GT(sound, 500);
  EXPECT_GT(refused, 5000);
}

TEST(TruthValues, HaveTwoConstants) {
  for (const double v : {-1.5, 0.25, 1.0, 7.0}) EXPECT_EQ(as_const_int(make_const(DType::Bool, v)), 1) << v;
  EXPECT_EQ(as_const_int(make_const(DType::Bool, 0)), 0);
}

}  // namespace
}  // namespace tc::truth_values_test
