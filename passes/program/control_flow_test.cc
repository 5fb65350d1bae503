#include <gtest/gtest.h>

#include <algorithm>

#include "passes/program/test_program.h"

namespace tc::control_flow_test {
namespace {

Program program_of(const std::string& graph, bool cuda = false) { return testing::program_of(graph, cuda); }

template <class T>
std::vector<T> of(const std::vector<Step>& steps) {
  std::vector<T> found;
  for (const Step& s : steps)
    if (const T* k = std::get_if<T>(&s.kind)) found.push_back(*k);
  return found;
}

bool same(const Operand& a, const Operand& b) { return a.kind == b.kind && a.index == b.index; }

TEST(ControlFlow, StatesSwapThroughOneMoreTensor) {
  const Program p = program_of(R"(g (int64 m, float[2] x, float[2] y) => (float[2] u, float[2] v) {
    u, v = Loop (m, , x, y) <body = b (int64 i, bool c, float[2] s, float[2] t) => (bool d, float[2] a, float[2] e) {
      d = Identity(c)  a = Identity(t)  e = Identity(s) }> })");
  const auto loops = of<LoopStep>(p.steps);
  ASSERT_EQ(loops.size(), 1u);
  const auto copies = of<CopyStep>(loops[0].body);
  ASSERT_EQ(copies.size(), 3u);
  EXPECT_TRUE(same(copies[0].to, copies[2].from));
  EXPECT_TRUE(same(copies[0].from, copies[1].to));
  EXPECT_TRUE(same(copies[1].from, copies[2].to));
  EXPECT_EQ(p.slots.size(), 1u);  // the states are the outputs themselves
}

TEST(ControlFlow, AConditionIsReadBeforeTheStateThatItIsChanges) {
  const Program p = program_of(R"(g (bool x, float[2] y) => (float[2] v) {
    u, v = Loop (, , x, y) <body = b (int64 i, bool c, bool s, float[2] t) => (bool d, bool n, float[2] e) {
      d = Identity(s)  n = Not(s)  e = Neg(t) }> })");
  const LoopStep loop = of<LoopStep>(p.steps).at(0);
  EXPECT_TRUE(loop.may_end);
  size_t asked = loop.body.size(), changed = 0;
  for (size_t i = 0; i < loop.body.size(); i++) {
    const auto* asks = std::get_if<ContinueStep>(&loop.body[i].kind);
    if (asks) asked = i;
    if (const auto* c = std::get_if<CopyStep>(&loop.body[i].kind); c && c->bytes == 1) changed = i;
  }
  EXPECT_LT(asked, changed);
}

TEST(ControlFlow, BodiesOverwriteNothingThatTheNextIterationReads) {
  const Program p = program_of(R"(g (int64 m, float[64] x) => (float[64] y) {
    k = Neg(x)  k2 = Softmax(k)
    r = Loop (m, , x) <body = b (int64 i, bool c, float[64] s) => (bool d, float[64] t) {
      d = Identity(c)  a = Mul(s, k2)  q = Softmax(a)  w = Add(q, k)  z = Softmax(w)  t = Add(z, s) }>
    y = Softmax(r) })");
  const LoopStep loop = of<LoopStep>(p.steps).at(0);
  std::vector<int> written, read;
  for (const Call& c : of<Call>(loop.body))
    for (size_t i = 0; i < c.operands.size(); i++)
      if (c.operands[i].kind == Operand::Kind::Slot)
        (p.kernels[size_t(c.kernel)].params[i].role == Param::Role::Output ? written : read)
            .push_back(c.operands[i].index);
  EXPECT_GE(written.size(), 1u);
  int outer = 0;
  for (const int r : read) {
    if (std::count(written.begin(), written.end(), r)) continue;
    outer++;
    for (const int w : written) {
      const Slot &a = p.slots[size_t(r)], &b = p.slots[size_t(w)];
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
    }
  }
  EXPECT_GE(outer, 2);
}

TEST(ControlFlow, BranchesKeepTheirOwnWeights) {
  const Program p = program_of(R"(g (float[4,4] x, bool c) => (float[4,4] y)
    <float[4,4] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}, float[4,4] u = {2,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> {
    y = If (c) <then_branch = t () => (float[4,4] a) { a = MatMul(x, w) }, else_branch = e () => (float[4,4] b) { b = MatMul(x, u) }> })");
  ASSERT_EQ(p.weights.size(), 2u);
  EXPECT_EQ(p.weights[0].suffix, "packed");
  EXPECT_NE(data_of(p.weights[0])->as_double(0), data_of(p.weights[1])->as_double(0));
}

