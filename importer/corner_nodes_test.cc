// Nodes that a pass may not expect: without inputs, without users, with absent operands in every position, with tensors
// without elements. They are drawn from ONNX's schemas for every row of the operator table until one is accepted, and
// go through every pass at every level, through build_program() for both targets, and with each pass switched off. What
// the interpreter computes of them stays the same. TC_CORNERS=SEED,DRAWS looks for more.
#include <gtest/gtest.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "importer/test_import.h"
#include "ir/ops/evaluate.h"
#include "ir/ops/op.h"
#include "passes/program/build_program.h"
#include "passes/test_target.h"

namespace tc::corner_nodes_test {
namespace {

using Ints = std::vector<int64_t>;

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int below(int n) { return int(random_() % unsigned(n)); }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[size_t(below(int(list.size())))];
  }

 private:
  std::mt19937 random_;
};

const std::vector<Dims>& shapes() {
  static const std::vector<Dims> list = {{2, 3},    {2, 3},       {3},          {},           {1},          {4, 4},
                                         {2, 3, 4}, {1, 4, 5, 5}, {4, 4, 3, 3}, {2, 4, 6, 6}, {1, 1, 1, 1}, {0},
                                         {0, 3},    {2, 0},       {2, 0, 4},    {1, 4, 0, 5}, {0, 4, 5, 5}};
  return list;
}

/// Values that attributes of this name and type may have.
void fill_attribute(Draw& d, onnx::AttributeProto& a, int type) {
  static const std::map<std::string, std::vector<Ints>> kLists = {
      {"axes", {{0}, {-1}, {0, 1}, {}}},
      {"kernel_shape", {{2}, {2, 2}, {3, 3}}},
      {"pads", {{0, 0, 0, 0}, {1, 1, 1, 1}}},
      {"strides", {{1, 1}, {2, 2}, {1}}},
      {"dilations", {{1, 1}, {2, 2}}},
      {"perm", {{1, 0}, {0, 2, 1}, {0, 2, 3, 1}}},
      {"shape", {{2, 3}, {0, 3}, {1}}},
      {"output_padding", {{0, 0}, {1, 1}}},
      {"pooled_shape", {{2, 2}}},
      {"output_shape", {{6, 6}}},
  };
  static const std::map<std::string, Ints> kNumbers = {
      {"axis", {0, 1, -1}},   {"to", {1, 7, 6, 11, 10, 9, 2}},
      {"dtype", {1, 11, 10}}, {"blocksize", {2}},
      {"hidden_size", {3}},   {"group", {1, 4}},
      {"seed", {7}},          {"block_size", {0, 2}},
  };
  static const std::vector<std::string> kWords = {"linear", "nearest", "cubic", "reflect", "edge",       "wrap",
                                                  "sum",    "mean",    "none",  "NOTSET",  "SAME_UPPER", "VALID",
                                                  "CRD",    "min",     "max",   "tanh",    "reverse",    "ij,jk->ik"};
  a.set_type(onnx::AttributeProto::AttributeType(type));
  switch (type) {
    case onnx::AttributeProto::INT: {
      const auto it = kNumbers.find(a.name());
      a.set_i(it == kNumbers.end() ? d.below(3) : d.of(it->second));
      break;
    }
    case onnx::AttributeProto::FLOAT: a.set_f(float(d.below(5)) * 0.5f - 0.5f); break;
    case onnx::AttributeProto::STRING: a.set_s(d.of(kWords)); break;
    case onnx::AttributeProto::INTS: {
      const auto it = kLists.find(a.name());
      for (const int64_t v : it == kLists.end() ? Ints{1, 1} : d.of(it->second)) a.add_ints(v);
      break;
    }
    case onnx::AttributeProto::FLOATS:
      for (int k = 0; k < 3; ++k) a.add_floats(float(k));
      break;
    case onnx::AttributeProto::STRINGS:
      for (const char* s : {"a", "b", "c"}) a.add_strings(s);
      break;
    default: break;
  }
}

/// Types that the schema's letter for a type may stand for here.
std::vector<DType> choices(const onnx::OpSchema& schema, const std::string& type) {
  static const std::map<std::string, DType> kTypes = {{"tensor(float)", DType::F32},  {"tensor(int64)", DType::I64},
                                                      {"tensor(bool)", DType::Bool},  {"tensor(int32)", DType::I32},
                                                      {"tensor(uint8)", DType::U8},   {"tensor(int8)", DType::I8},
                                                      {"tensor(float16)", DType::F16}};
  std::vector<DType> list;
  auto add = [&](const std::string& word) {
    if (const auto it = kTypes.find(word); it != kTypes.end()) list.push_back(it->second);
  };
  add(type);
  for (const auto& c : schema.typeConstraintParams())
    if (c.type_param_str == type)
      for (const std::string& word : c.allowed_type_strs) add(word);
  // Most things of interest are done to floats.
  if (std::count(list.begin(), list.end(), DType::F32)) list.insert(list.end(), list.size(), DType::F32);
  return list;
}

