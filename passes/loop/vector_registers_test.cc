#include "passes/loop/vector_registers.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/print.h"

namespace tc::vector_registers_test {
namespace {

TEST(VectorRegisters, PlacesAreSaidByFormula) {
  const Buffer acc = make_buffer("acc", DType::F32, {Dim(32)}, Scope::Register),
               y = make_buffer("y", DType::F32, {Dim(18)});
  const Var whole = make_var("whole"), rest = make_var("rest");
  const Expr zero = make_float(DType::F32, 0);
  const Expr behind = Expr(18) / lanes() * lanes();
  const Stmt put = store(y, {ramp(whole)}, load(acc, {ramp(whole)}), {}, Expr(18) - whole);
  const Stmt body = alloc(acc, let(whole, behind, seq({store(acc, {ramp(whole)}, broadcast(zero)), put})));
  EXPECT_EQ(to_text(with_places_by_formula(body)),
            "alloc acc: f32[32] register\n"
            "let whole = 18 / VL * VL\n"
            "acc[(18 / VL * VL):VL] = all(0.0f)\n"
            "y[whole:VL] = acc[(18 / VL * VL):VL]  (first 18 - whole)\n");
  const Stmt alone = alloc(acc, let(rest, behind, store(acc, {ramp(rest)}, broadcast(zero))));
  EXPECT_EQ(to_text(with_places_by_formula(alone)),
            "alloc acc: f32[32] register\n"
            "acc[(18 / VL * VL):VL] = all(0.0f)\n")
      << "a name that nothing else has goes";
  const Stmt plain = alloc(acc, store(acc, {ramp(behind)}, broadcast(zero)));
  EXPECT_TRUE(with_places_by_formula(plain).same_as(plain));
}

}  // namespace
}  // namespace tc::vector_registers_test
