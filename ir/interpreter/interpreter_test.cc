#include "ir/interpreter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "ir/interpreter/test_arrays.h"
#include "ir/loop/build.h"

namespace tc::interpreter_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Expr f32(double v) { return make_float(DType::F32, v); }

// One operation on constants, run.
template <class T>
T result_of(Op op, DType t, const Expr& a, const Expr& b) {
  const Expr e = apply(op, info(op).arity == 1 ? Exprs{a} : Exprs{a, b});
  Array<T> y("y", t, {1});
  run(store(y.buffer, {0}, cast(t, e)), {y.bind()});
  return y.data[0];
}
double floats(Op op, DType t, double a, double b) {
  return result_of<double>(op, DType::F64, make_float(t, a), make_float(t, b));
}
int64_t integers(Op op, DType t, int64_t a, int64_t b) {
  return result_of<int64_t>(op, DType::I64, make_int(t, a), make_int(t, b));
}

TEST(Operations, Floats) {
  EXPECT_EQ(floats(Op::Add, DType::F32, 16777216, 1), 16777216);  // single precision
  EXPECT_EQ(floats(Op::Add, DType::F64, 16777216, 1), 16777217);
  EXPECT_EQ(floats(Op::Add, DType::F16, 2048, 1), 2049);  // narrow floats compute as f32
  EXPECT_TRUE(std::isnan(floats(Op::Max, DType::F32, kNan, 1)));
  EXPECT_TRUE(std::isnan(floats(Op::Min, DType::F32, 1, kNan)));
  EXPECT_EQ(floats(Op::Round, DType::F32, 2.5, 0), 2);
  EXPECT_EQ(floats(Op::Mod, DType::F32, -7, 3), -1);
  EXPECT_EQ(floats(Op::FloorMod, DType::F32, -7, 3), 2);
  EXPECT_TRUE(std::isnan(floats(Op::Sign, DType::F32, kNan, 0)));
  EXPECT_EQ(floats(Op::Exp, DType::F32, 1, 0), double(float(std::exp(1.0))));
  EXPECT_EQ(floats(Op::Lt, DType::F32, kNan, 1), 0);
}