void set_bytes(Draw& d, onnx::TensorProto& t, DType type) {
  const int64_t n = num_elements(Dims(t.dims().begin(), t.dims().end()));
  for (int64_t k = 0; k < n; ++k) {
    const Constant one = scalar_constant(type, d.below(3));
    t.mutable_raw_data()->append(reinterpret_cast<const char*>(one->bytes.get()), one->num_bytes);
  }
  if (n == 0) t.set_raw_data("");
}

/// A model of one node of this operator, with something behind it or nothing; "" if its operands cannot be drawn.
std::string draw_model(Draw& d, const onnx::OpSchema& schema) {
  onnx::ModelProto m;
  m.set_ir_version(onnx::Version::IR_VERSION);
  for (const char* domain : {"", "ai.onnx.ml"}) {
    auto* o = m.add_opset_import();
    o->set_domain(domain);
    o->set_version(*domain ? onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at(domain).second
                           : newest_opset());
  }
  onnx::GraphProto& g = *m.mutable_graph();
  g.set_name("g");
  onnx::NodeProto& n = *g.add_node();
  n.set_name("n");
  n.set_op_type(schema.Name());
  n.set_domain(schema.domain());
  std::map<std::string, DType> chosen;
  const bool alike = d.one_in(2);  // all operands of one shape
  const Dims common = d.of(shapes());
  auto add_operand = [&](const std::string& type) {
    const std::vector<DType> types = choices(schema, type);
    if (types.empty()) return false;
    const DType t = chosen.try_emplace(type, d.of(types)).first->second;
    const Dims dims = alike ? common : d.of(shapes());
    const std::string name = "x" + std::to_string(n.input_size());
    n.add_input(name);
    if (d.one_in(t == DType::I64 && n.input_size() > 1 ? 6 : 2)) {
      auto* v = g.add_input();
      v->set_name(name);
      auto* tensor = v->mutable_type()->mutable_tensor_type();
      tensor->set_elem_type(int(t));
      tensor->mutable_shape();
      for (const int64_t s : dims) tensor->mutable_shape()->add_dim()->set_dim_value(s);
      return true;
    }
    auto* c = g.add_initializer();
    c->set_name(name);
    c->set_data_type(int(t));
    for (const int64_t s : dims) c->add_dims(s);
    set_bytes(d, *c, t);
    return true;
  };
  for (const auto& formal : schema.inputs()) {
    const bool variadic = formal.GetOption() == onnx::OpSchema::Variadic;
    if (formal.GetOption() == onnx::OpSchema::Optional && d.one_in(2)) {
      n.add_input("");
      continue;
    }
    for (int k = variadic ? d.below(3) + 1 : 1; k > 0; --k)
      if (!add_operand(formal.GetTypeStr())) return "";
  }
  while (n.input_size() > 0 && n.input(n.input_size() - 1).empty()) n.mutable_input()->RemoveLast();
  for (const auto& formal : schema.outputs()) {
    const bool absent = formal.GetOption() == onnx::OpSchema::Optional && d.one_in(2);
    const int many = formal.GetOption() == onnx::OpSchema::Variadic ? d.below(3) + 1 : 1;
    for (int k = 0; k < many; ++k) n.add_output(absent ? "" : "y" + std::to_string(n.output_size()));
  }
  const std::map<std::string, onnx::OpSchema::Attribute> sorted(schema.attributes().begin(), schema.attributes().end());
  for (const auto& [name, spec] : sorted) {
    if (spec.type == onnx::AttributeProto::GRAPH || spec.type == onnx::AttributeProto::TENSOR) {
      if (spec.required) return "";
      continue;
    }
    if (!spec.required && !d.one_in(4)) continue;
    auto* a = n.add_attribute();
    a->set_name(name);
    fill_attribute(d, *a, spec.type);
  }
  std::vector<std::string> made;
  for (const auto& o : n.output())
    if (!o.empty()) made.push_back(o);
  if (made.empty()) return "";
  for (const std::string& name : made)
    if (made.size() == 1 || !d.one_in(3)) g.add_output()->set_name(name);
  if (g.output_size() == 0) g.add_output()->set_name(made[0]);
  if (d.one_in(3)) {  // work behind it that passes look through
    auto* more = g.add_node();
    more->set_op_type(d.of(std::vector<std::string>{"Relu", "Neg", "Identity", "Transpose", "Shape"}));
    more->add_input(made[0]);
    more->add_output("z");
    g.add_output()->set_name("z");
    if (d.one_in(2)) g.mutable_output()->DeleteSubrange(0, 1);
  }
  return m.SerializeAsString();
}

