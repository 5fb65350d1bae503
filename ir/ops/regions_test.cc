#include "ir/ops/regions.h"

#include <gtest/gtest.h>

#include "ir/ops/op.h"

namespace tc::regions_test {
namespace {

enum class End { Never, Always, AtRunTime };

// A Loop over a state f32[4], whose body stacks the state; the condition it gives is `end`.
struct LoopGraph {
  Graph g;
  Node* n;

  LoopGraph(std::optional<int64_t> trips, bool asks_trips, bool asks_start, End end) {
    Value* m = trips ? g.add_constant(ModelText("m"), make_constant(DType::I64, {}, &*trips)) : nullptr;
    if (asks_trips) m = g.add_input(ModelText("m"), ValueType::tensor(DType::I64, {}));
    Value* start = asks_start ? g.add_input(ModelText("start"), ValueType::tensor(DType::Bool, {})) : nullptr;
    Value* x = g.add_input(ModelText("x"), ValueType::tensor(DType::F32, to_shape({4})));
    n = g.append("Loop", {m, start, x}, {ModelText("last"), ModelText("all")});
    auto body = std::make_unique<Graph>();
    body->add_input(ModelText("i"), {});
    Value* go = body->add_input(ModelText("go"), {});
    Value* s = body->add_input(ModelText("s"), {});
    Value* next = end == End::Always ? body->add_constant(ModelText("no"), scalar_constant(DType::Bool, 0)) : go;
    if (end == End::AtRunTime) next = body->append("Not", {go}, {ModelText("next")})->outputs[0];
    body->set_outputs({next, s, s});
    n->regions.push_back(std::move(body));
  }
};

std::string problem(LoopGraph& l) {
  try {
    infer_types(l.g, *l.n);
  } catch (const Error& e) {
    return e.diagnostic().code;
  }
  return "";
}

TEST(LoopFacts, WhatIsKnownWhileCompiling) {
  const LoopFacts plain = loop_facts(*LoopGraph(7, false, false, End::Never).n);
  EXPECT_TRUE(plain.exact());
  EXPECT_EQ(plain.limit, 7);
  EXPECT_EQ(loop_facts(*LoopGraph(-7, false, false, End::Never).n).limit, 0);
  const LoopFacts once = loop_facts(*LoopGraph(7, false, false, End::Always).n);
  EXPECT_TRUE(once.exact());
  EXPECT_EQ(once.limit, 1);
  const LoopFacts early = loop_facts(*LoopGraph(7, false, false, End::AtRunTime).n);
  EXPECT_TRUE(early.asks_end);
  EXPECT_EQ(early.limit, 7);
  EXPECT_FALSE(early.exact());
  EXPECT_TRUE(loop_facts(*LoopGraph({}, true, false, End::Never).n).asks_limit);
  EXPECT_TRUE(loop_facts(*LoopGraph(7, false, true, End::Never).n).asks_start);
  // one iteration at most, but none if the trip count says so
  EXPECT_TRUE(loop_facts(*LoopGraph({}, true, false, End::Always).n).asks_end);
  EXPECT_TRUE(loop_facts(*LoopGraph(INT64_MAX, false, false, End::AtRunTime).n).ends());
  EXPECT_FALSE(loop_facts(*LoopGraph(INT64_MAX, false, true, End::Never).n).ends());
}

TEST(InferLoop, StackedResultsHaveAKnownOrADeclaredLength) {
  LoopGraph known(3, false, false, End::Never);
  EXPECT_EQ(problem(known), "");
  EXPECT_EQ(to_text(known.n->outputs[1]->type), "f32[3,4]");
  LoopGraph open({}, true, false, End::Never);
  EXPECT_EQ(problem(open), "");  // nobody reads it
  open.g.set_outputs({open.n->outputs[1]});
  EXPECT_EQ(problem(open), "TC0301");
  LoopGraph declared({}, true, false, End::Never);
  declared.g.set_outputs({declared.n->outputs[1]});
  declared.g.set_type(declared.n->outputs[1], ValueType::tensor(DType::F32, to_shape({9, 4})));
  EXPECT_EQ(problem(declared), "");
  EXPECT_EQ(to_text(declared.n->outputs[1]->type), "f32[9,4]");
  LoopGraph endless({}, false, false, End::Never);
  EXPECT_EQ(problem(endless), "TC3103");
}

}  // namespace
}  // namespace tc::regions_test