TEST(Operations, Integers) {
  EXPECT_EQ(integers(Op::Add, DType::I8, 127, 1), -128);
  EXPECT_EQ(integers(Op::Mul, DType::U8, 20, 20), 144);
  EXPECT_EQ(integers(Op::Div, DType::I32, -7, 2), -3);
  EXPECT_EQ(integers(Op::FloorDiv, DType::I32, -7, 2), -4);
  EXPECT_EQ(integers(Op::Mod, DType::I32, -7, 3), -1);
  EXPECT_EQ(integers(Op::FloorMod, DType::I32, -7, 3), 2);
  EXPECT_EQ(integers(Op::FloorMod, DType::I32, 7, -3), -2);
  EXPECT_EQ(integers(Op::Div, DType::I32, 5, 0), 0);
  EXPECT_EQ(integers(Op::Div, DType::I32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(integers(Op::Div, DType::I64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(integers(Op::Div, DType::U64, -1, 2), INT64_MAX);
  EXPECT_EQ(integers(Op::Lt, DType::U64, -1, 2), 0);
  EXPECT_EQ(integers(Op::Shl, DType::U8, 3, 7), 128);
  EXPECT_EQ(integers(Op::Shl, DType::U8, 3, 8), 0);
  EXPECT_EQ(integers(Op::Shr, DType::U64, -1, 63), 1);
  EXPECT_EQ(integers(Op::Pow, DType::I64, 3, 5), 243);
  EXPECT_EQ(integers(Op::Pow, DType::I64, 2, -1), 0);
}

TEST(Run, TransposeAcrossBatches) {
  Floats x("x", {300, 7}), y("y", {7, 300});
  x.count();
  Var i = make_var("i"), j = make_var("j");
  run(loop(i, 7, loop(j, 300, store(y.buffer, {i, j}, load(x.buffer, {j, i})))), {x.bind(), y.bind()});
  EXPECT_EQ(y.data[0 * 300 + 299], 299 * 7);
  EXPECT_EQ(y.data[6 * 300 + 257], 257 * 7 + 6);
}

TEST(Run, StridesAndOffsetsOfBuffers) {
  Floats y("y", {20});
  auto view = std::make_shared<BufferDef>(*y.buffer);
  view->shape = {Dim(3), Dim(4)};
  view->strides = {5, 1};
  view->offset = 2;
  Var i = make_var("i"), j = make_var("j");
  Buffer v = view;
  Stmt s = loop(i, 3, loop(j, 4, store(v, {i, j}, cast(DType::F32, Expr(i) * 10 + Expr(j)))));
  run(s, {{v, reinterpret_cast<uint8_t*>(y.data.data())}});
  EXPECT_EQ(y.data, (std::vector<float>{0, 0, 0, 1, 2, 3, 0, 10, 11, 12, 13, 0, 20, 21, 22, 23, 0, 0, 0, 0}));
}

// y[m, n] = sum_k x[m, k] * w[k, n], with an accumulator of its own.
Stmt matmul(const Floats& x, const Floats& w, const Floats& y) {
  Dims d = static_dims(x.buffer->shape);
  int64_t n = w.buffer->shape[1].value;
  Buffer acc = make_buffer("acc", DType::F32, {}, Scope::Register);
  Var i = make_var("i"), j = make_var("j"), k = make_var("k");
  Stmt sum = loop(k, d[1], store(acc, {}, load(x.buffer, {i, k}) * load(w.buffer, {k, j}), Op::Add));
  Stmt point = alloc(acc, seq({store(acc, {}, f32(0)), sum, store(y.buffer, {i, j}, load(acc, {}))}));
  return loop(i, d[0], loop(j, n, point));
}

TEST(Run, SumsInTheOrderAsWritten) {
  // 1e8 absorbs every 1 that is added to it one by one.
  Floats x("x", {1, 6}), w("w", {6, 2}), y("y", {1, 2});
  x.data = {1, 1, 1e8f, 1, 1, -1e8f};
  w.data.assign(12, 1);
  run(matmul(x, w, y), {x.bind(), w.bind(), y.bind()});
  EXPECT_EQ(y.data[0], 0);
  x.data = {1e8f, -1e8f, 1, 1, 1, 1};
  run(matmul(x, w, y), {x.bind(), w.bind(), y.bind()});
  EXPECT_EQ(y.data[1], 4);
}

TEST(Run, SumOverTheInnermostLoop) {
  Floats x("x", {1000}), y("y", {1});
  x.count();
  Var i = make_var("i");
  run(seq({store(y.buffer, {0}, f32(0)), loop(i, 1000, store(y.buffer, {0}, load(x.buffer, {i}), Op::Add))}),
      {x.bind(), y.bind()});
  EXPECT_EQ(y.data[0], 499500);
}

TEST(Run, SequentialDependenceStaysSequential) {
  // y[i] = y[i - 1] + 1 and a histogram: neither may be run as independent lanes.
  Floats y("y", {500}), h("h", {4});
  Var i = make_var("i"), k = make_var("k");
  Stmt scan = loop(i, 499, store(y.buffer, {Expr(i) + 1}, load(y.buffer, {i}) + f32(1)));
  Stmt count = loop(k, 500, store(h.buffer, {floor_mod(k, 4)}, f32(1), Op::Add));
  run(seq({scan, count}), {y.bind(), h.bind()});
  EXPECT_EQ(y.data[499], 499);
  EXPECT_EQ(h.data, (std::vector<float>{125, 125, 125, 125}));
}

TEST(Run, UntakenSidesDoNotFault) {
  Floats x("x", {8}), y("y", {10});
  x.count();
  Var i = make_var("i");
  Expr at = Expr(i) - 1;
  Expr inside = (at >= 0) && (at < 8);
  run(loop(i, 10, store(y.buffer, {i}, select(inside, load(x.buffer, {at}), f32(-5)))), {x.bind(), y.bind()});
  EXPECT_EQ(y.data, (std::vector<float>{-5, 0, 1, 2, 3, 4, 5, 6, 7, -5}));
  // && is lazy too
  Stmt s =
      loop(i, 10, if_then((at >= 0) && (at < 8) && (load(x.buffer, {at}) > f32(5)), store(y.buffer, {i}, f32(99))));
  run(s, {x.bind(), y.bind()});
  EXPECT_EQ(y.data, (std::vector<float>{-5, 0, 1, 2, 3, 4, 5, 99, 99, -5}));
}

TEST(Run, NestedConditionsPerLane) {
  Floats y("y", {300});
  Var i = make_var("i");
  Stmt s = loop(i, 300,
                if_then(eq(floor_mod(i, 2), 0),
                        if_then(eq(floor_mod(i, 3), 0), store(y.buffer, {i}, f32(6)), store(y.buffer, {i}, f32(2))),
                        store(y.buffer, {i}, f32(1))));
  run(s, {y.bind()});
  for (int k = 0; k < 300; ++k) ASSERT_EQ(y.data[size_t(k)], k % 2 ? 1 : k % 3 ? 2 : 6) << k;
}

TEST(Run, InnerLoopsWithBoundsOfEachLane) {
  // y[i] = i: the inner loop runs i times
  Floats y("y", {300});
  Var i = make_var("i"), j = make_var("j");
  run(loop(i, 300, seq({store(y.buffer, {i}, f32(0)), loop(j, i, store(y.buffer, {i}, f32(1), Op::Add))})), {y.bind()});
  for (int k = 0; k < 300; ++k) ASSERT_EQ(y.data[size_t(k)], k);
}

TEST(Run, WhileAndLet) {
  // Collatz steps of i + 1, each lane its own number of iterations
  Array<int64_t> y("y", DType::I64, {27});
  Buffer n = make_buffer("n", DType::I64, {}, Scope::Register);
  Var i = make_var("i"), v = make_var("v");
  Expr cur(v);
  Expr next = select(eq(floor_mod(cur, 2), 0), floor_div(cur, 2), cur * 3 + 1);
  Stmt step = let(v, load(n, {}), seq({store(n, {}, next), store(y.buffer, {i}, 1, Op::Add)}));
  Stmt body = seq({store(y.buffer, {i}, 0), store(n, {}, Expr(i) + 1), while_loop(ne(load(n, {}), 1), step)});
  run(loop(i, 27, alloc(n, body)), {y.bind()});
  EXPECT_EQ(y.data[26], 111);  // of 27
  EXPECT_EQ(y.data[0], 0);
  EXPECT_EQ(y.data[5], 8);  // of 6
}

TEST(Run, IntegersWrapInTheirType) {
  Array<uint8_t> x("x", DType::U8, {4}), y("y", DType::U8, {4});
  x.data = {250, 3, 128, 255};
  Var i = make_var("i");
  Expr v = load(x.buffer, {i});
  run(loop(i, 4, store(y.buffer, {i}, floor_div(v + make_int(DType::U8, 10), make_int(DType::U8, 2)))),
      {x.bind(), y.bind()});
  EXPECT_EQ(y.data, (std::vector<uint8_t>{2, 6, 69, 4}));
}

TEST(Run, Casts) {
  Floats x("x", {6});
  x.data = {float(kNan), 1e30f, -1e30f, -2.7f, 300.5f, 0.5f};
  Array<int32_t> a("a", DType::I32, {6});
  Array<uint8_t> b("b", DType::U8, {6}), c("c", DType::Bool, {6});
  Var i = make_var("i");
  Expr v = load(x.buffer, {i});
  run(loop(i, 6,
           seq({store(a.buffer, {i}, cast(DType::I32, v)), store(b.buffer, {i}, cast(DType::U8, v)),
                store(c.buffer, {i}, cast(DType::Bool, v))})),
      {x.bind(), a.bind(), b.bind(), c.bind()});
  // what does not fit: the smallest i32, and its low bits
  EXPECT_EQ(a.data, (std::vector<int32_t>{INT32_MIN, INT32_MIN, INT32_MIN, -2, 300, 0}));
  EXPECT_EQ(b.data, (std::vector<uint8_t>{0, 0, 0, 254, 44, 0}));
  EXPECT_EQ(c.data, (std::vector<uint8_t>{1, 1, 1, 1, 1, 1}));
}

TEST(Run, NarrowFloatsComputeWideAndRoundOnStore) {
  // f16: 2048 + 1 + 1 is 2050 when only the store rounds, 2048 if each sum did
  Array<uint16_t> x("x", DType::F16, {1}), y("y", DType::F16, {1}), z("z", DType::F16, {1});
  x.data[0] = double_to_narrow_float(DType::F16, 2048);
  Expr one = make_float(DType::F16, 1), v = load(x.buffer, {0});
  run(seq({store(y.buffer, {0}, v + one + one), store(z.buffer, {0}, v), store(z.buffer, {0}, one, Op::Add),
           store(z.buffer, {0}, one, Op::Add)}),
      {x.bind(), y.bind(), z.bind()});
  EXPECT_EQ(narrow_float_to_double(DType::F16, y.data[0]), 2050);
  EXPECT_EQ(narrow_float_to_double(DType::F16, z.data[0]), 2048);
}

TEST(Run, NarrowFloatElementsAgreeWithTheTable) {
  for (DType t : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2, DType::F8E4M3FNUZ, DType::F8E5M2FNUZ}) {
    int64_t n = info(t).bytes == 2 ? 65536 : 256;
    Array<uint16_t> wide("x", t, {n});
    Array<uint8_t> thin("x", t, {n});
    Floats y("y", {n});
    for (int64_t k = 0; k < n; ++k) n == 256 ? thin.data[size_t(k)] = uint8_t(k) : wide.data[size_t(k)] = uint16_t(k);
    Buffer x = n == 256 ? thin.buffer : wide.buffer;
    Var i = make_var("i");
    run(loop(i, n, store(y.buffer, {i}, cast(DType::F32, load(x, {i})))),
        {n == 256 ? thin.bind() : wide.bind(), y.bind()});
    for (int64_t k = 0; k < n; ++k) {
      double want = narrow_float_to_double(t, uint16_t(k));
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(y.data[size_t(k)]));
      else
        ASSERT_EQ(double(y.data[size_t(k)]), want) << info(t).name << " " << k;
    }
  }
}

TEST(Run, RoundingToHalfAndBfloat) {
  std::vector<float> values = {0,           -0.0f,   1,       65504,         65519.9f,      65520,
                               1e-8f,       5.9e-8f, 6.1e-5f, 3.0517578e-5f, 1.0009765f,    -2.0004883f,
                               float(kInf), 3.4e38f, 1e-40f,  2.98e-8f,      2.9802322e-8f, 2.9802326e-8f};
  for (DType t : {DType::F16, DType::BF16}) {
    Floats x("x", {int64_t(values.size())});
    x.data = values;
    Array<uint16_t> y("y", t, {int64_t(values.size())});
    Var i = make_var("i");
    run(loop(i, int64_t(values.size()), store(y.buffer, {i}, cast(t, load(x.buffer, {i})))), {x.bind(), y.bind()});
    for (size_t k = 0; k < values.size(); ++k)
      EXPECT_EQ(y.data[k], double_to_narrow_float(t, double(values[k]))) << values[k];
  }
}

TEST(Run, DoublesAndWholeNumbersBecomeHalvesByWayOfSinglePrecision) {
  Array<double> x("x", DType::F64, {1});
  Array<int64_t> n("n", DType::I64, {1});
  x.data = {1.00048828125 + 1e-12};      // as a float it is the tie between 1 and the next half
  n.data = {(1 << 24) + (1 << 16) + 1};  // and this one between two of bfloat16
  Array<uint16_t> y("y", DType::F16, {1}), z("z", DType::BF16, {1});
  run(seq({store(y.buffer, {0}, cast(DType::F16, load(x.buffer, {0}))),
           store(z.buffer, {0}, cast(DType::BF16, load(n.buffer, {0})))}),
      {x.bind(), n.bind(), y.bind(), z.bind()});
  EXPECT_EQ(narrow_float_to_double(DType::F16, y.data[0]), 1);
  EXPECT_EQ(narrow_float_to_double(DType::BF16, z.data[0]), 1 << 24);
}

TEST(Run, Vectors) {
  Floats x("x", {10}), y("y", {12}), s("s", {3});
  x.count();
  Var i = make_var("i");
  Expr at = Expr(i) * lanes();
  Expr v = partial(load(x.buffer, {ramp(at)}), Expr(10) - at);
  Stmt body = seq({store(y.buffer, {ramp(at)}, v * f32(2) + f32(1)), store(s.buffer, {i}, apply(Op::ReduceAdd, {v}))});
  run(loop(i, 3, body), {x.bind(), y.bind(), s.bind()});
  EXPECT_EQ(y.data, (std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 1, 1}));
  EXPECT_EQ(s.data, (std::vector<float>{6, 22, 17}));
  // stores of the first lanes only, another number of lanes
  Floats z("z", {10});
  Stmt tail = store(z.buffer, {ramp(at)}, broadcast(f32(3)), std::nullopt, min(lanes(), Expr(10) - at));
  run(loop(i, floor_div(lanes() + 9, lanes()), tail), {z.bind()}, {.vl = 8});
  EXPECT_EQ(z.data, std::vector<float>(10, 3));
}

TEST(Run, VectorSumsAddAsATree) {
  Floats x("x", {4}), y("y", {1});
  x.data = {1e8f, 1, -1e8f, 2};
  run(store(y.buffer, {0}, apply(Op::ReduceAdd, {load(x.buffer, {ramp(0)})})), {x.bind(), y.bind()});
  EXPECT_EQ(y.data[0], 3);  // (1e8 - 1e8) + (1 + 2)
}

TEST(Run, IndexRaisesTheStatus) {
  Array<int64_t> at("at", DType::I64, {3});
  at.data = {-1, 1, 5};
  Floats x("x", {4}), y("y", {3});
  x.count();
  Var i = make_var("i");
  Stmt s = loop(i, 3, store(y.buffer, {i}, load(x.buffer, {apply(Op::Index, {load(at.buffer, {i}), 4})})));
  int status = 0;
  run(s, {at.bind(), x.bind(), y.bind()}, {}, &status);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(y.data, (std::vector<float>{3, 1, 0}));
  at.data[2] = 2;
  run(s, {at.bind(), x.bind(), y.bind()}, {}, &status);
  EXPECT_EQ(status, 0);
}

TEST(Run, OutOfBoundsNamesTheBuffer) {
  Floats x("weights", {4}), y("y", {8});
  Var i = make_var("i");
  std::string m = message_of(loop(i, 8, store(y.buffer, {i}, load(x.buffer, {i}))), {x.bind(), y.bind()});
  EXPECT_EQ(m, "index 7 of dimension 0 of buffer \"weights\" is outside [0, 4)");
  m = message_of(loop(i, 8, store(y.buffer, {Expr(i) - 1}, f32(0))), {y.bind()});
  EXPECT_EQ(m, "index -1 of dimension 0 of buffer \"y\" is outside [0, 8)");
}

TEST(Run, FreshLocalsAreNotZero) {
  Floats y("y", {2});
  Buffer t = make_buffer("t", DType::F32, {Dim(2)}, Scope::Stack);
  run(alloc(t, seq({store(t, {0}, f32(1)), store(y.buffer, {0}, load(t, {0})), store(y.buffer, {1}, load(t, {1}))})),
      {y.bind()});
  EXPECT_EQ(y.data[0], 1);
  EXPECT_TRUE(std::isnan(y.data[1]));
}

TEST(Run, StepsAreLimited) {
  Floats y("y", {1});
  Buffer n = make_buffer("n", DType::I64, {}, Scope::Register);
  Stmt forever = alloc(n, seq({store(n, {}, 0), while_loop(load(n, {}) < 1, store(n, {}, 0))}));
  try {
    run(forever, {}, {.max_steps = 1000});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().code, "TC0502");
    EXPECT_EQ(e.diagnostic().exit, ExitCode::Limit);
  }
}