std::vector<Constant> drawn_inputs(Draw& d, const Graph& g) {
  std::vector<Constant> list;
  for (const Value* v : g.inputs()) {
    MutableTensor t = new_tensor(v->type.dtype, static_dims(v->type.shape));
    const size_t width = size_t(info(v->type.dtype).bytes);
    for (int64_t k = 0; k < t.data.size(); ++k) {
      const Constant one = scalar_constant(v->type.dtype, d.below(3));
      std::copy_n(one->bytes.get(), width, t.bytes + size_t(k) * width);
    }
    list.push_back(std::make_shared<TensorData>(std::move(t.data)));
  }
  return list;
}

/// Where the two differ, "" nowhere.
std::string difference(const std::vector<Constant>& a, const std::vector<Constant>& b) {
  if (a.size() != b.size()) return "another number of outputs";
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k]->dtype != b[k]->dtype || a[k]->dims != b[k]->dims) return "another type or shape";
    if (a[k]->dtype == DType::String) continue;
    for (int64_t i = 0; i < a[k]->size(); ++i) {
      const double x = a[k]->as_double(i), y = b[k]->as_double(i);
      const bool equal = x == y || (std::isnan(x) && std::isnan(y));
      if (!equal && !(std::abs(x - y) <= 2e-3 * std::max({1.0, std::abs(x), std::abs(y)})))
        return "output " + to_text(int64_t(k)) + "[" + to_text(i) + "] is " + to_text(y) + " instead of " + to_text(x);
    }
  }
  return "";
}

struct Way {
  int level;
  Target::Kind target;
  std::string without;  // a pass
};

