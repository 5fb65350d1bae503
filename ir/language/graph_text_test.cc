#include "ir/language/graph_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/loop/build.h"
#include "ir/ops/op.h"

namespace tc::language::graph_text_test {
namespace {

ValueType f32(const Dims& d) { return ValueType::tensor(DType::F32, to_shape(d)); }

void expect_round_trip(Graph& g, Elements elements = Elements::Numbered) {
  g.renumber();
  const GraphText text = graph_text(g, elements);
  EXPECT_EQ(text.unspeakable, std::vector<std::string>());
  Problems problems;
  const auto read = parse_module({"g.tc", text.text}, data_of(text), problems);
  for (const Problem& p : problems) ADD_FAILURE() << render({"g.tc", text.text}, p);
  ASSERT_TRUE(read) << text.text;
  EXPECT_EQ(difference_of(g, read->graph), "") << text.text << "is read as\n" << to_text(read->graph);
  EXPECT_EQ(graph_text(read->graph, elements).text, text.text);
}

/// What is wrong with a text, without the lines below the messages.
std::vector<std::string> problems_of(const std::string& text) {
  Problems problems;
  EXPECT_FALSE(parse_module({"g.tc", text}, {}, problems));
  std::vector<std::string> all;
  for (const Problem& p : problems) all.push_back(place_text({"g.tc", text}, p.at) + ": " + p.message);
  return all;
}

Constant numbers(DType t, const std::vector<double>& v) {
  MutableTensor m = new_tensor(t, {int64_t(v.size())});
  for (size_t k = 0; k < v.size(); k++)
    std::copy_n(scalar_constant(t, v[k])->bytes.get(), info(t).bytes, m.bytes + k * size_t(info(t).bytes));
  return std::make_shared<TensorData>(std::move(m.data));
}

TEST(GraphText, NamesOfEveryKind) {
  Graph g(ModelText("a \"net\"\n\\"));
  Value* x = g.add_input(ModelText("x"), f32({2}));
  for (const char* name : {"x", "x", "", "", "_", "const", "x~2", "a/b.c", "ünï", "fn"}) {
    Node* n = g.append("Relu", {x}, {ModelText(name)});
    n->name = ModelText(name);
    n->origins = {ModelText("o"), ModelText("\x01\"")};
    g.set_type(n->outputs[0], f32({2}));
    x = n->outputs[0];
  }
  g.append("Relu", {x}, {ModelText(std::string(300, 'y'))});
  g.set_type(g.nodes().back()->outputs[0], f32({2}));
  g.set_outputs({x, x});
  expect_round_trip(g);
}

TEST(GraphText, TypesOfEveryKind) {
  Graph g;
  ValueType unknown = f32({});
  unknown.has_rank = false;
  ValueType list;
  list.kind = ValueType::Kind::Sequence;
  list.element = std::make_shared<const ValueType>(unknown);
  ValueType maybe;
  maybe.kind = ValueType::Kind::Optional;
  maybe.element = std::make_shared<const ValueType>(list);
  const ValueType sizes = ValueType::tensor(DType::F8E4M3FN, {Dim::symbolic("N"), Dim::symbolic("a b", 7), Dim(), 3});
  for (const ValueType& t : {unknown, list, maybe, sizes, ValueType::tensor(DType::String, {0})})
    g.add_input(ModelText("x"), t);
  g.set_outputs({g.inputs()[0]});
  expect_round_trip(g);
}

TEST(GraphText, ElementsKeepTheirBits) {
  Graph g;
  const double inf = INFINITY;
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::F8E5M2, DType::F8E4M3FNUZ})
    g.add_constant(ModelText("c"), numbers(t, {0.1, -0.0, inf, -inf, std::nan(""), 1e30, 5e-324}));
  for (const DType t : {DType::I64, DType::I8, DType::U8, DType::U64, DType::I4, DType::Bool})
    g.add_constant(ModelText("c"), numbers(t, {0, 1}));
  const int64_t ends[] = {INT64_MIN, INT64_MAX};
  g.add_constant(ModelText("ends"), make_constant(DType::I64, {2}, ends));
  g.add_constant(ModelText("u"), make_constant(DType::U64, {2}, ends));
  const uint32_t nan = 0x7fc00001;  // a NaN that has no digits: it stands in the file of data
  g.add_constant(ModelText("nan"), make_constant(DType::F32, {}, &nan));
  g.add_constant(ModelText("z"), make_constant(DType::C64, {1}, ends));
  g.add_constant(ModelText("s"), string_constant({2, 1}, {"a\"\\\n", std::string("\0\xff", 2)}));
  g.add_constant(ModelText("none"), numbers(DType::F32, {}));
  g.set_outputs({g.add_input(ModelText("x"), f32({}))});
  expect_round_trip(g);
}

