#include "passes/loop/lower_lanes.h"

#include <gtest/gtest.h>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/verify.h"

namespace tc {
namespace {

struct Fixture {
  Buffer x = make_buffer("x", DType::F32, {2, 100}), b = make_buffer("b", DType::F32, {2}),
         y = make_buffer("y", DType::F32, {2, 100});
  Var i = make_var("i"), j = make_var("j");

  Stmt nest(const Expr& value, int64_t n, std::optional<Op> reduce = {}) const {
    return loop(i, 2, loop(j, n, store(y, {i, j}, value, reduce), ForKind::Vector));
  }
  std::vector<float> run_it(const Stmt& s, int vl) const {
    std::vector<float> in(200), bias = {5, -3}, out(200, 1.0f);
    for (size_t k = 0; k < in.size(); k++) in[k] = float(int(k * 7 % 11) - 5);
    verify(s, {x, b, y});
    RunOptions o;
    o.vl = vl;
    run(s,
        {{x, reinterpret_cast<uint8_t*>(in.data())},
         {b, reinterpret_cast<uint8_t*>(bias.data())},
         {y, reinterpret_cast<uint8_t*>(out.data())}},
        o);
    return out;
  }
  void expect_same(const Stmt& s) const {
    for (const int vl : {1, 4, 8, 16}) EXPECT_EQ(run_it(s, 4), run_it(lower_lanes(s), vl)) << vl;
  }
};

TEST(LowerLanes, WholeVectorsAndAPartialOne) {
  const Fixture f;
  const Stmt s = f.nest(load(f.x, {f.i, f.j}) + load(f.b, {f.i}), 100);
  EXPECT_EQ(to_text(lower_lanes(s)),
            "for i in 0 .. +2:\n"
            "  for v in 0 .. +100 / VL:\n"
            "    y[i, (v * VL):VL] = x[i, (v * VL):VL] + all(b[i])\n"
            "  y[i, (100 / VL * VL):VL] = first(100 - 100 / VL * VL, x[i, (100 / VL * VL):VL]) + all(b[i])  "
            "(first 100 - 100 / VL * VL)\n");
  f.expect_same(s);
}

TEST(LowerLanes, MultiplesNeedNoPartialVector) {
  const Fixture f;
  const Stmt s = f.nest(load(f.x, {f.i, f.j}), 96);
  EXPECT_EQ(to_text(lower_lanes(s)),
            "for i in 0 .. +2:\n"
            "  for v in 0 .. +96 / VL:\n"
            "    y[i, (v * VL):VL] = x[i, (v * VL):VL]\n");
  f.expect_same(s);
}

TEST(LowerLanes, JoinsReadWhatIsThere) {
  const Fixture f;
  f.expect_same(f.nest(max(load(f.x, {f.i, f.j}), load(f.x, {0, f.j})), 99, Op::Add));
}

TEST(LowerLanes, OtherFormsBecomePlainLoops) {
  const Fixture f;
  const Stmt plain[] = {
      f.nest(load(f.x, {f.i, f.j}), 7),                                        // short
      f.nest(load(f.x, {f.i, Expr(99) - Expr(f.j)}), 100),                     // backwards
      f.nest(cast(DType::F32, Expr(f.j)), 100),                                // the index as a value
      loop(f.i, 2, store(f.y, {f.i, f.i}, load(f.b, {f.i})), ForKind::Vector)  // a diagonal
  };
  for (const Stmt& s : plain) {
    EXPECT_EQ(to_text(lower_lanes(s)).find("VL"), std::string::npos) << to_text(s);
    EXPECT_EQ(to_text(lower_lanes(s)).find("vector"), std::string::npos) << to_text(s);
    f.expect_same(s);
  }
}

}  // namespace
}  // namespace tc