TEST(ControlFlow, NothingIsCopiedForTensorsWithoutElements) {
  const Program p = program_of(R"(g (float[0,2] x, float[2] z, bool c) => (float[0,2] y, float[2] v) {
    y, v = If (c) <then_branch = t () => (float[0,2] a, float[2] q) { a = Identity(x)  q = Identity(z) },
                   else_branch = e () => (float[0,2] b, float[2] r) { b = Neg(x)  r = Neg(z) }> })");
  const IfStep s = of<IfStep>(p.steps).at(0);
  for (const auto* branch : {&s.then, &s.otherwise}) {
    const auto copies = of<CopyStep>(*branch);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].bytes, 8);
  }
}

constexpr const char* kCounting = R"(g (int64 m, float[2] x) => (float[2] y) {
    y = Loop (TRIPS, , x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
      d = Identity(c)  f = Cast <to = 1> (i)  t = Add(s, f) }> })";

std::string counting(const std::string& trips, const std::string& constants) {
  std::string s = kCounting;
  s.replace(s.find("TRIPS"), 5, trips);
  s.insert(s.find(" {"), constants);
  return s;
}

TEST(ControlFlow, CudaCapturesLoopsOfKnownLength) {
  const LoopStep known = of<LoopStep>(program_of(counting("n", " <int64 n = {5}>"), true).steps).at(0);
  EXPECT_TRUE(known.in_graph);
  EXPECT_FALSE(known.iteration);  // no host writes it; it comes from a table
  EXPECT_EQ(of<CopyStep>(known.body).at(0).part, CopyStep::Part::From);
  const Program p = program_of(counting("m", ""), true);
  const LoopStep open = of<LoopStep>(p.steps).at(0);
  EXPECT_TRUE(p.kernels[size_t(of<Call>(open.body).back().kernel)].name.starts_with("count"));
  EXPECT_FALSE(open.in_graph);
  EXPECT_FALSE(open.iteration);  // the device counts
  const LoopStep large = of<LoopStep>(program_of(counting("n", " <int64 n = {5000}>"), true).steps).at(0);
  EXPECT_FALSE(large.in_graph);
  EXPECT_EQ(large.trips, 5000);
}

TEST(ControlFlow, NoIterationIsNoLoop) {
  const Program p = program_of(counting("n", " <int64 n = {0}>"));
  EXPECT_TRUE(of<LoopStep>(p.steps).empty());
  ASSERT_EQ(p.steps.size(), 1u);
  EXPECT_EQ(of<CopyStep>(p.steps).at(0).bytes, 8);
}

TEST(InPlace, AResultTakesOverTheMemoryOfAnOperandThatDies) {
  const Program p = program_of(R"(g (float[60, 64] x, float[64, 64] w) => (float[60, 64] z) {
    a = MatMul(x, w)  b = Softmax(a)  c = Softmax(x)  d = MatMul(c, w)  e = Add(d, b)  z = MatMul(e, w) })");
  const auto aliases = std::count_if(p.slots.begin(), p.slots.end(), [](const Slot& s) { return s.alias_of >= 0; });
  EXPECT_GE(aliases, 1);
  for (const Slot& s : p.slots) EXPECT_TRUE(s.alias_of < 0 || s.offset == p.slots[size_t(s.alias_of)].offset);
}

TEST(InPlace, WhatABodyCapturesStays) {
  const Program p = program_of(R"(g (bool c, float[64] x) => (float[64] z) {
    p = Softmax(x)
    y = If(c) <then_branch = t () => (float[64] a) { a0 = Neg(p)  a = Softmax(a0) },
               else_branch = e () => (float[64] b) { b0 = Abs(p)  b = Softmax(b0) }>
    q = Softmax(y)
    z = Add(p, q) })");
  for (const Slot& s : p.slots) EXPECT_TRUE(s.alias_of < 0 || p.slots[size_t(s.alias_of)].name != ModelText("p"));
}

}  // namespace
}  // namespace tc::control_flow_test
