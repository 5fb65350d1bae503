#include "passes/program/in_place.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::in_place_test {
namespace {

// y[i] = x[i] + r[i] over 100 elements, under loops that the test makes.
struct Case {
  Buffer x = make_buffer("x", DType::F32, {10, 10}), r = make_buffer("r", DType::F32, {10, 10}),
         y = make_buffer("y", DType::F32, {10, 10});
  Buffer x1 = make_buffer("x", DType::F32, {100}), r1 = make_buffer("r", DType::F32, {100}),
         y1 = make_buffer("y", DType::F32, {100});
  Var i = make_var("i"), j = make_var("j");

  Scheduled with(const Stmt& body) const {
    Scheduled s;
    s.inputs = {x, r};
    s.input_index = {0, 1};
    s.outputs = {y};
    s.views = {{x1, x}, {r1, r}, {y1, y}};
    s.body = body;
    return s;
  }
  Stmt add(const Expr& at, const Expr& read_at) const { return store(y1, {at}, load(x1, {at}) + load(r1, {read_at})); }
  Stmt add(const Expr& at) const { return add(at, at); }
  bool fits(const Stmt& body) const { return may_be_in_place(with(body), 1); }
};

TEST(InPlace, EachElementIsReadWhereItIsReplaced) {
  const Case c;
  EXPECT_TRUE(c.fits(loop(c.i, 100, c.add(c.i))));
  EXPECT_TRUE(
      c.fits(loop(c.i, 10, loop(c.j, 10, c.add(Expr(c.i) * 10 + Expr(c.j)), ForKind::Vector), ForKind::Parallel)));
  EXPECT_FALSE(c.fits(loop(c.i, 100, c.add(c.i, Expr(99) - Expr(c.i)))));
  EXPECT_FALSE(may_be_in_place(c.with(loop(c.i, 100, store(c.y1, {Expr(c.i)}, load(c.r1, {0})))), 1));
}

TEST(InPlace, ElementsWrittenTwiceAreReadTooLate) {
  const Case c;
  EXPECT_FALSE(c.fits(loop(c.i, 2, loop(c.j, 100, c.add(c.j)))));
  // Tiles that overlap: 96 .. 99 are made twice.
  EXPECT_FALSE(c.fits(seq({loop(c.i, 100, c.add(c.i)), loop(c.j, 4, c.add(Expr(c.j) + 96))})));
  EXPECT_FALSE(c.fits(seq({loop(c.j, 100, store(c.y1, {Expr(c.j)}, zero(DType::F32))), loop(c.i, 100, c.add(c.i))})));
}

TEST(InPlace, VectorsAndTheirTailsAreCounted) {
  const Case c;
  const Expr whole = Expr(100) / lanes() * lanes(), rest = Expr(100) - whole;
  auto vectors = [&](const Expr& at) { return load(c.x1, {ramp(at)}) + load(c.r1, {ramp(at)}); };
  const Expr at = Expr(c.i) * lanes();
  const Stmt body = loop(c.i, Expr(100) / lanes(), store(c.y1, {ramp(at)}, vectors(at)));
  const Expr tail = partial(load(c.x1, {ramp(whole)}), rest) + partial(load(c.r1, {ramp(whole)}), rest);
  EXPECT_TRUE(c.fits(seq({body, store(c.y1, {ramp(whole)}, tail, std::nullopt, rest)})));
  EXPECT_FALSE(c.fits(body));  // with 16 lanes four elements are missing
}

TEST(InPlace, WhatIsNotProvedIsRefused) {
  const Case c;
  EXPECT_FALSE(c.fits(loop(c.i, 100, if_then(Expr(c.i) < Expr(100), c.add(c.i)))));
  const Var v = make_var("v", DType::F32);
  EXPECT_FALSE(c.fits(loop(c.i, 100, let(v, load(c.r1, {Expr(c.i)}), store(c.y1, {Expr(c.i)}, Expr(v))))));
  const Buffer view = make_buffer("view", DType::F32, {10});
  EXPECT_FALSE(c.fits(seq({alias(view, c.r1, 0, store(view, {0}, zero(DType::F32))), loop(c.i, 100, c.add(c.i))})));
}

// A thread for each of 100 elements, in blocks of 32.
Stmt by_threads(const Case& c, const std::function<Stmt(const Expr& at)>& body, int64_t end = 100) {
  const Var e = make_var("e");
  const Stmt guarded = if_then(Expr(e) < Expr(end), body(e));
  return loop(c.i, 4, loop(c.j, 32, let(e, Expr(c.i) * 32 + Expr(c.j), guarded), ForKind::ThreadX), ForKind::BlockX);
}

TEST(InPlace, OfStatesAThreadPerElementIsCounted) {
  const Case c;
  const auto fits = [&](const Stmt& s) { return may_be_in_place(c.with(s), 1, true); };
  const auto add = [&](const Expr& at) { return c.add(at); };
  EXPECT_TRUE(fits(by_threads(c, add)));
  EXPECT_FALSE(c.fits(by_threads(c, add)));
  EXPECT_FALSE(fits(by_threads(c, add, 99)));
  EXPECT_FALSE(fits(by_threads(c, [&](const Expr& at) { return c.add(at, Expr(99) - at); })));
  // Both run for each element.
  EXPECT_FALSE(fits(by_threads(c, [&](const Expr& at) { return seq({c.add(at), c.add(at)}); })));
  EXPECT_FALSE(fits(seq({by_threads(c, add), by_threads(c, add)})));
}

TEST(InPlace, ConditionsThatAreNoNumberOfAnElementAreRefused) {
  const Case c;
  const auto fits = [&](const Expr& condition) {
    const Stmt body = if_then(condition, c.add(Expr(c.i) * 10 + Expr(c.j)));
    return may_be_in_place(c.with(loop(c.i, 10, loop(c.j, 10, body))), 1, true);
  };
  EXPECT_TRUE(fits(Expr(c.i) * 10 + Expr(c.j) < Expr(100)));
  EXPECT_TRUE(fits(Expr(c.j) < Expr(12)));
  EXPECT_FALSE(fits(Expr(c.j) < Expr(9)));
  EXPECT_FALSE(fits(Expr(c.i) * 9 + Expr(c.j) < Expr(100)));
  EXPECT_FALSE(fits(Expr(c.j) + 1 < Expr(11)));
  EXPECT_FALSE(fits(Expr(c.j) < load(make_buffer("n", DType::I64, {}), {})));
}

TEST(InPlace, AGuardedCopyFallsAway) {
  const Case c;
  const Stmt copy = by_threads(c, [&](const Expr& at) { return store(c.y1, {at}, load(c.r1, {at})); });
  const Stmt change = loop(make_var("k"), 3, store(c.y1, {Expr(0)}, load(c.x1, {Expr(0)})));
  ASSERT_TRUE(may_be_in_place(c.with(seq({copy, change})), 1, true));
  EXPECT_EQ(to_text(in_place(c.with(seq({copy, change})), 1, true).body), to_text(change));
  EXPECT_FALSE(c.fits(seq({copy, change})));
}

TEST(InPlace, TheOperandIsNoParameterAnyLonger) {
  const Case c;
  const Scheduled s = in_place(c.with(loop(c.i, 100, c.add(c.i))), 1);
  EXPECT_EQ(s.inputs, std::vector<Buffer>{c.x});
  EXPECT_EQ(s.input_index, std::vector<int>{0});
  EXPECT_EQ(s.replaced, "r");
  EXPECT_NE(to_text(s.body).find("y[i] = x[i] + y[i]"), std::string::npos) << to_text(s.body);
}

TEST(InPlace, ACopyThatComesFirstFallsAway) {
  const Case c;
  const Stmt copy = loop(c.i, 100, store(c.y1, {Expr(c.i)}, load(c.r1, {Expr(c.i)})));
  const Stmt change = loop(c.j, 3, store(c.y1, {Expr(c.j) * 7}, load(c.x1, {Expr(c.j)})));
  ASSERT_TRUE(c.fits(seq({copy, change})));
  const Scheduled s = in_place(c.with(seq({copy, change})), 1);
  EXPECT_EQ(s.inputs, std::vector<Buffer>{c.x});
  EXPECT_EQ(to_text(s.body), to_text(change));
  // Half of it, one that is read again, and one that comes last stay.
  EXPECT_FALSE(c.fits(seq({loop(c.i, 50, store(c.y1, {Expr(c.i)}, load(c.r1, {Expr(c.i)}))), change})));
  EXPECT_FALSE(c.fits(seq({copy, loop(c.j, 3, store(c.y1, {Expr(c.j)}, load(c.r1, {Expr(c.j) + 9})))})));
  EXPECT_FALSE(c.fits(seq({change, copy})));
}

}  // namespace
}  // namespace tc::in_place_test