/// The graph after the passes of one way, evaluated, and built; what is wrong, or "". A refusal is nothing wrong.
std::string go(const Graph& before, const Way& way, const std::vector<Constant>& inputs,
               const std::vector<Constant>& expected) {
  Graph g = before.clone();
  Diagnostics problems;
  TestTarget target(test_target("generic", way.target == Target::Kind::Cuda));
  PassContext& cx = target.cx;
  cx.options.opt_level = way.level;
  cx.options.verify_each = true;
  cx.diagnostics = &problems;
  if (!way.without.empty()) cx.options.disabled.insert(way.without);
  try {
    std::string log;
    run_passes(graph_passes(), g, cx, log);
    if (problems.has_errors()) return "";
    if (!expected.empty())
      if (const std::string told = difference(expected, evaluate(g, inputs)); !told.empty()) return told;
    build_program(g, "m", cx, log);
  } catch (const Error&) {
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

std::vector<Way> ways_of(Draw& d) {
  using enum Target::Kind;
  std::vector<Way> ways = {{0, C, ""}, {1, C, ""}, {2, C, ""}, {3, C, ""}, {2, Cuda, ""}};
  for (int k = 0; k < 2; ++k) ways.push_back({3, C, std::string(d.of(graph_passes()).name)});
  return ways;
}

/// The graph of a model with the types of all its values, and no outputs if it is refused.
Graph typed(const std::string& path, std::string& wrong) {
  Diagnostics problems;
  try {
    Graph g = import_model(path, {}, problems);
    if (problems.has_errors()) return Graph();
    PassContext cx;
    cx.diagnostics = &problems;
    std::string log;
    run_passes({graph_passes().front()}, g, cx, log);
    if (problems.has_errors()) return Graph();
    return g;
  } catch (const Error&) {
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  return Graph();
}

bool can_run(const Graph& g) {
  const auto tensors = [](const auto& v) { return v->type.is_static_tensor() && v->type.dtype != DType::String; };
  return g.sizes().outputs.empty() && std::all_of(g.values().begin(), g.values().end(), tensors);
}

std::vector<Constant> evaluated(const Graph& g, const std::vector<Constant>& inputs) {
  try {
    return evaluate(g, inputs);
  } catch (const std::exception&) {  // indices out of range, division by zero
    return {};
  }
}

TEST(CornerNodes, GoThroughEveryPass) {
  unsigned seed = 1;
  int draws = 40;
  const char* wish = std::getenv("TC_CORNERS");
  if (wish) {
    ASSERT_EQ(std::sscanf(wish, "%u,%d", &seed, &draws), 2);
  }
  const importer_testing::TestFolder folder;
  std::set<std::string> accepted, tried;
  int wrong_ones = 0;
  for (const OpRow* row : all_ops()) {
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(std::string(row->name), std::string(row->domain));
    if (!schema || row->domain == "com.microsoft") continue;
    Draw d(seed * 7919 + unsigned(tried.size()));
    tried.insert(std::string(row->name));
    for (int k = 0, taken = 0; k < draws && taken < std::max(3, draws / 15); ++k) {
      const std::string model = draw_model(d, *schema);
      if (model.empty()) continue;
      const std::string path = folder.write("m.onnx", model);
      if (wish) std::fprintf(stderr, "%s, draw %d\n", std::string(row->name).c_str(), k);  // the last one crashed
      std::string wrong;
      const Graph g = typed(path, wrong);
      if (wrong.empty() && g.outputs().empty()) continue;
      if (wrong.empty()) {
        ++taken;
        accepted.insert(std::string(row->name));
        const bool runs = can_run(g);
        const auto inputs = runs ? drawn_inputs(d, g) : std::vector<Constant>();
        const auto expected = runs ? evaluated(g, inputs) : std::vector<Constant>();
        for (const Way& way : ways_of(d)) {
          wrong = go(g, way, inputs, expected);
          if (wrong.empty()) continue;
          wrong = "-O" + to_text(int64_t(way.level)) + (way.target == Target::Kind::Cuda ? " cuda" : "") +
                  (way.without.empty() ? "" : " without " + way.without) + ": " + wrong;
          break;
        }
      }
      if (wrong.empty()) continue;
      ADD_FAILURE() << row->name << ", draw " << k << ": " << wrong << "\n" << to_text(g);
      if (++wrong_ones > 20) return;
      break;
    }
  }
  // The others need a body, a string or numbers that no chance finds.
  EXPECT_GT(accepted.size() * 10, tried.size() * 7) << accepted.size() << " of " << tried.size();
}

/// The model goes every way and computes the same.
void goes_every_way(const std::string& graph) {
  const importer_testing::TestFolder folder;
  const std::string path = folder.write("m.onnxtxt", "<ir_version: 8, opset_import: [\"\" : 18]> g " + graph);
  std::string wrong;
  const Graph g = typed(path, wrong);
  ASSERT_EQ(wrong, "");
  ASSERT_EQ(g.outputs().size(), 1u) << graph;
  Draw d(1);
  const auto inputs = drawn_inputs(d, g);
  const auto expected = evaluated(g, inputs);
  for (const Way& way : ways_of(d)) EXPECT_EQ(go(g, way, inputs, expected), "") << graph;
}

TEST(CornerNodes, NobodyReadsTheFirstOfTheResults) {
  for (const std::string sizes : {"0, 3", "1, 2"})
    goes_every_way("(float[3, 2] x) => (float[n, 2] y) <int64[2] sizes = {" + sizes +
                   "}> { a, y = Split <axis = 0> (x, sizes) }");
}

TEST(CornerNodes, OnlyTheTypeOfAnOperandIsRead) {
  goes_every_way("(float[3, 2] x, int8[2] z) => (float[2] y) { a = Gemm <transA = 1> (x, x) y = CastLike (z, a) }");
  goes_every_way("(double[16, 1] x, int8 z) => (double y) { a = Gemm <transA = 1> (x, x) y = CastLike (z, a) }");
}

TEST(CornerNodes, AConstantIsReadUnderOtherSizes) {
  const std::string numbers = "1, 2, 3, 4, 5, 6, 7, 8";
  goes_every_way("(float[8, 4] x) => (float[8, 2] y) <float[8] w = {" + numbers +
                 "}, int64[2] s = {4, 2}> { v = Reshape (w, s) y = MatMul (x, v) }");
  goes_every_way("(int64 step) => (float[2, n, 5, 2] y) <float[2, 8, 1] x = {" + numbers + ", " + numbers +
                 "}, float[8] w = {" + numbers +
                 "}, int64 s = {4}, int64 f = {8}> { y = STFT <onesided = 1> (x, s, w, f) }");
}

}  // namespace
}  // namespace tc::corner_nodes_test