TEST(Run, PacksManyWeightsInLittleTime) {
  // 64 MB of [1024, 16384] -> [1024, 16, 1024] -> permuted: two strided copies per element
  Floats x("x", {1024, 16384}), y("y", {16, 16384, 64});
  x.count();
  Var a = make_var("a"), b = make_var("b"), c = make_var("c");
  Stmt s =
      loop(a, 16, loop(b, 16384, loop(c, 64, store(y.buffer, {a, b, c}, load(x.buffer, {Expr(a) * 64 + Expr(c), b})))));
  auto start = std::chrono::steady_clock::now();
  run(s, {x.bind(), y.bind()});
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(y.data[(3 * 16384 + 7) * 64 + 5], x.data[(3 * 64 + 5) * 16384 + 7]);
  EXPECT_LT(seconds, 20);  // about 0.5 alone
  RecordProperty("seconds", std::to_string(seconds));
}

// [2, 3] -> its sums over rows, and itself.
TensorFn sums_of_rows() {
  TensorFn fn;
  Buffer x = make_buffer("x", DType::F32, {Dim(2), Dim(3)}), y = make_buffer("y", DType::F32, {Dim(2)});
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = "sum";
  s.axes = {{make_var("i"), Dim(2)}};
  s.raxes = {{make_var("j"), Dim(3)}};
  s.values = {load(x, {s.axes[0].var, s.raxes[0].var})};
  s.combiner.op = Op::Add;
  s.init = {f32(0)};
  s.outputs = {y};
  fn.inputs = {x};
  fn.stages = {s};
  fn.outputs = {y, x};
  return fn;
}

