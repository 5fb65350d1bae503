// Models that are wrong or made to do harm: each has its diagnostic and its exit code, none crashes, hangs or gets
// through.
#include <gtest/gtest.h>

#include <chrono>

#include "importer/test_import.h"

namespace tc::hostile_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

struct Case {
  std::string name;
  std::string graph;  // after the header of ir_version 8, opset 13
  std::string code;
  ExitCode exit = ExitCode::Rejected;
  std::string says = {};
  ImportOptions options = {};
};

std::string header(int64_t ir = 8, const std::string& opsets = R"("" : 13)") {
  return "<ir_version: " + std::to_string(ir) + ", opset_import: [" + opsets + "]>\n";
}

void expect_refused(const Case& c, const std::string& model) {
  const Imported m = import_text(model, c.options);
  EXPECT_NE(m.problems.find("error[" + c.code + "]"), std::string::npos) << c.name << ":\n" << m.problems;
  EXPECT_EQ(m.exit, c.exit) << c.name << ":\n" << m.problems;
  EXPECT_NE(m.problems.find(c.says), std::string::npos) << c.name << ":\n" << m.problems;
  EXPECT_EQ(m.graph.num_nodes(), 0u) << c.name;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      // names and order
      {"cycle", "g (float[2] x) => (float[2] y) { [p] a = Add(x, b)  [q] b = Neg(a)  y = Neg(b) }", "TC0112",
       ExitCode::Rejected, "cycle: \"q\" -> \"p\" -> \"q\""},
      {"self loop", "g (float[2] x) => (float[2] y) { [p] y = Add(x, y) }", "TC0112", ExitCode::Rejected,
       "\"p\" -> \"p\""},
      {"missing input", "g (float[2] x) => (float[2] y) { [n] y = Add(x, gone) }", "TC0111", ExitCode::Rejected,
       "node \"n\" (Add), input 1 \"gone\""},
      {"missing capture",
       "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Neg(gone) }, "
       "else_branch = e () => (float[2] b) { b = Neg(x) }> }",
       "TC0111"},
      {"two nodes make the same", "g (float[2] x) => (float[2] y) { y = Neg(x)  y = Abs(x) }", "TC0110"},
      {"node makes an input", "g (float[2] x) => (float[2] x) { x = Neg(x) }", "TC0110"},
      {"two inputs of one name", "g (float[2] x, float[2] x) => (float[2] y) { y = Neg(x) }", "TC0110"},
      {"body hides a name",
       "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] x) { x = Abs(y2) }, "
       "else_branch = e () => (float[2] b) { b = Neg(x) }>  y2 = Neg(x) }",
       "TC0110", ExitCode::Rejected, "outer graph"},
      {"output nobody makes", "g (float[2] x) => (float[2] z) { y = Neg(x) }", "TC0114"},
      {"output listed twice", "g (float[2] x) => (float[2] y, float[2] y) { y = Neg(x) }", "TC0114"},
      // operators and attributes
      {"unknown operator",
       "g (float[2] x) => (float[2] y) { y = Frobnicate(x) }",
       "TC0170",
       ExitCode::Unsupported,
       "Frobnicate",
       {.has_row = [](std::string_view, std::string_view op) { return op != "Frobnicate"; }}},
      {"operator of the compiler's own",
       "g (float x) => (float[?] y) { y = tc.label_lookup(x, x, x, x) }",
       "TC0106",
       ExitCode::Rejected,
       "label_lookup",
       {.has_row = [](std::string_view, std::string_view) { return true; }}},
      {"operator of a later opset", "g (float[2] x) => (float[2] y) { y = Gelu(x) }", "TC0118", ExitCode::Rejected,
       "it came later"},
      {"too few operands", "g (float[2] x) => (float[2] y) { y = Add(x) }", "TC0118"},
      {"too many operands", "g (float[2] x) => (float[2] y) { y = Neg(x, x) }", "TC0118"},
      {"unknown operator in a body",
       "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = t () => (float[2] a) { a = Frobnicate(x) }, "
       "else_branch = e () => (float[2] b) { b = Neg(x) }> }",
       "TC0170",
       ExitCode::Unsupported,
       "Frobnicate",
       {.has_row = [](std::string_view, std::string_view op) { return op != "Frobnicate"; }}},
      {"unknown attribute", "g (float[2] x) => (float[2] y) { y = Neg <foo = 1> (x) }", "TC0118"},
      {"attribute of the wrong type", "g (float[2] x) => (float[2] y) { y = Softmax <axis = \"a\"> (x) }", "TC0118"},
      {"attribute twice", "g (float[2] x) => (float[2] y) { y = Softmax <axis = 0, axis = 0> (x) }", "TC0116"},
      {"reference outside of a function", "g (float[2] x) => (float[2] y) { y = Softmax <axis: int = @a> (x) }",
       "TC0116"},
      {"operands of two types", "g (float[2] x, int64[2] z) => (float[2] y) { [n] y = Add(x, z) }", "TC0119",
       ExitCode::Rejected, "input 1 \"z\": it is of type int64, but input 0 is of type float"},
      {"axis 10^6", "g (float[2] x) => (float[2] y) { y = Softmax <axis = 1000000> (x) }", "TC0117", ExitCode::Rejected,
       "allowed -64..64"},
      {"a flag of 2",
       "g (float[1,1,4] x) => (float[1,1,4] y) { y = MaxPool <kernel_shape = [1], storage_order = 2> (x) }", "TC0117",
       ExitCode::Rejected, "allowed 0..1"},
      {"stride 0",
       "g (float[1,1,4,4] x, float[1,1,1,1] w) => (float[1,1,4,4] y) { y = Conv <strides = [0, 0]> (x, w) }", "TC0117"},
      {"group 0", "g (float[1,1,4,4] x, float[1,1,1,1] w) => (float[1,1,4,4] y) { y = Conv <group = 0> (x, w) }",
       "TC0117"},
      {"perm is no permutation", "g (float[2,2] x) => (float[2,2] y) { y = Transpose <perm = [0, 0]> (x) }", "TC0117"},
      {"cast to nothing", "g (float[2] x) => (float[2] y) { y = Cast <to = 99> (x) }", "TC0117"},
      {"domain that is not imported",
       "g (float[2] x) => (float[2] y) { y = other.Op(x) }",
       "TC0106",
       ExitCode::Rejected,
       "not imported",
       {.has_row = [](std::string_view d, std::string_view) { return d.empty(); }}},
      // sizes and tensors
      {"65536^4 elements", "g (float[65536,65536,65536,65536] x) => (float[65536,65536,65536,65536] y) { y = Relu(x) }",
       "TC0501", ExitCode::Limit},
      {"negative dim of an input", "g (float[-1] x) => (float[2] y) { y = Relu(x) }", "TC0150", ExitCode::Rejected,
       "the size -1"},
      {"weight with too few values", "g (float[3] x) => (float[3] y) <float[3] w = {1, 2}> { y = Add(x, w) }", "TC0120",
       ExitCode::Rejected, "has 2 values, its dims ask for 3"},
      {"weight of 2^64 elements",
       "g (float[1] x) => (float[1] y) <float[4294967296,4294967296] w = {1}> { y = Add(x, w) }", "TC0121"},
      {"weight beyond the memory limit",
       "g (float[1] x) => (float[3] y) <float[3] w = {1, 2, 3}> { y = Add(x, w) }",
       "TC0501",
       ExitCode::Limit,
       "--limit-memory",
       {.max_tensor_bytes = 8}},
      {"element type without an implementation", "g (float6e2m3[2] x) => (float6e2m3[2] y) { y = Identity(x) }",
       "TC0122", ExitCode::Unsupported, "float6e2m3"},
      {"list of maps", "g (seq(map(int64, float[2])) x, float[2] z) => (float[2] y) { y = Neg(z) }", "TC0153",
       ExitCode::Unsupported},
      {"map input", "g (map(int64, float[2]) x, float[2] z) => (float[2] y) { y = Neg(z) }", "TC0150",
       ExitCode::Rejected, "--elements x=5"},
      {"map input that an operator of tensors reads",
       "g (map(int64, float[2]) x) => (float[2] y) { y = Neg(x) }",
       "TC0153",
       ExitCode::Unsupported,
       "only DictVectorizer and CastMap",
       {.elements = {{"x", {true, {{3}}}}}}},
      // dims
      {"unbound dim", "g (float[N,3] x) => (float[N,3] y) { y = Relu(x) }", "TC0150", ExitCode::Rejected, "--dim N=1"},
      {"unbound unnamed dim", "g (float[?,3] x) => (float[?,3] y) { y = Relu(x) }", "TC0150", ExitCode::Rejected,
       "--dim x:0=1"},
      {"unbound dim of many places", "g (float[N,3] x, float[N,N] z, float[M] w) => (float[N,3] y) { y = Relu(x) }",
       "TC0150", ExitCode::Rejected,
       "the symbolic size \"N\" has no value; code is made for fixed sizes. It is that of inputs \"x\" axis 0, \"z\" "
       "axis 0 and 1\n"},
      {"unbound unnamed dims", "g (float[?,3,?] x) => (float[?,3,?] y) { y = Relu(x) }", "TC0150", ExitCode::Rejected,
       "has no size on axis 0 and 2; code is made for fixed sizes\n  note: give it one: --dim x:0=1 --dim x:2=1"},
      {"no shape", "g (float[] x) => (float[] y) { y = Relu(x) }", "TC0150", ExitCode::Rejected, "--input-shape x="},
      {"dim that does not exist",
       "g (float[2] x) => (float[2] y) { y = Relu(x) }",
       "TC0151",
       ExitCode::Usage,
       "names no dimension",
       {.dims = {{"M", 1}}}},
      {"axis that does not exist",
       "g (float[2] x) => (float[2] y) { y = Relu(x) }",
       "TC0151",
       ExitCode::Usage,
       "x:7",
       {.dims = {{"x:7", 1}}}},
      {"two values for one dim",
       "g (float[N] x, float[N] z) => (float[N] y) { y = Add(x, z) }",
       "TC0152",
       ExitCode::Usage,
       "already 3",
       {.dims = {{"N", 4}}, .input_shapes = {{"x", {3}}}}},
      {"value against the model",
       "g (float[2] x) => (float[2] y) { y = Relu(x) }",
       "TC0152",
       ExitCode::Usage,
       "fixes axis 0",
       {.input_shapes = {{"x", {3}}}}},
      {"wrong rank",
       "g (float[2] x) => (float[2] y) { y = Relu(x) }",
       "TC0152",
       ExitCode::Usage,
       "rank 1",
       {.input_shapes = {{"x", {3, 3}}}}},
      {"negative size",
       "g (float[N] x) => (float[N] y) { y = Relu(x) }",
       "TC0152",
       ExitCode::Usage,
       "negative",
       {.dims = {{"N", -1}}}},
      // text
      {"syntax error", "g (float[2] x) => { y = }", "TC0104", ExitCode::Rejected, "line: 2"},
      {"text after the model", "g (float[2] x) => (float[2] y) { y = Neg(x) } ]", "TC0104"},
      {"number out of range", "g (float[99999999999999999999999] x) => (float[2] y) { y = Neg(x) }", "TC0104"},
      {"deep parentheses", "g (" + std::string(5000, '(') + "float[2] x) => (float[2] y) { y = Neg(x) }", "TC0104",
       ExitCode::Limit},
      {"deep braces", "g (float[2] x) => (float[2] y) " + std::string(5000, '{'), "TC0105", ExitCode::Limit},
  };
  return kCases;
}

