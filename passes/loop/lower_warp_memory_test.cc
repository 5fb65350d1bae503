#include "passes/loop/lower_warp_memory.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "support/error.h"

namespace tc::lower_warp_memory_test {
namespace {

constexpr int64_t kThreads = 64;

class LowerWarpMemory : public ::testing::Test {
 protected:
  Var t = make_var("t"), lane = make_var("lane");
  Buffer x = make_buffer("x", DType::F32, {Dim(kThreads)}), y = make_buffer("y", DType::F32, {Dim(kThreads)});
  Buffer w = make_buffer("w", DType::F32, {Dim(32)}, Scope::Warp);

  // w[lane] = x[t]; then `code`, of all threads
  Stmt threads(const Stmt& code) const {
    const Stmt fill = store(w, {Expr(lane)}, load(x, {Expr(t)}));
    return loop(t, kThreads, let(lane, floor_mod(Expr(t), 32), alloc(w, seq({fill, code}))), ForKind::ThreadX);
  }
  Stmt result(const Expr& value) const { return store(y, {Expr(t)}, value); }
  Expr of(const Expr& other) const { return load(w, {other}); }

  std::vector<float> run(const Stmt& s) const {
    std::vector<float> in(kThreads), out(kThreads, -1);
    for (size_t k = 0; k < in.size(); k++) in[k] = float(k * k % 41);
    RunOptions o;
    o.check_races = true;
    tc::run(s, {{x, reinterpret_cast<uint8_t*>(in.data())}, {y, reinterpret_cast<uint8_t*>(out.data())}}, o);
    return out;
  }
  // The same values, by this instruction.
  void expect(const Stmt& s, const std::string& instruction) const {
    const Stmt r = lower_warp_memory(s);
    EXPECT_EQ(run(r), run(s)) << to_text(r);
    EXPECT_NE(to_text(r).find(instruction + "("), std::string::npos) << to_text(r);
    EXPECT_EQ(to_text(r).find(" warp"), std::string::npos) << to_text(r);
  }
  static std::string error(const std::function<void()>& f) {
    try {
      f();
    } catch (const InternalError& e) {
      return e.what();
    }
    return "";
  }
};

TEST_F(LowerWarpMemory, a_prefix_sum_is_shuffles) {
  Stmts steps;
  for (const int64_t d : {1, 2, 4, 8, 16})
    steps.push_back(store(w, {Expr(lane)},
                          select(Expr(lane) >= Expr(d), of(Expr(lane) - Expr(d)) + of(Expr(lane)), of(Expr(lane)))));
  steps.push_back(result(of(Expr(lane))));
  const Stmt s = threads(seq(steps));
  expect(s, "shuffle_up");
  float sum = 0;
  const std::vector<float> out = run(s);
  for (size_t k = 0; k < 32; k++) EXPECT_EQ(out[k], sum += float(k * k % 41));
  EXPECT_EQ(out[32], float(32 * 32 % 41));
}

TEST_F(LowerWarpMemory, the_text) {
  EXPECT_EQ(to_text(lower_warp_memory(threads(result(of(apply(Op::BitXor, {Expr(lane), Expr(1)})) + of(Expr(lane)))))),
            "thread.x t in 0 .. +64:\n"
            "  let lane = floor_mod(t, 32)\n"
            "  alloc w: f32[] register\n"
            "  w[] = x[t]\n"
            "  alloc w_of: f32[] register\n"
            "  shuffle_xor(w[], 1, w_of)\n"
            "  y[t] = w_of[] + w[]\n");
}

TEST_F(LowerWarpMemory, each_form_of_index_has_its_shuffle) {
  const Expr l(lane);
  expect(threads(result(of(apply(Op::BitXor, {l, Expr(5)})))), "shuffle_xor");
  expect(threads(result(select(l < Expr(29), of(l + Expr(3)), make_float(DType::F32, 7)))), "shuffle_down");
  expect(threads(result(select(l > Expr(1), of(l - Expr(2)), make_float(DType::F32, 7)))), "shuffle_up");
  expect(threads(result(of(Expr(31) - l))), "shuffle_idx");
  expect(threads(result(of(floor_mod(Expr(t) * Expr(5), 32)))), "shuffle_idx");
  expect(threads(result(of(17))), "shuffle_idx");
}

TEST_F(LowerWarpMemory, the_own_element_needs_no_exchange) {
  const Stmt r = lower_warp_memory(threads(result(of(floor_mod(Expr(t), 32)))));
  EXPECT_EQ(to_text(r).find("shuffle"), std::string::npos) << to_text(r);
}

TEST_F(LowerWarpMemory, other_axes_are_registers_of_a_lane) {
  const Var i = make_var("i");
  const Buffer rows = make_buffer("rows", DType::F32, {Dim(3), Dim(32)}, Scope::Warp);
  const Stmt fill = loop(i, 3, store(rows, {Expr(i), Expr(lane)}, load(x, {Expr(t)}) * make_float(DType::F32, 2)));
  expect(threads(alloc(rows, seq({fill, result(load(rows, {2, Expr(31) - Expr(lane)}))}))), "shuffle_idx");
}

TEST_F(LowerWarpMemory, conditions_on_whole_warps_are_no_hindrance) {
  expect(threads(if_then(floor_div(Expr(t), 32) < Expr(1), result(of(3)))), "shuffle_idx");
}

TEST_F(LowerWarpMemory, what_cannot_be_exchanged_is_refused) {
  const Stmt half = threads(if_then(Expr(lane) < Expr(16), result(of(3))));
  EXPECT_NE(error([&] { lower_warp_memory(half); }).find("not all lanes"), std::string::npos);
  const Stmt loaded = threads(if_then(load(x, {Expr(t)}) < make_float(DType::F32, 3), result(of(3))));
  EXPECT_NE(error([&] { lower_warp_memory(loaded); }).find("not all lanes"), std::string::npos);
  const Stmt other = threads(store(w, {Expr(31) - Expr(lane)}, load(x, {0})));
  EXPECT_NE(error([&] { lower_warp_memory(other); }).find("of its own only"), std::string::npos);
}

TEST_F(LowerWarpMemory, the_interpreter_finds_what_no_lane_stored) {
  const Buffer v = make_buffer("v", DType::F32, {Dim(32)}, Scope::Warp);
  const Stmt even = if_then(eq(floor_mod(Expr(lane), 2), 0), store(v, {Expr(lane)}, load(x, {Expr(t)})));
  const Stmt s = threads(alloc(v, seq({even, result(load(v, {Expr(31) - Expr(lane)}))})));
  EXPECT_NE(error([&] { run(s); }).find("no lane has stored"), std::string::npos);
}

TEST_F(LowerWarpMemory, the_interpreter_finds_lanes_that_are_missing) {
  const Buffer to = make_buffer("to", DType::F32, {}, Scope::Register);
  const Stmt exchange = intrin("shuffle_xor", {{to, {}}}, {load(x, {Expr(t)}), Expr(1)});
  const Stmt s = loop(t, kThreads, alloc(to, if_then(Expr(t) < Expr(40), exchange)), ForKind::ThreadX);
  EXPECT_NE(error([&] { run(s); }).find("not all there"), std::string::npos);
}

}  // namespace
}  // namespace tc::lower_warp_memory_test