TEST(Evaluate, ReducesInitAndIdentity) {
  float v[] = {1, 2, 3, 4, 5, 6};
  std::vector<Constant> r = evaluate(sums_of_rows(), {make_constant(DType::F32, {2, 3}, v)});
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0]->as_double(0), 6);
  EXPECT_EQ(r[0]->as_double(1), 15);
  EXPECT_EQ(r[1]->as_double(5), 6);
}

TEST(Evaluate, APreparedFunctionTakesOtherConstants) {
  float v[] = {1, 2, 3, 4, 5, 6}, w[] = {-1, 0, 1, 7, 7, 7};
  Evaluator prepared(sums_of_rows());
  std::vector<Constant> first = prepared({make_constant(DType::F32, {2, 3}, v)});
  std::vector<Constant> second = prepared({make_constant(DType::F32, {2, 3}, w)});
  EXPECT_EQ(first[0]->as_double(1), 15);
  EXPECT_EQ(first[1]->as_double(0), 1);
  EXPECT_EQ(second[0]->as_double(0), 0);
  EXPECT_EQ(second[0]->as_double(1), 21);
  EXPECT_THROW(prepared({make_constant(DType::F32, {3, 2}, v)}), InternalError);
}

}  // namespace
}  // namespace tc::interpreter_test
