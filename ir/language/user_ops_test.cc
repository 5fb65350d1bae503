#include "ir/language/user_ops.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/language/test_round_trip.h"
#include "ir/ops/operator_table.h"
#include "ir/verify.h"

namespace tc::user_ops_test {
namespace {

/// One node of a user's operator on constants.
struct Case {
  std::string text;  // its first definition is run
  std::vector<Constant> inputs;
  Attrs attrs = {};
  int outputs = 1;
};

Constant tensor(DType t, const Dims& dims, const std::vector<double>& v) {
  MutableTensor m = new_tensor(t, dims);
  const size_t width = size_t(info(t).bytes);
  for (size_t k = 0; k < v.size(); k++) {
    const Constant one = scalar_constant(t, v[k]);
    std::copy_n(one->bytes.get(), width, m.bytes + k * width);
  }
  return std::make_shared<TensorData>(std::move(m.data));
}
Constant floats(const Dims& dims, const std::vector<double>& v) { return tensor(DType::F32, dims, v); }

std::vector<Constant> results(const Case& c) {
  std::vector<std::string> problems;
  const std::vector<OwnRow> rows = user_ops({"f.tc", c.text}, {}, problems);
  for (const std::string& p : problems) ADD_FAILURE() << p;
  if (rows.empty()) return {};
  Graph g;
  std::vector<Value*> in;
  for (const Constant& x : c.inputs) in.push_back(x ? g.add_constant(ModelText("x"), x) : nullptr);
  std::vector<ModelText> names;
  for (int k = 0; k < c.outputs; k++) names.emplace_back("y" + to_text(int64_t(k)));
  Node* n = g.append(std::string(rows[0]->name), in, names, c.attrs, std::string(rows[0]->domain));
  n->row = rows[0];
  infer_types(g, *n);
  verify(tensor_fn(*n));
  language::testing::expect_round_trip(tensor_fn(*n));
  std::vector<Constant> args;
  for (const int k : fn_operands(*n)) args.push_back(c.inputs[size_t(k)]);
  return evaluate(tensor_fn(*n), args);
}

std::vector<double> values(const Case& c, size_t output = 0) {
  const std::vector<Constant> r = results(c);
  std::vector<double> v;
  if (output < r.size())
    for (int64_t k = 0; k < r[output]->size(); k++) v.push_back(r[output]->as_double(k));
  return v;
}

/// What the node is refused with, "" if it is not.
std::string refusal(const Case& c) {
  try {
    results(c);
  } catch (const Error& e) {
    return (e.diagnostic().loc.input >= 0 ? to_text(int64_t(e.diagnostic().loc.input)) + ": " : "") +
           e.diagnostic().message;
  }
  return "";
}

/// The first line of each problem of a text.
std::vector<std::string> problems_of(const std::string& text) {
  std::vector<std::string> problems;
  EXPECT_TRUE(user_ops({"f.tc", text}, {}, problems).empty());
  for (std::string& p : problems) p.resize(p.find('\n'));
  return problems;
}

const std::vector<double> kSix = {1, -2, 3, 4, 5, -6};

TEST(UserOps, ReductionsReadBeyondTheirAxes) {
  const std::string text =
      "op my.Correlate(x: f32[N, C, W], w: f32[C, K], dilation: int = 1) -> y: f32[N, C, W - (K - 1) * dilation]\n"
      "  y[n, c, t] = sum(k: K) x[n, c, t + k * dilation] * w[c, k]\n";
  EXPECT_EQ(values({text, {floats({1, 1, 6}, kSix), floats({1, 2}, {1, 10})}}),
            (std::vector<double>{-19, 28, 43, 54, -55}));
  EXPECT_EQ(values({text, {floats({1, 1, 6}, kSix), floats({1, 2}, {1, 10})}, {{"dilation", int64_t(4)}}}),
            (std::vector<double>{51, -62}));
}

TEST(UserOps, TypesAndOptionalOperands) {
  const std::string text =
      "op my.Scale<T: float>(x: T[*S], by: T[]?, alpha: float = 2) -> y: T[*S]\n"
      "  y[*i] = where(has(by), x[*i] * by[], x[*i] * alpha)\n";
  EXPECT_EQ(values({text, {floats({2, 3}, kSix)}}), (std::vector<double>{2, -4, 6, 8, 10, -12}));
  EXPECT_EQ(values({text, {floats({}, {3}), floats({}, {5})}}), (std::vector<double>{15}));
  EXPECT_EQ(values({text, {tensor(DType::F16, {2}, {1, 2048}), nullptr}, {{"alpha", 1.0009765625f}}}),
            (std::vector<double>{1.0009765625, 2050}));
  EXPECT_EQ(values({text, {tensor(DType::F64, {1}, {1.5})}}), (std::vector<double>{3}));
}

TEST(UserOps, FoldsScansAndStages) {
  const std::string best =
      "op my.Best(x: f32[N, K]) -> value: f32[N], place: i64[N]\n"
      "  (value, place)[n] = fold(k: K) (x[n, k], k) from (-inf, 0) by (a, i), (b, j) => (max(a, b), where(b > a, j, "
      "i))\n";
  const Case c{best, {floats({2, 3}, kSix)}, {}, 2};
  EXPECT_EQ(values(c), (std::vector<double>{3, 5}));
  EXPECT_EQ(values(c, 1), (std::vector<double>{2, 1}));
  EXPECT_EQ(values({"op my.Ema(x: f32[T], decay: float = 0.5) -> y: f32[T]\n"
                    "  scan {\n"
                    "    h: f32[t: T] = where(t > 0, y[t - 1], 0) * decay\n"
                    "    y[t] = h[t] + x[t]\n  }\n",
                    {floats({3}, {4, 2, 1})}}),
            (std::vector<double>{4, 4, 3}));
  EXPECT_EQ(values({"op my.Norm(x: f16[N]) -> y: f16[N]\n"
                    "  total[] = sum(n: N) x[n] from 1\n"
                    "  y[n] = x[n] / total[]\n",
                    {tensor(DType::F16, {3}, {1, 2, 4})}}),
            (std::vector<double>{0.125, 0.25, 0.5}));
  EXPECT_EQ(
      values({"op my.Mean(x: f16[N]) -> y: f16[]\n  y[] = sum(n: N) x[n] / N\n", {tensor(DType::F16, {2}, {1, 2})}}),
      (std::vector<double>{1.5}));
}

TEST(UserOps, GuardedAndCheckedAccesses) {
  EXPECT_EQ(values({"op my.Blur(x: f32[N]) -> y: f32[N]\n"
                    "  y[i] = sum(k: 3) where(i + k >= 1 && i + k <= N, x[i + k - 1], 0)\n",
                    {floats({4}, {1, 2, 3, 4})}}),
            (std::vector<double>{3, 6, 9, 7}));
  EXPECT_EQ(values({"op my.Clamped(x: f32[N]) -> y: f32[N]\n  y[i] = x[min(max(i - 1, 0), N - 1)]\n",
                    {floats({3}, {1, 2, 3})}}),
            (std::vector<double>{1, 1, 2}));
  const std::string take = "op my.Take(x: f32[V, D], at: i32[N]) -> y: f32[N, D]\n  y[n, d] = x[index(at[n], V), d]\n";
  EXPECT_EQ(values({take, {floats({3, 2}, kSix), tensor(DType::I32, {2}, {-1, 1})}}),
            (std::vector<double>{5, -6, 3, 4}));
}

TEST(UserOps, ConstantsAreExactAndTakeTheTypeOfTheirNeighbours) {
  const auto one = [](const std::string& f) {
    return values({"op my.C(x: f32[N], l: ints = [7, 9], s: string = \"up\", a: float = 0.1) -> y: f32[]\n y[] = " + f,
                   {floats({3}, {10, 20, 30})}});
  };
  const std::pair<const char*, double> cases[] = {{"1 / 2", 0.5},
                                                  {"x[4 / 2]", 30},
                                                  {"x[0] / N", 10.0f / 3},
                                                  {"x[1] * a", double(20.0f * 0.1f)},
                                                  {"-7 // 2", -4},
                                                  {"-7 % 2", 1},
                                                  {"l[1] + len(l)", 11},
                                                  {"where(s == \"up\", 1, x[99])", 1},
                                                  {"where(N > 5, x[5], x[0])", 10},
                                                  {"sqrt(16) + floor(2.5) + max(1, 2) + abs(-1)", 9},
                                                  {"f32(i32(x[0] / 4))", 2},
                                                  {"f32(bits_i32(x[0] - 9))", 1065353216}};
  for (const auto& [f, y] : cases) EXPECT_EQ(one(f), std::vector<double>{y}) << f;
}

TEST(UserOps, EachRefusalOfANode) {
  const std::string scale =
      "op my.Scale<T: f32 | f64>(x: T[N, M], w: T[M]?, k: int) -> y: T[N, M]\n"
      "  require k > 0, \"k is positive\"\n  require N != 5\n  y[n, m] = x[n, m] * k\n";
  const Constant x = floats({2, 3}, kSix);
  const Attrs k = {{"k", int64_t(2)}};
  EXPECT_EQ(refusal({scale, {x}}), "attribute k is missing (f.tc:1:49)");
  EXPECT_EQ(refusal({scale, {x}, {{"k", 1.0f}}}), "attribute k has the wrong type");
  EXPECT_EQ(refusal({scale, {x}, {{"k", int64_t(1)}, {"q", int64_t(1)}}}), "attribute \"q\" is none of my.Scale");
  EXPECT_EQ(refusal({scale, {x}, {{"k", int64_t(-1)}}}), "k is positive (f.tc:2:3)");
  EXPECT_EQ(refusal({scale, {floats({5, 1}, {1, 1, 1, 1, 1})}, k}), "my.Scale requires N != 5 (f.tc:3:3)");
  EXPECT_EQ(refusal({scale, {x, nullptr, x}, k}), "it has 3 inputs, my.Scale takes at most 2");
  EXPECT_EQ(refusal({scale, {x}, k, 2}), "it has 2 outputs, my.Scale gives 1");
  EXPECT_EQ(refusal({scale, {nullptr}, k}), "0: input 0 is missing");
  EXPECT_EQ(refusal({scale, {tensor(DType::I32, {1, 1}, {1})}, k}), "0: x is f32 or f64, not i32 (f.tc:1:27)");
  EXPECT_EQ(refusal({scale, {x, tensor(DType::F64, {3}, {1, 2, 3})}, k}),
            "1: T is f32 by the operands before, and f64 here (f.tc:1:39)");
  EXPECT_EQ(refusal({scale, {floats({6}, kSix)}, k}), "0: x has rank 2, not 1 (f.tc:1:27)");
  EXPECT_EQ(refusal({scale, {x, floats({2}, {1, 2})}, k}), "1: axis 0 of w has 2 elements, M is 3 (f.tc:1:44)");
  const std::string list = "op my.L(x: f32[*S], y: f32[*S, 2]) -> z: f32[*S]\n  z[*i] = x[*i]\n";
  EXPECT_EQ(refusal({list, {x, floats({3, 2}, kSix)}}), "1: the sizes *S of y are 3, before they were 2x3 (f.tc:1:28)");
  EXPECT_EQ(refusal({list, {x, floats({}, {1})}}), "1: y has at least rank 1, not 0 (f.tc:1:21)");
  EXPECT_EQ(refusal({"op my.F(x: f64[N]) -> y: f64[N]\n y[n] = x[n]", {floats({1}, {1})}}),
            "0: x is f64, not f32 (f.tc:1:9)");
  EXPECT_EQ(refusal({"op my.F(x: f32[N]) -> y: f32[N - 4]\n y[n] = x[n]", {floats({1}, {1})}}),
            "the size N - 4 is negative: -3 (f.tc:1:32)");
  EXPECT_EQ(refusal({"op my.F(x: f32[N]) -> y: f32[N / 2]\n y[n] = x[n]", {floats({1}, {1})}}),
            "a whole number is needed here; // divides integers and leaves the remainder out (f.tc:1:32)");
  EXPECT_EQ(refusal({"op my.F(x: f32[N]) -> y: f32[N]\n y[n] = x[n + 1]", {floats({3}, {1, 2, 3})}}),
            "axis 0 of 'x' has 3 elements, the index is 1 .. 3; guard it as in where(i < n, x[i], 0), or let index(i, "
            "n) check "
            "it when the model runs (f.tc:2:9)");
  EXPECT_EQ(refusal({"op my.F(x: f32[N], i: i64[]) -> y: f32[]\n y[] = x[i[]]",
                     {floats({1}, {1}), tensor(DType::I64, {}, {0})}}),
            "axis 0 of 'x' has 1 elements, the index is ? .. ?; guard it as in where(i < n, x[i], 0), or let index(i, "
            "n) check "
            "it when the model runs (f.tc:2:8)");
  EXPECT_EQ(refusal({"op my.F(x: f32[N]) -> y: f32[N]\n scan {\n y[n] = where(n < N - 1, y[n + 1], x[n])\n}",
                     {floats({1}, {1})}}),
            "'y' is of the same scan: this must read an earlier step, as in where(n > 0, y[n - 1], 0) (f.tc:3:26)");
  EXPECT_EQ(refusal({"op my.F(x: f32[N]) -> y: f32[N]\n m[n: N + 1] = x[0]\n y[n: N + 1] = m[n]", {floats({1}, {1})}}),
            "the axes of 'y' are [2], its type says [1] (f.tc:3:2)");
  EXPECT_EQ(refusal({"op my.F(x: f32[N], l: ints = [1]) -> y: f32[l[1]]\n y[n] = 0", {floats({1}, {1})}}),
            "'l' has 1 elements, there is none at 1 (f.tc:1:45)");
  const std::string add = "op my.F(x: u8[N], k: int) -> y: u8[N]\n y[n] = x[n] + k / N\n";
  const Constant bytes = tensor(DType::U8, {1}, {1});
  EXPECT_EQ(refusal({add, {bytes}, {{"k", int64_t(300)}}}), "300 does not fit u8 (f.tc:2:14)");
  EXPECT_EQ(refusal({add, {tensor(DType::U8, {0}, {})}, {{"k", int64_t(1)}}}), "a division by zero (f.tc:2:18)");
}

TEST(UserOps, EachRefusalOfADefinition) {
  using L = std::vector<std::string>;
  EXPECT_EQ(problems_of(""), L{"f.tc:1:1: the file defines no operator"});
  EXPECT_EQ(problems_of("op B(x: f32[N]) -> y: f32[N]\n y[n] = x[n]"),
            L{"f.tc:1:4: an operator stands in a domain of its own, as in my.B"});
  EXPECT_EQ(problems_of("fn B(x: f32[N]) -> y: f32[N]\n y[n] = x[n]"),
            L{"f.tc:1:4: a file of operators holds definitions that begin with 'op'"});
  EXPECT_EQ(problems_of("op com.microsoft.Gelu(x: f32[N]) -> y: f32[N]\n y[n] = x[n]"),
            L{"f.tc:1:4: the tool has an operator com.microsoft.Gelu already"});
  const std::string a = "op a.B(x: f32[N]) -> y: f32[N]\n y[n] = x[n]\n";
  EXPECT_EQ(problems_of(a + a), L{"f.tc:3:4: the operator a.B is defined already"});

  const auto header = [](const std::string& h) { return problems_of("op a.B" + h + "\n y[n] = 0"); };
  EXPECT_EQ(header("(x: f33[N]) -> y: f32[N]"), L{"f.tc:1:8: no element type is called 'f33'"});
  EXPECT_EQ(header("<T: f32 | text>(x: T[N]) -> y: f32[N]"),
            L{"f.tc:1:8: no element type is called 'text'; sets of types are float, int and number"});
  EXPECT_EQ(header("<T: float>(x: f32[N]) -> y: T[N]"),
            L{"f.tc:1:8: no operand that is always there has the type 'T', so that nothing says what it is"});
  EXPECT_EQ(header("(x: f32[N], x: f32[N]) -> y: f32[N]"), L{"f.tc:1:19: 'x' is an operand already"});
  EXPECT_EQ(header("(x: f32[N], N: int = 1, N: int = 2) -> y: f32[N]"), L{"f.tc:1:31: 'N' is an attribute already"});
  EXPECT_EQ(header("(x: f32[*S, *R]) -> y: f32[*S]"), L{"f.tc:1:8: an operand has one list of sizes at most"});
  EXPECT_EQ(header("(x: f32[N]) -> y: f32[M]"), L{"f.tc:1:29: nothing is called 'M' here"});
  EXPECT_EQ(header("(x: f32[N]) -> y: f32[*M]"), L{"f.tc:1:29: no list of sizes is called 'M'"});
  EXPECT_EQ(header("(x: f32[N]) -> x: f32[N]"), L{"f.tc:1:22: 'x' is an operand already"});
  EXPECT_EQ(header("(x: f32[N]) -> y: f32[N]?"), L{"f.tc:1:22: results are always there: leave the '?' out"});
  EXPECT_EQ(header("(x: f32[N]) -> y: f32[N], z: f32[N]"), L{"f.tc:1:33: no stage defines the result 'z'"});

  const auto body = [](const std::string& b) {
    const L l = problems_of("op a.B<T: f32 | i32>(x: T[N, M], b: f32[N]?, k: int = 2) -> y: T[N]\n" + b);
    return l.size() == 1 ? l[0] : "problems: " + to_text(int64_t(l.size()));
  };
  EXPECT_EQ(body("y[n] = x[n, 0] + q"), "f.tc:2:18: nothing is called 'q' here");
  EXPECT_EQ(body("y[n] = q[n]"), "f.tc:2:8: no tensor is called 'q' here");
  EXPECT_EQ(body("y[n] = q(n)"), "f.tc:2:8: no function is called 'q'");
  EXPECT_EQ(body("y[n] = x(n, 0)"), "f.tc:2:8: 'x' is a tensor; its index stands in brackets, [...]");
  EXPECT_EQ(body("y[n] = x"), "f.tc:2:8: 'x' is a tensor; its elements are read as in x[i]");
  EXPECT_EQ(body("y[n] = x[n]"), "f.tc:2:8: 'x' has rank 2, not 1");
  EXPECT_EQ(body("y[n, m] = x[n, m]"), "f.tc:2:1: 'y' has rank 1, not 2");
  EXPECT_EQ(body("y[n] = z[n]\nz[n: N] = x[n, 0]"), "f.tc:2:8: 'z' is read before it is defined");
  EXPECT_EQ(body("y[n] = y[n]"), "f.tc:2:8: 'y' is read before it is defined");
  EXPECT_EQ(body("z[n] = x[n, 0]\ny[n] = z[n]"), "f.tc:2:3: how far does 'n' run? Write n: N");
  EXPECT_EQ(body("x[n: N] = 0\ny[n] = 1"), "f.tc:2:1: 'x' is an operand; a stage needs a name of its own");
  EXPECT_EQ(body("y[n] = x[n, 0]\ny[n] = x[n, 1]"), "f.tc:3:1: 'y' is defined twice");
  EXPECT_EQ(body("y[n] = x[n, 0] + b[n]"),
            "f.tc:2:18: operand 'b' may be absent; read it as in where(has(b), b[n], 0)");
  EXPECT_EQ(body("y[n] = x[n, 0] * f32(n)"), "f.tc:2:16: operands of mul are i32 and f32, where T is i32");
  EXPECT_EQ(body("y[n] = x[n, 0] * 0.5"), "f.tc:2:16: 0.5 is no whole number, as i32 needs, where T is i32");
  EXPECT_EQ(body("y[n] = exp(x[n, 0])"), "f.tc:2:8: exp is of floats, not of i32, where T is i32");
  EXPECT_EQ(body("y[n] = n"), "f.tc:2:8: this is i64, but f32 is needed; f32(...) converts");
  EXPECT_EQ(body("y[n] = where(x[n, 0], 1, 0)"), "f.tc:2:14: where needs a condition, not f32");
  EXPECT_EQ(body("y[n] = where(x[n, 0] > 0, 1, 0)"),
            "f.tc:2:8: neither side of where has an element type; give it one, as in f32(...)");
  EXPECT_EQ(body("y[n] = x[n, 0] && true"), "f.tc:2:8: '&&' is of conditions, not of f32");
  EXPECT_EQ(body("y[n] = max(x[n, 0])"), "f.tc:2:8: max takes 2 arguments, not 1");
  EXPECT_EQ(body("y[n] = x[n, 0.5]"), "f.tc:2:13: 0.5 is no whole number, as i64 needs");
  EXPECT_EQ(body("y[n] = x[*n]"), "f.tc:2:8: 'x' has rank 2, not 1");
  EXPECT_EQ(body("y[*n] = x[n, 0]"), "f.tc:2:11: 'n' is a list of axes; it stands as '*n' in an index");
  EXPECT_EQ(body("y[N] = 0"), "f.tc:2:3: 'N' is a size or an attribute already");
  EXPECT_EQ(body("y[n] = sum(n: M) x[0, n]"), "f.tc:2:12: 'n' is an axis already");
  EXPECT_EQ(body("y[n] = all(m: M) x[n, m]"), "f.tc:2:18: all is of conditions, not of f32");
  EXPECT_EQ(body("(y, z: T)[n] = x[n, 0]"), "f.tc:2:1: only a fold has several results");
  EXPECT_EQ(
      body("y[n] = fold(m: M) (x[n, m], m) from (0, 0) by (a, i), (c, j) => (a, i)"),
      "f.tc:2:1: a fold has a value, a beginning ('from'), two names and a joined value for each of its 1 results");
  EXPECT_EQ(body("y[n] = fold(m: M) (x[n, m]) from (0) by (a), (a) => (a)"),
            "f.tc:2:1: 'a' stands twice in the tuples that the fold joins");
  EXPECT_EQ(body("y[n] = bits_f64(x[n, 0])"), "f.tc:2:8: bits_ is between types of one size");
  EXPECT_EQ(body("y[n] = 9223372036854775807 + 1"), "f.tc:2:28: the result does not fit 64 bits");
  EXPECT_EQ(body("require x[0, 0] > 0\ny[n] = 0"), "f.tc:2:17: a condition is needed that is known while compiling");
}

TEST(UserOps, AreListed) {
  std::vector<std::string> problems;
  const auto rows = user_ops(
      {"f.tc", "op my.Scaled(x: f32[N], a: float = 2, l: ints = [1, 2]) -> y: f32[N]\n y[n] = x[n] * a"}, {}, problems);
  EXPECT_EQ(operator_table("scaled", rows).substr(operator_table("scaled").size()),
            "| my | Scaled | 1 | `a = 2`, `l = [1, 2]` |  |\n");
  EXPECT_TRUE(has_operator("Scaled", rows));
}

}  // namespace
}  // namespace tc::user_ops_test
