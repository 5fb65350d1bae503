// Attention on a GPU equals the definition, without races, as the template writes it and with barriers lowered. The
// order of sums is another one, and exponentials round: scores below 8 in magnitude, with errors below 5e-6, give
// weights with relative errors of that size, and so do values of at most 1.
#include "templates/cuda/attention.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

#include "ir/loop/simplify.h"
#include "ir/ops/test_ops.h"
#include "passes/loop/infer_fragment.h"
#include "templates/cuda/test_exact.h"

namespace tc::attention_test {
namespace {

using namespace tc::testing;

enum class Mask { None, Added, PerKey, Causal, Few, Allowed, Window };

constexpr int64_t kWindow = 20;  // so many keys before the query's own

struct Shape {
  int64_t batch = 1, heads = 2, kv_heads = 0, rows = 16, keys = 16, size = 8, value_size = 0;  // 0: as before it
  Mask mask = Mask::None;
  bool combined = false;  // q, k and v side by side in one tensor [batch, row, 3 * head * size]
  bool guarded = false;   // rows without any key give 0
};

/// Softmax(q k^T / 2 + mask) v, written as [batch, row, head, size].
TestFunction attention_of(Shape s) {
  if (s.kv_heads == 0) s.kv_heads = s.heads;
  if (s.value_size == 0) s.value_size = s.size;
  FunctionBuilder b;
  const Dims scores{s.batch, s.heads, s.rows, s.keys}, rows{s.batch, s.heads, s.rows};
  const int64_t line = s.heads * s.size;
  const Buffer x = b.input("x", {s.batch, s.rows, s.combined ? 3 * line : line});
  const Buffer k = s.combined ? x : b.input("k", {s.batch, s.keys, s.kv_heads * s.size});
  const Buffer v = s.combined ? x : b.input("v", {s.batch, s.keys, s.kv_heads * s.value_size});
  auto kv = [&](const Expr& h) { return s.kv_heads == s.heads ? h : floor_div(h, Expr(s.heads / s.kv_heads)); };
  auto at = [&](const Buffer& t, int64_t which, const Expr& n, const Expr& row, const Expr& h, int64_t size,
                const Expr& d) {
    return load(t, {n, row, h * Expr(size) + d + Expr(s.combined ? which * line : 0)});
  };
  Buffer y = b.reduce("matmul", Op::Add, scores, {s.size}, [&](const Exprs& i, const Exprs& r) {
    return at(x, 0, i[0], i[2], i[1], s.size, r[0]) * at(k, 1, i[0], i[3], kv(i[1]), s.size, r[0]);
  });
  y = b.compute("scale", scores, [&, y](const Exprs& i) { return load(y, i) * make_float(DType::F32, 0.5); });
  if (s.mask == Mask::Causal)
    y = b.compute("causal", scores, [&, y](const Exprs& i) {
      return select(i[3] <= i[2] + Expr(s.keys - s.rows), load(y, i), lowest(DType::F32));
    });
  if (s.mask == Mask::Window)
    y = b.compute("window", scores, [&, y](const Exprs& i) {
      const Expr position = i[2] + Expr(s.keys - s.rows);
      return select(i[3] <= position && position - i[3] <= Expr(kWindow), load(y, i), lowest(DType::F32));
    });
  if (s.mask == Mask::Few)
    y = b.compute("few", scores, [&, y](const Exprs& i) {
      return select(i[3] < Expr((s.keys + 1) / 2), load(y, i), lowest(DType::F32));
    });
  if (s.mask == Mask::Added || s.mask == Mask::PerKey || s.mask == Mask::Allowed) {
    const bool per_key = s.mask == Mask::PerKey;
    const Buffer m = b.input("mask", {s.batch, 1, per_key ? 1 : s.rows, s.keys});
    y = b.compute("mask", scores, [&, y](const Exprs& i) {
      const Expr e = load(m, {i[0], 0, per_key ? Expr(0) : i[2], i[3]});
      if (s.mask != Mask::Allowed) return load(y, i) + e;
      return select(e > zero(DType::F32), load(y, i), lowest(DType::F32));
    });
  }
  const Buffer top = b.reduce("max", Op::Max, rows, {s.keys}, [&](const Exprs& i, const Exprs& r) {
    return load(y, {i[0], i[1], i[2], r[0]});
  });
  auto guard = [&](const Expr& e, const Expr& special, float instead) {
    return s.guarded ? select(eq(e, special), make_float(DType::F32, instead), e) : e;
  };
  const Buffer e = b.compute("exp", scores, [&](const Exprs& i) {
    return exp(load(y, i) - guard(load(top, {i[0], i[1], i[2]}), lowest(DType::F32), 0));
  });
  const Buffer sum = b.reduce("sum", Op::Add, rows, {s.keys}, [&](const Exprs& i, const Exprs& r) {
    return load(e, {i[0], i[1], i[2], r[0]});
  });
  const Buffer p = b.compute("softmax", scores, [&](const Exprs& i) {
    return load(e, i) / guard(load(sum, {i[0], i[1], i[2]}), zero(DType::F32), 1);
  });
  const Buffer o = b.reduce(
      "times", Op::Add, {s.batch, s.heads, s.rows, s.value_size}, {s.keys}, [&](const Exprs& i, const Exprs& r) {
        return load(p, {i[0], i[1], i[2], r[0]}) * at(v, 2, i[0], r[0], kv(i[1]), s.value_size, i[3]);
      });
  return b.take(b.compute("transpose", {s.batch, s.rows, s.heads, s.value_size}, [&](const Exprs& i) {
    return load(o, {i[0], i[2], i[1], i[3]});
  }));
}

/// q, k and v in [-1, 1]; masks are -inf for every third element (`some`), or for all of some rows.
std::vector<Constant> operands(const TestFunction& f, bool empty_rows) {
  std::vector<Constant> in;
  for (const Buffer& b : f.fn.inputs) {
    const Dims dims = static_dims(b->shape);
    Constant c = random_tensor(b->dtype, dims, int(in.size()) + 1, 1, false);
    if (b->name == "mask") {
      std::vector<double> v = values(c);
      for (size_t i = 0; i < v.size(); i++)
        if (v[i] < -0.4 || (empty_rows && i / size_t(dims[3]) % 3 == 0))
          v[i] = -std::numeric_limits<double>::infinity();
      c = tensor_of(b->dtype, dims, v);
    }
    in.push_back(c);
  }
  return in;
}

// Returns the schedule's description for the machine with many multiprocessors.
std::string expect_attention(const TestFunction& f, const std::vector<Constant>& in, double tolerance,
                             const ScheduleOptions& options = {}) {
  const Constant expected = evaluate(f.fn, in)[0];
  std::string description;
  for (const int multiprocessors : {1, 108}) {
    CudaModel gpu = *find_arch("sm_80");
    gpu.multiprocessors = multiprocessors;
    Scheduled made = schedule_cuda(f.fn, f.constant, gpu, options);
    EXPECT_EQ(made.family, "attention") << to_text(f.fn);
    description = made.description;
    made.body = infer_fragment(made.body);
    for (const bool lowered : {false, true}) {
      if (lowered) made.body = synchronise(made.body);
      ScheduleMemory memory(made, f.fn, in);
      expect_close(memory.run()[0], expected, tolerance, made.description + "\n" + to_text(f.fn) + to_text(made.body));
    }
  }
  return description;
}

std::string expect_attention(const Shape& s, bool empty_rows = false) {
  const TestFunction f = attention_of(s);
  return expect_attention(f, operands(f, empty_rows), 1e-5);
}

TEST(CudaAttention, HeadSizes) {
  for (const int64_t size : {2, 3, 5, 16, 31, 32, 40, 64, 80, 96, 127, 128, 160, 256})
    expect_attention({.rows = 9, .keys = 21, .size = size});
  expect_attention({.rows = 5, .keys = 18, .size = 64, .value_size = 24});
  expect_attention({.rows = 5, .keys = 18, .size = 8, .value_size = 67});
}

TEST(CudaAttention, Lengths) {
  for (const int64_t n : {2, 3, 7, 16, 17, 33, 64, 65, 100, 131})
    expect_attention({.heads = 3, .rows = n, .keys = n, .size = 8, .combined = true});
  expect_attention({.batch = 2, .rows = 3, .keys = 77, .size = 12});
  expect_attention({.batch = 2, .rows = 77, .keys = 3, .size = 12});
}

TEST(CudaAttention, MasksAreReadInPlace) {
  for (const Mask mask : {Mask::Added, Mask::PerKey, Mask::Causal, Mask::Few, Mask::Allowed})
    for (const int64_t n : {5, 40, 67}) {
      expect_attention({.batch = 2, .rows = n, .keys = n, .mask = mask, .combined = true});
      expect_attention({.batch = 2, .rows = 6, .keys = n, .mask = mask});
    }
}

TEST(CudaAttention, ForbiddenKeysAtTheEndAreNoBorder) {
  expect_attention({.rows = 1, .keys = 30, .mask = Mask::Causal});
  expect_attention({.rows = 1, .keys = 30, .mask = Mask::Few});
}

TEST(CudaAttention, RowsWithoutKeys) {
  for (const Mask mask : {Mask::Added, Mask::Allowed})
    for (const bool guarded : {false, true})
      for (const int64_t n : {5, 40, 150})
        expect_attention({.batch = 2, .rows = 7, .keys = n, .mask = mask, .guarded = guarded}, true);
  expect_attention({.rows = 40, .keys = 9, .mask = Mask::Causal}, true);  // the first rows come before all keys
}

// What a schedule's blocks walk of the keys, and how many of its tiles of keys have one that some row may see.
struct Walk {
  int64_t walked = 0, needed = 0;
};
Walk walk_of(const Scheduled& s, int64_t n, const std::function<bool(int64_t row, int64_t key)>& allowed) {
  Walk w;
  long rows = 0, keys = 0;
  EXPECT_EQ(std::sscanf(s.description.c_str(), "%ld rows a block; one pass over the keys, %ld at a time", &rows, &keys),
            2);
  Var block;
  Expr first, end;
  walk(s.body, [&](const Stmt& x) {
    if (const For* f = as<For>(x); f && f->kind == ForKind::BlockX) block = f->var;
    if (const Let* l = as<Let>(x)) {
      if (l->var->name == "first_tile") first = l->value;
      if (l->var->name == "end_tile") end = l->value;
    }
    return true;
  });
  EXPECT_TRUE(bool(first) && bool(end)) << to_text(s.body);
  if (!block || !first || !end) return w;
  for (int64_t b = 0; b < n / rows; b++) {
    auto at = [&](const Expr& e) {
      return as_const_int(simplify(substitute(e, {{block.get(), Expr(b)}}))).value_or(-1);
    };
    w.walked += at(end) - at(first);
    for (int64_t tile = 0; tile < n / keys; tile++) {
      bool any = false;
      for (int64_t i = 0; i < rows * keys && !any; i++) any = allowed(b * rows + i / keys, tile * keys + i % keys);
      w.needed += any;
    }
  }
  return w;
}

TEST(CudaAttention, TilesThatAMaskForbidsAreSkipped) {
  constexpr int64_t n = 512;
  auto schedule = [&](Mask mask, bool halves) {
    const TestFunction f = attention_of({.rows = n, .keys = n, .size = 16, .mask = mask});
    const TestFunction typed = halves ? of_halves(f) : f;
    return schedule_cuda(typed.fn, typed.constant, *find_arch("sm_80"));
  };
  for (const bool halves : {false, true}) {
    const Walk causal = walk_of(schedule(Mask::Causal, halves), n, [](int64_t row, int64_t key) { return key <= row; });
    EXPECT_EQ(causal.walked, causal.needed);
    const Walk window = walk_of(schedule(Mask::Window, halves), n,
                                [](int64_t row, int64_t key) { return key <= row && row - key <= kWindow; });
    EXPECT_EQ(window.walked, window.needed);
    EXPECT_EQ(schedule(Mask::Added, halves).description.find("skipped"), std::string::npos);
  }
}

TEST(CudaAttention, SkippedTilesChangeNoResult) {
  for (const Mask mask : {Mask::Causal, Mask::Window}) {
    for (const int64_t n : {100, 131}) expect_attention({.rows = n, .keys = n, .mask = mask, .combined = true});
    expect_attention({.rows = 40, .keys = 200, .size = 40, .mask = mask, .guarded = true});
    expect_attention({.heads = 4, .kv_heads = 2, .rows = 64, .keys = 128, .mask = mask});
    expect_attention({.heads = 4, .kv_heads = 1, .rows = 3, .keys = 300, .mask = mask});
    expect_attention({.rows = 200, .keys = 60, .mask = mask, .guarded = true});  // the first rows have no key
  }
  EXPECT_NE(expect_attention({.heads = 1, .rows = 1, .keys = 2000, .size = 64, .mask = Mask::Window}).find("skipped"),
            std::string::npos);  // blocks share the keys, and most of them have none
}

// Weights are rounded to halves, too, as the product with the values wants them.
TEST(CudaAttention, HalvesAreMultipliedOnTensorCores) {
  for (const DType t : {DType::F16, DType::BF16})
    for (const Mask mask : {Mask::None, Mask::Added, Mask::Causal, Mask::Window})
      for (const int64_t n : {1, 20, 70}) {
        const TestFunction f =
            of_halves(attention_of({.rows = n, .keys = 70, .size = 24, .mask = mask, .guarded = true}), t);
        const std::string description = expect_attention(f, operands(f, false), t == DType::F16 ? 2e-3 : 1.6e-2);
        EXPECT_EQ(description.find("tensor cores") != std::string::npos, n > 4) << description;
      }
}

TEST(CudaAttention, RoundedToWhatPrecisionAllows) {
  const std::pair<Precision, double> bounds[] = {
      {Precision::Tf32, 2e-3}, {Precision::F16, 2e-3}, {Precision::Bf16, 1.6e-2}};
  for (const auto& [precision, tolerance] : bounds)
    for (const Mask mask : {Mask::Added, Mask::Causal}) {
      const TestFunction f = attention_of({.rows = 37, .keys = 90, .size = 24, .mask = mask, .guarded = true});
      const std::string description = expect_attention(f, operands(f, false), tolerance, {.precision = precision});
      EXPECT_NE(description.find("tensor cores"), std::string::npos) << description;
    }
  const TestFunction few = attention_of({.heads = 1, .rows = 16, .keys = 3000, .size = 16});
  EXPECT_NE(expect_attention(few, operands(few, false), 2e-3, {.precision = Precision::F16}).find("blocks share"),
            std::string::npos);
}

TEST(CudaAttention, HeadsShareKeys) {
  for (const int64_t kv : {1, 2, 4})
    for (const int64_t rows : {1, 5, 33}) {
      expect_attention({.batch = 2, .heads = 8, .kv_heads = kv, .rows = rows, .keys = 37, .size = 16});
      expect_attention({.heads = 8, .kv_heads = kv, .rows = rows, .keys = 37, .size = 16, .mask = Mask::Causal});
    }
}

TEST(CudaAttention, FewRowsShareBlocks) {
  for (const Mask mask : {Mask::None, Mask::PerKey, Mask::Added})
    for (const int64_t keys : {2, 63, 700})
      for (const int64_t rows : {1, 2})
        expect_attention({.heads = 2, .rows = rows, .keys = keys, .size = 16, .mask = mask});
  expect_attention({.heads = 1, .rows = 1, .keys = 900, .size = 5, .mask = Mask::Added}, true);
  const TestFunction f = attention_of({.heads = 2, .rows = 1, .keys = 4096, .size = 64});
  EXPECT_NE(schedule_cuda(f.fn, f.constant, *find_arch("sm_80")).description.find("blocks share the keys"),
            std::string::npos);
}

// The weight of a single key is 1, that of the others 0: no rounding.
TEST(CudaAttention, OneKeyGivesItsValue) {
  const TestFunction f = attention_of({.rows = 30, .keys = 70, .size = 12, .mask = Mask::Added});
  std::vector<Constant> in = operands(f, false);
  std::vector<double> mask(30 * 70, -std::numeric_limits<double>::infinity());
  for (size_t row = 0; row < 30; row++) mask[row * 70 + row * 7 % 70] = 0;
  in[3] = tensor_of(DType::F32, {1, 1, 30, 70}, mask);
  const Scheduled s = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"));
  ScheduleMemory memory(s, f.fn, in);
  const Constant y = memory.run()[0];
  for (int64_t row = 0; row < 30; row++)
    for (int64_t c = 0; c < 24; c++) ASSERT_EQ(y->as_double(row * 24 + c), in[2]->as_double(row * 7 % 70 * 24 + c));
}

TEST(CudaAttention, RandomShapes) {
  uint32_t seed = 7;
  auto draw = [&](uint32_t n) { return int64_t((seed = seed * 1664525u + 1013904223u) >> 8) % n; };
  for (int iteration = 0; iteration < 25; iteration++) {
    const int64_t kv = 1 + draw(3), heads = kv * (1 + draw(3)), rows = 1 + draw(50), keys = 2 + draw(90);
    expect_attention({.batch = 1 + draw(2),
                      .heads = heads,
                      .kv_heads = kv,
                      .rows = rows,
                      .keys = keys,
                      .size = 2 + draw(40),
                      .value_size = 2 + draw(40),
                      .mask = Mask(draw(7)),
                      .guarded = draw(2) == 0},
                     draw(2) == 0);
  }
}

// The operator's results are compared by run_op; this says who computed them.
std::string schedule_of(const OpRun& r) {
  run_op(r);
  Graph g;
  std::vector<Value*> in;
  for (const Constant& c : r.inputs)
    in.push_back(c ? g.add_constant(ModelText("i" + std::to_string(in.size())), c) : nullptr);
  std::vector<ModelText> names;
  for (int k = 0; k < r.outputs; k++) names.push_back(ModelText("o" + std::to_string(k)));
  Node* n = g.append(r.op, in, names, r.attrs, r.domain);
  infer_types(g, *n);
  const TensorFn& fn = tensor_fn(*n);
  const Scheduled s = schedule_cuda(fn, std::vector<bool>(fn.inputs.size(), false), *find_arch("sm_80"));
  return s.family == "stages" ? s.description : s.family;
}

TEST(CudaAttention, TheOperatorOfThatName) {
  auto tensor = [](const Dims& d, int seed) { return random_tensor(DType::F32, d, seed, 1, false); };
  const Constant q = tensor({2, 4, 3, 8}, 1), k = tensor({2, 2, 5, 8}, 2), v = tensor({2, 2, 5, 6}, 3);
  EXPECT_EQ(schedule_of({"Attention", {q, k, v}}), "attention");
  EXPECT_EQ(schedule_of({"Attention", {q, k, v}, {{"is_causal", int64_t(1)}, {"softcap", 2.0f}}}), "attention");
  EXPECT_EQ(schedule_of({"Attention", {q, k, v, tensor({3, 5}, 4)}, {{"scale", 0.3f}}}), "attention");
  const Constant few = tensor_of(DType::Bool, {3, 4}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_EQ(schedule_of({"Attention", {q, k, v, few}}), "attention");
  const Constant packed = tensor({2, 3, 32}, 1), packed_k = tensor({2, 5, 16}, 2), packed_v = tensor({2, 5, 12}, 3);
  const Constant lengths = tensor_of(DType::I64, {2}, {90, 3}), long_k = tensor({2, 2, 200, 8}, 5);
  EXPECT_EQ(
      schedule_of({"Attention", {q, long_k, long_k, nullptr, nullptr, nullptr, lengths}, {{"is_causal", int64_t(1)}}}),
      "attention");
  const Attrs heads{{"q_num_heads", int64_t(4)}, {"kv_num_heads", int64_t(2)}};
  EXPECT_EQ(schedule_of({"Attention", {packed, packed_k, packed_v}, heads}), "attention");
}

TEST(CudaAttention, CachesAreStoredAndReadFromThere) {
  auto tensor = [](const Dims& d, int seed) { return random_tensor(DType::F32, d, seed, 1, false); };
  const std::vector<Constant> in = {tensor({1, 4, 1, 8}, 1),  tensor({1, 2, 1, 8}, 2), tensor({1, 2, 1, 6}, 3), nullptr,
                                    tensor({1, 2, 40, 8}, 4), tensor({1, 2, 40, 6}, 5)};
  EXPECT_EQ(schedule_of({"Attention", in, {{"is_causal", int64_t(1)}}, 3}), "stage by stage: elementwise, attention");
  EXPECT_EQ(schedule_of({"Attention", in, {}, 1}), "attention");  // nobody keeps the cache
}

TEST(CudaAttention, OtherShapesAreNone) {
  const auto family = [](const TestFunction& f, bool strict = false) {
    return schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), {.strict_fp = strict}).family;
  };
  EXPECT_NE(family(attention_of({.size = 257})), "attention");
  EXPECT_NE(family(attention({})), "attention");  // no exponentials
  EXPECT_NE(family(attention_of({}), true), "attention");
}

}  // namespace
}  // namespace tc::attention_test