TEST(Hostile, EachModelHasItsDiagnostic) {
  for (const Case& c : cases()) {
    ImportOptions options = c.options;
    expect_refused(c, header() + c.graph);
  }
}

/// A model of one node that reads "x", of this type.
std::string one_node(const std::string& type, const std::string& node) {
  return header(8, R"("" : 20)") + "g (" + type + " x) => (y) { [n] y = " + node + " }";
}

TEST(Hostile, TypesStandWhereTheDefinitionHasThem) {
  for (const std::string node : {"AveragePool <kernel_shape = [2, 2]> (x)",
                                 "LpPool <kernel_shape = [2, 2]> (x)",
                                 "GlobalAveragePool (x)",
                                 "GlobalLpPool (x)",
                                 "MaxPool <kernel_shape = [2, 2]> (x)",
                                 "LRN <size = 3> (x)",
                                 "LpNormalization (x)",
                                 "Conv (x, x)",
                                 "MatMul (x, x)",
                                 "Gemm (x, x)",
                                 "Einsum <equation = \"nchw,nchw->n\"> (x, x)",
                                 "ReduceSum (x)",
                                 "ReduceMean (x)",
                                 "ReduceL2 (x)",
                                 "Softmax (x)",
                                 "Add (x, x)",
                                 "Mul (x, x)",
                                 "Div (x, x)",
                                 "Sum (x, x)",
                                 "Max (x, x)",
                                 "Less (x, x)",
                                 "Neg (x)",
                                 "Abs (x)",
                                 "Erf (x)",
                                 "Floor (x)",
                                 "Relu (x)",
                                 "Det (x)",
                                 "BitwiseNot (x)",
                                 "QuantizeLinear (x, x)"})
    for (const std::string type : {"bool", "string", "complex64"})
      expect_refused({type + " " + node, "", "TC0119", ExitCode::Rejected,
                      "input 0 \"x\": it is of type " + type + ", which the operator does not take; it takes "},
                     one_node(type + "[1,2,4,4]", node));
  for (const std::string node : {"ReduceMax (x)", "ReduceMin (x)", "Equal (x, x)", "Not (x)", "Where (x, x, x)",
                                 "Transpose (x)", "Cast <to = 1> (x)"}) {
    const Imported m = import_text(one_node("bool[1,2,4,4]", node));
    EXPECT_EQ(m.exit, ExitCode::Ok) << node << ":\n" << m.problems;
  }
  for (const std::string node : {"Not (x)", "And (x, x)", "Xor (x, x)", "Where (x, x, x)"})
    expect_refused({"float " + node, "", "TC0119", ExitCode::Rejected, "does not take; it takes bool\n"},
                   one_node("float[1,2,4,4]", node));
  // Numbers that a definition leaves out mean what they mean elsewhere.
  const Imported m = import_text(one_node("int16[1,2,4,4]", "Relu (x)"));
  EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
}