TEST(GraphText, SharedElementsStaySharedAndEqualOnesApart) {
  Graph g;
  const Constant large = numbers(DType::F32, std::vector<double>(100, 1)), small = numbers(DType::I64, {1});
  g.add_constant(ModelText("a"), large);
  g.add_constant(ModelText("b"), large);
  g.add_constant(ModelText("c"), numbers(DType::F32, std::vector<double>(100, 1)));
  g.add_constant(ModelText("d"), small);
  g.add_constant(ModelText("e"), numbers(DType::I64, {1}));
  Node* n = g.append("Relu", {g.add_input(ModelText("x"), f32({}))}, {ModelText("y")}, {{"a", small}, {"b", large}});
  g.set_type(n->outputs[0], f32({}));
  g.set_outputs({n->outputs[0]});
  expect_round_trip(g);
  expect_round_trip(g, Elements::Hashed);
  EXPECT_EQ(graph_text(g, Elements::Numbered).data.size(), 2u);
}

TEST(GraphText, AttributesOfEveryKind) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({2}));
  Attrs a{{"none", std::monostate()},
          {"i", INT64_MIN},
          {"f", 1.0f},
          {"tiny", 1e-45f},
          {"inf", -INFINITY},
          {"s", std::string("\"")},
          {"is", std::vector<int64_t>{1, -1}},
          {"fs", std::vector<float>{1, 0.1f}},
          {"ss", std::vector<std::string>{"", "b"}},
          {"no ints", std::vector<int64_t>()},
          {"no floats", std::vector<float>()},
          {"no_strings", std::vector<std::string>()},
          {"c", numbers(DType::I32, {1, 2})},
          {"nothing", Constant()}};
  Node* n = g.append("TopK", {x, nullptr, x}, {ModelText("y"), ModelText(), ModelText("z")}, a);
  g.set_type(n->outputs[0], f32({2}));
  g.set_type(n->outputs[2], f32({2}));
  g.set_outputs({n->outputs[2]});
  expect_round_trip(g);
}

TEST(GraphText, FunctionsRegionsAndSizesOfOutputs) {
  Graph g;
  Value* c = g.add_input(ModelText("c"), ValueType::tensor(DType::Bool, {}));
  Value* x = g.add_input(ModelText("x"), f32({3}));
  Node* f = g.append("fused", {x}, {ModelText("y")}, {}, "tc");
  const Buffer in = make_buffer("x", DType::F32, {3}), out = make_buffer("y", DType::F32, {3});
  Stage s;
  s.kind = Stage::Kind::Nest;
  s.name = "up";
  s.outputs = {out};
  const Var i = make_var("i"), v = make_var("v", DType::F32);
  s.nest = loop(i, 3,
                let(v, load(in, {i}),
                    if_then(Expr(v) > make_float(DType::F32, 0), store(out, {i}, v),
                            store(out, {i}, make_float(DType::F32, 0), Op::Max))));
  f->fn = std::make_shared<const TensorFn>(TensorFn{{in}, {s}, {out}});
  g.set_type(f->outputs[0], f32({3}));
  Node* n = g.append("If", {c, f->outputs[0]}, {ModelText("z")});
  n->captures = 1;
  for (int k = 0; k < 2; k++) {
    auto r = std::make_unique<Graph>(ModelText("branch"));
    r->set_outputs({r->add_input(ModelText("x"), f32({3}))});
    n->regions.push_back(std::move(r));
  }
  g.set_type(n->outputs[0], f32({3}));
  g.set_outputs({n->outputs[0], g.add_constant(ModelText("n"), numbers(DType::I64, {2}))});
  g.set_type(g.outputs()[1], ValueType::tensor(DType::I64, {Dim(1)}));
  g.set_outputs({n->outputs[0], g.add_constant(ModelText("n"), scalar_constant(DType::I64, 2))});
  g.set_sizes({{}, {}, {{0, 0, 1}}});
  expect_round_trip(g);
}

