#include "passes/loop/initial_values.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"

namespace tc::initial_values_test {
namespace {

const Var kThread = make_var("thread"), kI = make_var("i"), kJ = make_var("j");
const Buffer kOut = make_buffer("y", DType::F32, {256});

Buffer registers(const Dims& dims, Scope scope = Scope::Register) {
  return make_buffer("acc", DType::F32, to_shape(dims), scope);
}
Stmt each(const Var& v, int64_t n, const Stmt& s) { return loop(v, n, s, ForKind::Unroll); }
Expr number(double x) { return make_float(DType::F32, x); }

// alloc b: first; y[thread] = b[0, ..]
std::vector<Buffer> initialised(const Buffer& b, const Stmt& first) {
  const Stmt use = store(kOut, {Expr(kThread)}, load(b, Exprs(b->shape.size(), Expr(0))));
  DeviceFunction f;
  f.body = loop(kThread, 256, alloc(b, seq({first, use})), ForKind::ThreadX);
  set_initial_values(f);
  return f.initialised;
}

TEST(initial_values, arrays_begin_as_zeros) {
  const Buffer b = registers({4, 8});
  EXPECT_EQ(initialised(b, each(kI, 4, each(kJ, 8, store(b, {kI, kJ}, number(0))))), std::vector<Buffer>{b});
  const Buffer line = registers({1, 8});
  EXPECT_EQ(initialised(line, each(kJ, 8, store(line, {0, kJ}, number(0)))), std::vector<Buffer>{line});
}

TEST(initial_values, scalars_begin_as_what_another_lane_has) {
  const Buffer b = registers({});
  EXPECT_EQ(initialised(b, intrin("shuffle_up", {{b, {}}}, {number(1), Expr(4)})), std::vector<Buffer>{b});
}

TEST(initial_values, other_values_stay_statements) {
  const Buffer b = registers({4, 8});
  auto stays = [&](const Stmt& s) { return initialised(b, s).empty(); };
  EXPECT_TRUE(stays(each(kI, 4, each(kJ, 8, store(b, {kI, kJ}, number(1))))));
  EXPECT_TRUE(stays(each(kI, 4, each(kJ, 8, store(b, {kI, kJ}, number(-0.0))))));
  EXPECT_TRUE(stays(each(kI, 4, each(kJ, 8, store(b, {kI, kJ}, number(0), Op::Add)))));
  EXPECT_TRUE(stays(each(kI, 4, each(kJ, 7, store(b, {kI, kJ}, number(0))))));  // not all of it
  EXPECT_TRUE(stays(each(kI, 4, store(b, {kI, 0}, number(0)))));
  EXPECT_TRUE(stays(each(kI, 4, each(kJ, 8, store(kOut, {kI}, number(0))))));  // another one
}

TEST(initial_values, memory_has_no_initial_value) {
  for (const Scope scope : {Scope::Shared, Scope::Stack}) {
    const Buffer b = registers({8}, scope);
    EXPECT_TRUE(initialised(b, each(kI, 8, store(b, {kI}, number(0)))).empty());
  }
}

}  // namespace
}  // namespace tc::initial_values_test