TEST(Hostile, Headers) {
  const std::string body = "g (float[2] x) => (float[2] y) { y = Neg(x) }";
  expect_refused({"newer opset", "", "TC0107", ExitCode::Unsupported, "opset_version="},
                 header(8, R"("" : 999)") + body);
  expect_refused({"newer IR", "", "TC0107", ExitCode::Unsupported}, header(99) + body);
  expect_refused({"opset twice", "", "TC0106"}, header(8, R"("" : 13, "ai.onnx" : 14)") + body);
  expect_refused({"opset 0", "", "TC0106"}, header(8, R"("" : 0)") + body);
}

TEST(Hostile, Functions) {
  const std::string twice = "\n<domain: \"my\", opset_import: [\"\" : 13]>\nf (a) => (b) { b = Neg(a) }";
  const std::string opsets = R"("" : 13, "my" : 1)";
  const std::string call = "g (float[2] x) => (float[2] y) { y = my.f(x) }";
  expect_refused({"function twice", "", "TC0140"}, header(8, opsets) + call + twice + twice);
  expect_refused({"too many operands of a call", "", "TC0143"},
                 header(8, opsets) + "g (float[2] x) => (float[2] y) { y = my.f(x, x) }" + twice);
  expect_refused(
      {"body reads what is not there", "", "TC0111"},
      header(8, opsets) + call + "\n<domain: \"my\", opset_import: [\"\" : 13]>\nf (a) => (b) { b = Neg(c) }");
}

