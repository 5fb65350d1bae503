#include "passes/loop/guard_threads.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/open_size.h"

namespace tc::guard_threads_test {
namespace {

constexpr int64_t kColumns = 5;

class GuardThreads : public ::testing::Test {
 protected:
  Buffer count = make_buffer("batch", DType::I64, {});
  Buffer x = make_buffer("x", DType::F32, {Dim(kOpenSize * kColumns)}),
         y = make_buffer("y", DType::F32, {Dim(kOpenSize * kColumns)});
  Var b = make_var("b"), t = make_var("t"), i = make_var("i");

  /// What a thread of 256 in a block does.
  Stmt launch(const Stmt& s) const { return loop(b, kOpenSize, loop(t, 256, s, ForKind::ThreadX), ForKind::BlockX); }
  Expr point() const { return Expr(b) * 256 + Expr(t); }
  std::string guarded(const Stmt& s, int64_t largest = kOpenSize, bool on_host = true) const {
    return to_text(guard_threads(s, {{{y}, {largest, kColumns}, 0, load(count, {}), {{count, 1, largest}}, on_host}}));
  }
  std::string condition(const Stmt& s) const {
    const std::string text = guarded(s);
    const size_t begin = text.find("if ");
    return begin == text.npos ? "" : text.substr(begin, text.find(":\n", begin) - begin);
  }
};

TEST_F(GuardThreads, AThreadForEachRow) {
  const Stmt row = loop(i, kColumns, store(y, {point() * kColumns + Expr(i)}, load(x, {point() * kColumns + Expr(i)})));
  EXPECT_EQ(condition(launch(row)), "if b * 256 + t < batch[]");
}

TEST_F(GuardThreads, AThreadForEachElement) {
  const Stmt element = store(y, {point()}, load(x, {point()}));
  EXPECT_EQ(condition(launch(element)), "if b * 256 + t < batch[] * 5");
}

TEST_F(GuardThreads, RowsOfAThreadBeginWithTheFirst) {
  const Expr row = point() * 4 + Expr(i);
  EXPECT_EQ(condition(launch(loop(i, 4, store(y, {row * kColumns}, zero(DType::F32))))),
            "if b * 1024 + t * 4 < batch[]");
}

TEST_F(GuardThreads, ThreadsThatWaitForOthersStay) {
  const Stmt s = launch(seq({store(y, {point()}, zero(DType::F32)), barrier(Scope::Shared)}));
  EXPECT_EQ(guarded(s), to_text(s));
}

TEST_F(GuardThreads, ThreadsThatWaitTestNoIndexBeyondTheLast) {
  const Buffer index = make_buffer("index", DType::I64, {Dim(kOpenSize * kColumns)});
  const Expr checked = apply(Op::Index, {load(index, {point()}), Expr(99)});
  const Stmt s = launch(seq({store(y, {point()}, load(x, {checked})), barrier(Scope::Shared)}));
  const auto guarded_for = [&](const Expr& blocks, const Stmt& s) {
    return to_text(guard_threads(s, {{{y}, {kOpenSize, kColumns}, 0, load(count, {}), {{count, 1, kOpenSize}}, true}},
                                 {{b.get(), blocks}}));
  };
  const Expr n = load(count, {});
  const Expr rounded = apply(Op::Div, {n * 5 + 255, Expr(256)});
  EXPECT_NE(guarded_for(rounded, s).find("batch[] * 5"), std::string::npos);
  EXPECT_EQ(guarded_for(n * 5, s), to_text(s));  // the last block is full
  // What a loop over a size goes through may be counted by another one.
  const Expr other = apply(Op::Index, {load(index, {Expr(i)}), Expr(99)});
  const Stmt sum = loop(i, kOpenSize, store(y, {point()}, load(x, {other}), Op::Add));
  const Stmt sums = launch(seq({sum, barrier(Scope::Shared)}));
  EXPECT_EQ(guarded_for(rounded, sums), to_text(sums));
}

TEST_F(GuardThreads, WhatOthersReadStays) {
  const Buffer shared = make_buffer("shared", DType::F32, {Dim(256)}, Scope::Shared);
  const Stmt s =
      alloc(shared, launch(seq({store(shared, {Expr(t)}, zero(DType::F32)), store(y, {point()}, zero(DType::F32))})));
  EXPECT_EQ(guarded(s), to_text(s));
}

TEST_F(GuardThreads, WhatAnotherLaunchReadsIsStored) {
  const Buffer z = make_buffer("z", DType::F32, {Dim(1)});
  const Var block = make_var("block");
  const Stmt reader = loop(block, 1, store(z, {0}, load(y, {5})), ForKind::BlockX);
  const Stmt s = seq({launch(store(y, {point()}, load(x, {point()}))), reader});
  EXPECT_EQ(guarded(s), to_text(s));
}

TEST_F(GuardThreads, SizesThatHaveABoundHaveMemoryForAllThreads) {
  const Stmt s = launch(store(y, {point()}, zero(DType::F32)));
  EXPECT_EQ(guarded(s, 1 << 20), to_text(s));
  EXPECT_EQ(guarded(s, kOpenSize, false), to_text(s));  // the host does not know the count
}

}  // namespace
}  // namespace tc::guard_threads_test
