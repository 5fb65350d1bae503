// Rows of the tool written as operators of a user's: one function, and the same bytes of C and CUDA.
#include <gtest/gtest.h>

#include "emit_c/package.h"
#include "emit_cuda/package.h"
#include "ir/identity.h"
#include "ir/language/function_text.h"
#include "ir/language/user_ops.h"
#include "passes/pass.h"
#include "passes/program/build_program.h"
#include "passes/test_target.h"

namespace tc::rows_test {
namespace {

struct Row {
  std::string op;      // of ONNX
  std::string header;  // what stands behind the name in its definition
  std::vector<Dims> inputs;
  Attrs attrs = {};
  DType type = DType::F32;
  bool in_one_layout =
      false;  // the passes that choose layouts know the tool's operator; a user's stays as it is written
};

std::string unary(const std::string& name, const std::string& formula) {
  return "<T: float>(x: T[*S]) -> " + name + ": T[*S]\n  " + name + "[*i] = " + formula;
}
std::string unary(const std::string& name, const std::string& attributes, const std::string& formula) {
  return "<T: float>(x: T[*S], " + attributes + ") -> " + name + ": T[*S]\n  " + name + "[*i] = " + formula;
}
std::string binary(const std::string& name, const std::string& formula, const std::string& result = "T") {
  return "<T: number>(a: T[*S], b: T[*S]) -> " + name + ": " + result + "[*S]\n  " + name + "[*i] = " + formula;
}

std::vector<Row> rows() {
  const std::vector<Dims> one = {{3, 37}}, two = {{3, 37}, {3, 37}};
  return {
      {"Relu", unary("relu", "max(x[*i], 0)"), one},
      {"Sigmoid", unary("sigmoid", "sigmoid(x[*i])"), one},
      {"Tanh", unary("tanh", "tanh(x[*i])"), {{2, 3, 4, 5}}},
      {"Softplus", unary("softplus", "max(x[*i], 0) + log1p(exp(-abs(x[*i])))"), one},
      {"Softsign", unary("softsign", "x[*i] / (1 + abs(x[*i]))"), one},
      {"Mish", unary("mish", "x[*i] * tanh(max(x[*i], 0) + log1p(exp(-abs(x[*i]))))"), one, {}, DType::F16},
      {"Elu", unary("elu", "alpha: float = 1", "where(x[*i] < 0, alpha * expm1(x[*i]), x[*i])"), one},
      {"Selu",
       unary("selu", "alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875",
             "gamma * where(x[*i] <= 0, alpha * expm1(x[*i]), x[*i])"),
       one},
      {"Celu", unary("celu", "alpha: float = 1", "max(0, x[*i]) + min(0, alpha * expm1(x[*i] / alpha))"), one},
      {"LeakyRelu",
       unary("leaky_relu", "alpha: float = 0.01", "where(x[*i] < 0, alpha * x[*i], x[*i])"),
       one,
       {{"alpha", 0.3f}}},
      {"ThresholdedRelu", unary("thresholded_relu", "alpha: float = 1", "where(x[*i] > alpha, x[*i], 0)"), one},
      {"Shrink",
       unary("shrink", "bias: float = 0, lambd: float = 0.5",
             "where(x[*i] < -T(lambd), x[*i] + bias, where(x[*i] > lambd, x[*i] - bias, 0))"),
       one,
       {{"bias", 0.25f}}},
      {"HardSigmoid",
       unary("hard_sigmoid", "alpha: float = 0.2, beta: float = 0.5", "max(0, min(1, alpha * x[*i] + beta))"), one},
      {"HardSwish", unary("hard_swish", "x[*i] * max(0, min(1, x[*i] * (1 / 6) + 0.5))"), one},
      {"Exp", unary("exp", "exp(x[*i])"), {{7}}},
      {"Sqrt", unary("sqrt", "sqrt(x[*i])"), one, {}, DType::F64},
      {"Abs", unary("abs", "abs(x[*i])"), one},
      {"Neg", unary("neg", "-x[*i]"), one},
      {"Floor", unary("floor", "floor(x[*i])"), one},
      {"Erf", unary("erf", "erf(x[*i])"), one},
      {"Add", binary("add", "a[*i] + b[*i]"), two},
      {"Sub", binary("sub", "a[*i] - b[*i]"), two, {}, DType::I32},
      {"Mul", binary("mul", "a[*i] * b[*i]"), two, {}, DType::BF16},
      {"Div", binary("div", "a[*i] / b[*i]"), two},
      {"Less", binary("less", "a[*i] < b[*i]", "bool"), two, {}, DType::I64},
      {"GreaterOrEqual", binary("greater_or_equal", "a[*i] >= b[*i]", "bool"), two},
      {"MatMul",
       "(a: f32[M, K], b: f32[K, N]) -> matmul: f32[M, N]\n  matmul[m, n] as matmul = sum(k: K) a[m, k] * b[k, n]",
       {{33, 20}, {20, 48}}},
      {"MatMul",
       "(a: f32[B, M, K], b: f32[B, K, N]) -> matmul: f32[B, M, N]\n"
       "  matmul[b, m, n] as matmul = sum(k: K) a[b, m, k] * b[b, k, n]",
       {{3, 8, 20}, {3, 20, 24}}},
      {"Conv",
       "(x: f32[N, C, H, W], w: f32[M, C, R, S]) -> conv2d: f32[N, M, H - R + 1, W - S + 1]\n"
       "  conv2d[n, oc, oh, ow] as conv2d = sum(ic: C, kh: R, kw: S) x[n, ic, oh + kh, ow + kw] * w[oc, ic, kh, kw]",
       {{1, 4, 9, 9}, {8, 4, 3, 3}},
       {},
       DType::F32,
       true},
      {"MaxPool",
       "(x: f32[N, C, H, W], kernel_shape: ints = [2, 2], strides: ints = [2, 2])\n"
       "    -> max_pool: f32[N, C, (H - kernel_shape[0]) // strides[0] + 1, (W - kernel_shape[1]) // strides[1] + 1]\n"
       "  max_pool[n, c, oh, ow] = max(kh: kernel_shape[0], kw: kernel_shape[1]) x[n, c, oh * strides[0] + kh, ow * "
       "strides[1] + kw]",
       {{1, 4, 8, 8}},
       {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}}},
      {"GlobalAveragePool",
       "(x: f32[N, C, H, W]) -> average: f32[N, C, 1, 1]\n"
       "  avg_pool[n: N, c: C, oh: 1, ow: 1] = sum(kh: H, kw: W) x[n, c, oh + kh, ow + kw]\n"
       "  average[n, c, oh, ow] as average = avg_pool[n, c, oh, ow] / (H * W)",
       {{2, 5, 6, 7}},
       {},
       DType::F32,
       true},
      {"Softmax",
       "(x: f32[M, N]) -> softmax: f32[M, N]\n"
       "  max[i: M] = max(r: N) x[i, r]\n"
       "  exp[i: M, j: N] = exp(x[i, j] - max[i])\n"
       "  sum[i: M] = sum(r: N) exp[i, r]\n"
       "  softmax[i, j] = exp[i, j] / sum[i]",
       {{6, 40}}},
      {"ReduceSum", "(x: f32[M, N]) -> reduce_sum: f32[1, 1]\n  reduce_sum[i, j] = sum(r: M, s: N) x[r, s]", {{6, 40}}},
      {"Transpose", "(x: f32[A, B, C]) -> transpose: f32[C, B, A]\n  transpose[i, j, k] = x[k, j, i]", {{6, 4, 5}}},
  };
}

/// One node; `own` is its row, or null.
Graph graph_of(const Row& r, const OwnRow& own) {
  Graph g(ModelText("g"));
  std::vector<Value*> in;
  for (size_t k = 0; k < r.inputs.size(); k++)
    in.push_back(g.add_input(ModelText("in" + to_text(int64_t(k))), ValueType::tensor(r.type, to_shape(r.inputs[k]))));
  Node* n = g.append(r.op, in, {ModelText("out")}, r.attrs, own ? "my" : "");
  n->row = own;
  infer_types(g, *n);
  g.set_outputs(n->outputs);
  return g;
}

OwnRow own_row(const Row& r) {
  std::vector<std::string> problems;
  const std::vector<OwnRow> made = user_ops({"f.tc", "op my." + r.op + r.header + "\n"}, {}, problems);
  for (const std::string& p : problems) ADD_FAILURE() << p;
  return made.empty() ? nullptr : made[0];
}

std::vector<OutputFile> package(const Row& r, const OwnRow& own, Target::Kind kind) {
  Graph g = graph_of(r, own);
  TestTarget target(test_target("generic", kind == Target::Kind::Cuda));
  PassContext& cx = target.cx;
  Diagnostics problems;
  cx.diagnostics = &problems;
  std::string log;
  run_passes(graph_passes(), g, cx, log);
  const Program p = build_program(g, "m", cx, log);
  EXPECT_FALSE(problems.has_errors());
  return kind == Target::Kind::C ? c_package(p, {}) : cuda_package(p, {});
}

TEST(UserOps, RowsByFormulaAreTheSameFunctionsAndTheSameBytes) {
  size_t same = 0;
  for (const Row& r : rows()) {
    SCOPED_TRACE(r.op);
    const OwnRow own = own_row(r);
    if (!own) continue;
    Graph a = graph_of(r, nullptr), b = graph_of(r, own);
    const TensorFn &theirs = tensor_fn(*a.nodes().front()), &ours = tensor_fn(*b.nodes().front());
    EXPECT_TRUE(identity_of(theirs) == identity_of(ours))
        << language::function_text(theirs).text << language::function_text(ours).text;
    for (const Target::Kind kind : {Target::Kind::C, Target::Kind::Cuda}) {
      if (r.in_one_layout) continue;
      const std::vector<OutputFile> x = package(r, nullptr, kind), y = package(r, own, kind);
      ASSERT_EQ(x.size(), y.size());
      for (size_t k = 0; k < x.size(); k++) {
        EXPECT_EQ(x[k].path, y[k].path);
        EXPECT_TRUE(x[k].bytes == y[k].bytes) << x[k].path;
      }
    }
    same++;
  }
  EXPECT_GE(same, 30u);
}

}  // namespace
}  // namespace tc::rows_test