TEST(Hostile, Conversion) {
  expect_refused(
      {"Scan of opset 8 with lengths", "", "TC0160", ExitCode::Unsupported, "sequence lengths"},
      header(3, R"("" : 8)") + R"(g (int64[2] n, float[2,3] s, float[2,5,3] x) => (float[2,3] last, float[2,5,3] all) {
  last, all = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] v) => (float[3] m, float[3] o)
    { m = Add(a, v)  o = Identity(m) }> (n, s, x) })");
}

TEST(Hostile, ContradictingTypes) {
  expect_refused({"output of another element type", "", "TC0161"},
                 header() + "g (float[2] x) => (int64[2] y) { y = Neg(x) }");
  const Imported m = import_text(header() + "g (float[2] x) => (float[3] y) { y = Neg(x) }");
  EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
  EXPECT_NE(m.problems.find("warning[TC0162]"), std::string::npos) << m.problems;
  EXPECT_EQ(to_text(m.graph.outputs()[0]->type), "f32[2]");
}

// Of operators of other domains ONNX's inference knows no type, so that of what is made of them it finds the shape alone.
TEST(Hostile, ShapesWithoutElementTypesContradictNothing) {
  ImportOptions every;
  every.has_row = [](std::string_view, std::string_view) { return true; };
  const Imported m = import_text(header(8, R"("" : 17, "ai.onnx.ml" : 3)") + R"(g (float[4,3] x) => (float[2,2] y)
<int64[2] s = {2, 2}> {
  v = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0, 3.0], intercepts = [0.5]> (x)  y = Reshape(v, s) })",
                                 every);
  EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
  EXPECT_EQ(m.problems, "");
}