TEST(GraphText, OutputsAreCountedBySumsOfSizes) {
  Graph g;
  Value* x = g.add_input(ModelText("x"), f32({8, 3}));
  const Value* n = g.add_input(ModelText("n"), ValueType::tensor(DType::I64, {}));
  ASSERT_EQ(n, g.inputs()[1]);
  g.set_outputs({x});
  RunTimeSizes sizes;
  sizes.chosen = {{1, 1, 4}};
  sizes.inputs = {{0, 0, SizeSum{{{1, 2}}, -1}}};
  sizes.outputs = {{0, 0, 0, SizeSum{{{1, 2}}, -1}}};
  g.set_sizes(sizes);
  expect_round_trip(g);
  const auto counted_by = [&](const std::string& sum) {
    return problems_of("graph (x: f32[8], n: i64[] from 1 to 4, k: i64[]) -> (x counted 0 by " + sum + ") {\n}");
  };
  const auto at = [](const std::string& why) { return std::vector<std::string>{"g.tc:1:55: " + why}; };
  EXPECT_EQ(counted_by("input 2"), at("input 2, which counts the output, is no size"));
  EXPECT_EQ(counted_by("input 1 plus constant -2"), at("what counts the output may be below 0"));
  EXPECT_EQ(counted_by("input 5"), at("there is no input 5"));
}

TEST(GraphText, AllMistakesAtOnce) {
  EXPECT_EQ(problems_of("graph net(x: f32[2]) -> (y) {\n"
                        "  w: f32[3] = const [1.0, 2.0]\n"
                        "  a: f33[2] = Relu(x)\n"
                        "  b: f32[2] = Relu(a)\n"
                        "  c: f32[2] = Relu(d)\n"
                        "  e: f32[2] = Frobnicate(x)\n"
                        "  x: f32[2] = Relu(x)\n"
                        "  y: f32[2] = Relu(x) {k = [1, 1.5]}\n"
                        "}\n"),
            (std::vector<std::string>{
                "g.tc:2:22: the type has 3 elements, here are 2", "g.tc:3:6: no element type is called 'f33'",
                "g.tc:5:20: no value is called 'd' above",
                "g.tc:6:15: no operator is called Frobnicate; one of your own is defined above the graph, as in "
                "docs/language.md",
                "g.tc:7:3: 'x' is defined already; others of that name are 'x~2' and so on",
                "g.tc:8:29: a list has elements of one kind; 1.0 is a number beside others, 1 is not"}));
}

TEST(GraphText, WhatIsNotSoundIsRefused) {
  const auto first = [](const std::string& text) {
    const std::vector<std::string> all = problems_of(text);
    return all.empty() ? "" : all[0];
  };
  EXPECT_EQ(first(""),
            "g.tc:1:1: expected a graph, as in graph net(x: f32[2]) -> (y) { ... }, found the end of the file");
  EXPECT_EQ(first("ir 7\n"), "g.tc:1:4: this is version 7 of the language; this tc-emit reads version 1");
  EXPECT_EQ(first("graph (x: f32[2]) -> (x) {\n"),
            "g.tc:2:1: expected '}' after the nodes of a graph, found the end of the file");
  EXPECT_EQ(first("graph (x: f32[2]) -> (x) {\n} x"),
            "g.tc:2:3: expected the end of the file behind the graph, found 'x'");
  EXPECT_EQ(
      first("graph (x: f32[2]) -> (x) {\n  w: f32[9] = const data\n}"),
      "g.tc:2:21: the elements of this constant are not in this text, which shows a graph; --write-ir keeps them");
  EXPECT_EQ(first("graph (x: f32[2]) -> (y) {\n  y: f32[2] = tc.fused(x)\n}"),
            "g.tc:1:1: the graph is not sound: node \"\" (tc.fused): its function is missing");
  EXPECT_EQ(first("graph (x: f32[2]) -> (y) {\n  y: f32[2] = tc.fused(x)\n    fn(x: f32[3]) -> x: f32[3] {\n    }\n}"),
            "g.tc:1:1: the graph is not sound: node \"\" (tc.fused): operands 0 of its function have another type");
  EXPECT_NE(first("graph (x: f32[4]) -> (y) {\n  y: f32[4] = tc.fused(x)\n    fn(x: f32[4]) -> y: f32[4] {\n"
                  "      y: f32[i: 4] = x[i + 100]\n    }\n}")
                .find("not sound"),
            std::string::npos);
  std::string deep;
  for (int k = 0; k < 150; k++) deep += "graph () -> () {\n = If()\n";
  EXPECT_EQ(problems_of(deep).size(), 1u) << first(deep);
}

TEST(GraphText, HeadersAreReadAsTheyWereWritten) {
  const ModuleHeader h{"fold_constant#2", {{"--cpu", "x86-64-v3"}, {"--dim", "a\"b=1"}}};
  Problems problems;
  const auto m = parse_module({"g.tc", to_text(h) + "graph (x: f32[2]) -> (x) {\n}\n"}, {}, problems);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->header.after, h.after);
  EXPECT_EQ(m->header.options, h.options);
}

}  // namespace
}  // namespace tc::language::graph_text_test