TEST(Hostile, AllProblemsAreToldInOneRun) {
  const Imported m = import_text(header() + R"(g (float[2] x, float[N] z) => (float[2] y)
<float[3] w = {1}>
{ [n1] a = Neg(x, x)  [n2] b = Softmax <axis = 99> (x)  [n3] y = Add(b, gone) })");
  for (const char* code : {"TC0118", "TC0117", "TC0111", "TC0120"})
    EXPECT_NE(m.problems.find(code), std::string::npos) << code << "\n" << m.problems;
}

TEST(Hostile, ManyProblemsAreCounted) {
  std::string model = header() + "g (float[2] x) => (float[2] y) { y = Neg(x) ";
  for (int i = 0; i < 1000; ++i) model += "[n" + std::to_string(i) + "] v" + std::to_string(i) + " = Neg(x, x) ";
  const Imported m = import_text(model + "}");
  EXPECT_NE(m.problems.find("error[TC0199] m.onnxtxt: 800 more problems"), std::string::npos)
      << m.problems.substr(m.problems.size() - 300);
}

/// A chain of n Relus, in order or from the end.
std::string chain(int n, bool backwards, int opset) {
  std::string model =
      header(8, "\"\" : " + std::to_string(opset)) + "g (float[2] v0) => (float[2] v" + std::to_string(n) + ") {";
  for (int k = 0; k < n; ++k) {
    const int i = backwards ? n - 1 - k : k;
    model += " v" + std::to_string(i + 1) + " = Relu(v" + std::to_string(i) + ")";
  }
  return model + "}";
}

TEST(Hostile, LongChains) {
  for (const bool backwards : {false, true}) {
    const Imported m = import_text(chain(20000, backwards, 6));
    EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
    EXPECT_EQ(m.graph.num_nodes(), 20000u);
  }
}

/// Ifs inside Ifs, `depth` bodies deep.
std::string nested(int depth) {
  std::string inner = "z = Neg(x)", result = "z";
  for (int i = 0; i < depth; ++i) {
    const std::string k = std::to_string(i);
    inner = "r" + k + " = If (c) <then_branch = t () => (float[2] " + result + ") { " + inner +
            " }, else_branch = e () => (float[2] e" + k + ") { e" + k + " = Abs(x) }>";
    result = "r" + k;
  }
  return header() + "g (bool c, float[2] x) => (float[2] " + result + ") { " + inner + " }";
}

/// ONNX's inference makes an object of each element of a vector that it takes for a shape (shape_registry.h).
TEST(Hostile, LongVectorsAreNoShapes) {
  const Imported m = import_text(header() + R"(g (int64[1] x) => (int64[n] y)
<int64 a = {0}, int64 b = {100000000000000000}, int64 d = {1}> { r = Range(a, b, d)  y = Add(x, r) })");
  EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
  EXPECT_EQ(to_text(m.graph.outputs()[0]->type), "i64[100000000000000000]");
}

/// ONNX's inference counts the steps of a Slice of a shape in 32 bits.
TEST(Hostile, LongStepsOfSlicesEnd) {
  for (const char* step : {"1099511627776", "-1099511627776", "4294967296"}) {
    const Imported m = import_text(header() + R"(g (float[2,3,4] x) => (int64[1] y)
<int64[1] first = {0}, int64[1] last = {100}, int64[1] axis = {0}, int64[1] step = {)" +
                                   step + R"(}> {
  s = Shape(x)  y = Slice(s, first, last, axis, step) })");
    EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
  }
}

TEST(Hostile, NestedBodies) {
  EXPECT_EQ(import_text(nested(31)).problems, "");
  EXPECT_EQ(import_text(nested(32)).problems, "");
  for (const int depth : {33, 34, 300}) expect_refused({"nested", "", "TC0105", ExitCode::Limit}, nested(depth));
}

TEST(Hostile, NamesAreOnlyEverShownPrintable) {
  const Imported m =
      import_text(header() + "g (float[2] x) => (float[2] y) { [\"n\xe2\x80\xae\\x1b\n*/\"] y = Neg(x, x) }");
  EXPECT_EQ(m.problems.find('\xe2'), std::string::npos);
  EXPECT_EQ(m.exit, ExitCode::Rejected);
}

}  // namespace
}  // namespace tc::hostile_test
