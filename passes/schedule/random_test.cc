// Random functions under random steps: whatever is not refused keeps every bit of the result, and so do the loop passes
// behind. Sizes are awkward on purpose, 1 and 0 among them.
#include <algorithm>
#include <map>
#include <numeric>

#include "ir/loop/visit.h"
#include "ir/test_random.h"
#include "passes/loop/test_lowering.h"
#include "passes/schedule/apply_step.h"
#include "passes/schedule/test_schedules.h"

namespace tc::random_test {
namespace {

using namespace tc::testing;

int64_t size_of(Dice& d) {
  static constexpr int64_t kSizes[] = {3, 5, 1, 8, 4, 7, 12, 2, 13, 0};
  return kSizes[d.below(d.below(3) == 0 ? 10 : 9)];
}

Expr constant(double v) { return make_float(DType::F32, v); }

TensorFn chain(Dice& d) {
  FunctionBuilder b;
  const Dims dims{size_of(d), size_of(d)};
  const Buffer x = b.input("x", dims), s = b.input("s", {dims[1]});
  const Buffer t = b.compute("twice", dims, [&](const Exprs& i) { return load(x, i) * constant(2); });
  const Buffer u = b.compute("shift", dims, [&](const Exprs& i) { return load(t, i) + load(s, {i[1]}); });
  return b
      .take(b.compute("turn", {dims[1], dims[0]},
                      [&](const Exprs& i) {
                        return load(u, {i[1], i[0]}) + load(t, {i[1], i[0]});
                      }))
      .fn;
}

TensorFn matmul(Dice& d) {
  FunctionBuilder b;
  const int64_t m = size_of(d), n = size_of(d), k = size_of(d);
  const Buffer x = b.input("x", {m, k}), w = b.input("w", {k, n}), bias = b.input("bias", {n});
  const Buffer y = b.reduce("matmul", Op::Add, {m, n}, {k}, [&](const Exprs& i, const Exprs& r) {
    return load(x, {i[0], r[0]}) * load(w, {r[0], i[1]});
  });
  const Buffer z = b.compute("bias", {m, n}, [&](const Exprs& i) { return load(y, i) + load(bias, {i[1]}); });
  return b.take(b.compute("relu", {m, n}, [&](const Exprs& i) { return max(load(z, i), constant(0)); })).fn;
}

TensorFn padded_conv(Dice& d) {
  FunctionBuilder b;
  const int64_t n = size_of(d) + 1, c = size_of(d), oc = size_of(d);
  const Buffer x = b.input("x", {n, c}), w = b.input("w", {oc, c, 3});
  const Buffer p = b.compute("pad", {n + 2, c}, [&](const Exprs& i) {
    return select(i[0] >= Expr(1) && i[0] < Expr(n + 1), load(x, {i[0] - Expr(1), i[1]}), constant(0));
  });
  const Buffer y = b.reduce("conv", Op::Add, {n, oc}, {3, c}, [&](const Exprs& i, const Exprs& r) {
    return load(p, {i[0] + r[0], r[1]}) * load(w, {i[1], r[1], r[0]});
  });
  return b.take(b.compute("relu", {n, oc}, [&](const Exprs& i) { return max(load(y, i), constant(0)); })).fn;
}

TensorFn pooled(Dice& d) {
  FunctionBuilder b;
  const int64_t n = size_of(d) + 1;
  const Buffer x = b.input("x", {2 * n + 1, 3});
  const Buffer s = b.compute("scale", {2 * n + 1, 3}, [&](const Exprs& i) { return load(x, i) * constant(3); });
  return b
      .take(b.reduce("pool", Op::Max, {n, 3}, {3},
                     [&](const Exprs& i, const Exprs& r) {
                       return load(s, {i[0] * Expr(2) + r[0], i[1]});
                     }))
      .fn;
}

// Grouped, with strides: indices with divisions. The sums begin at a bias.
TensorFn grouped_conv(Dice& d) {
  FunctionBuilder b;
  const int64_t n = size_of(d) + 1, groups = 1 + d.below(3), per = 1 + d.below(3);
  const Buffer x = b.input("x", {2, 2 * n + 1, groups * 2}), w = b.input("w", {groups * per, 2, 3});
  const Buffer y = b.reduce("conv", Op::Add, {2, n, groups * per}, {2, 3}, [&](const Exprs& i, const Exprs& r) {
    const Expr c = floor_div(i[2], Expr(per)) * Expr(2) + r[0];
    return load(x, {i[0], i[1] * Expr(2) + r[1], c}) * load(w, {i[2], r[0], r[1]});
  });
  return b
      .take(
          b.compute("flat", {2 * n * groups * per},
                    [&](const Exprs& i) {
                      const int64_t row = groups * per;
                      const Expr line = floor_div(i[0], Expr(row));
                      return load(y, {floor_div(line, Expr(n)), floor_mod(line, Expr(n)), floor_mod(i[0], Expr(row))});
                    }))
      .fn;
}

// The largest value of a row and where it is: two accumulators that advance together.
TensorFn arg_max(Dice& d) {
  const int64_t rows = size_of(d), columns = size_of(d);
  TensorFn fn;
  const Buffer x = make_buffer("x", DType::F32, {rows, columns});
  fn.inputs = {x};
  Stage s;
  s.kind = Stage::Kind::Reduce;
  s.name = "arg_max";
  s.axes = {{make_var("i"), Dim(rows)}};
  s.raxes = {{make_var("k"), Dim(columns)}};
  s.values = {load(x, {s.axes[0].var, s.raxes[0].var}), Expr(s.raxes[0].var)};
  s.combiner.lhs = {make_var("a", DType::F32), make_var("m")};
  s.combiner.rhs = {make_var("b", DType::F32), make_var("n")};
  const Expr a = s.combiner.lhs[0], b = s.combiner.rhs[0], m = s.combiner.lhs[1], n = s.combiner.rhs[1];
  const Expr first = a > b || (eq(a, b) && m < n);
  s.combiner.result = {select(first, a, b), select(first, m, n)};
  s.init = {lowest(DType::F32), Expr(int64_t(1) << 40)};
  s.outputs = {make_buffer("top", DType::F32, {rows}), make_buffer("where", DType::I64, {rows})};
  fn.stages = {s};
  fn.outputs = s.outputs;
  return fn;
}

// y[t] = y[t - 1] + x[t], scaled afterwards.
TensorFn running_sum(Dice& d) {
  FunctionBuilder b;
  const int64_t steps = size_of(d), width = size_of(d);
  const Buffer x = b.input("x", {steps, width});
  const Buffer y = b.compute("sum", {steps, width}, [&](const Exprs& i) { return load(x, i); });
  TensorFn fn = b.take(b.compute("scale", {steps, width}, [&](const Exprs& i) { return load(y, i) * constant(2); })).fn;
  Stage& s = fn.stages[0];
  const Expr t = s.axes[0].var, j = s.axes[1].var;
  s.scan = 0;
  s.values = {select(t > Expr(0), load(y, {t - Expr(1), j}), constant(0)) + load(x, {t, j})};
  return fn;
}

TensorFn transposed(Dice& d) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {4 + 4 * d.below(3), 4 + size_of(d)});
  const Dims dims = static_dims(x->shape);
  return b.take(b.compute("move", {dims[1], dims[0]}, [&](const Exprs& i) { return load(x, {i[1], i[0]}); })).fn;
}

TensorFn random_function(Dice& d) {
  switch (d.below(9)) {
    case 8: return transposed(d);
    case 5: return grouped_conv(d);
    case 6: return arg_max(d);
    case 7: return running_sum(d);
    case 0: return chain(d);
    case 1: return matmul(d);
    case 2: return padded_conv(d);
    case 3: return pooled(d);
    default: return row_statistics(size_of(d), size_of(d)).fn;
  }
}

std::vector<Buffer> buffers_of(const TensorFn& fn, const Stmt& s) {
  std::vector<Buffer> list = fn.inputs;
  list.insert(list.end(), fn.outputs.begin(), fn.outputs.end());
  walk(s, [&](const Stmt& x) {
    if (const Alloc* a = as<Alloc>(x)) list.push_back(a->buffer);
    return true;
  });
  return list;
}

// One step; the name of the primitive.
std::string random_step(Schedule& s, const TensorFn& fn, Dice& d, bool gpu) {
  const std::vector<Var> loops = s.loops();
  const std::vector<Buffer> buffers = buffers_of(fn, s.body());
  if (loops.empty()) throw ScheduleError("no loops are left");
  const Var v = d.pick(loops), w = d.pick(loops);
  const Buffer b = d.pick(buffers);
  const Scope scope = d.pick(std::vector<Scope>{Scope::Register, Scope::Stack, Scope::Workspace});
  const bool let = d.below(2) == 1;
  switch (d.below(gpu ? 26 : 23)) {
    case 0: return s.split(v, 1 + d.below(5), d.below(3) == 0 ? Tail::Min : Tail::Guard, {{}, let}), "split";
    case 1: return s.fuse({v, w}, {{}, let}), "fuse";
    case 2:
    case 3: return s.reorder({v, w}), "reorder";
    case 4: return s.tile(v, w, 1 + d.below(4), 1 + d.below(4)), "tile";
    case 5: return d.below(3) == 0 ? (s.unroll(v), "unroll") : (s.pad(v, 1 + d.below(6), PadWith(d.below(2))), "pad");
    case 6: return d.below(3) == 0 ? (s.vectorize(v), "vectorize") : (s.partition(v, {1 + d.below(4)}), "partition");
    case 7: return d.below(3) == 0 ? (s.parallel(v), "parallel") : (s.split(v, 1 + d.below(5)), "split");
    case 8: return s.compute_inline(b), "compute_inline";
    case 9:
    case 10: return s.compute_at(b, v, scope), "compute_at";
    case 11:
    case 12: return s.reverse_compute_at(b, v), "reverse_compute_at";
    case 13: return s.cache_read(b, v, scope), "cache_read";
    case 14: return s.cache_write(b, v, scope), "cache_write";
    case 15: return s.rfactor(v), "rfactor";
    case 16: return s.decompose_reduction(v), "decompose_reduction";
    case 17: return s.set_scope(b, Scope(d.below(6))), "set_scope";
    case 18:
      return d.below(2) ? (s.storage_align(b, 0, 4, d.below(4)), "storage_align")
                        : (s.prefetch(b, v, 1 + d.below(3)), "prefetch");
    case 19: return s.pipeline(b, 2 + d.below(2)), "pipeline";
    case 20: {
      std::vector<int64_t> order(b->shape.size());
      for (size_t i = 0; i < order.size(); i++) order[i] = int64_t(order.size() - 1 - i);
      return s.transform_layout(b, order), "transform_layout";
    }
    case 21: {
      const std::string text = "loop " + v->name;
      return d.below(2) ? (s.annotate(v, text), "annotate") : (s.blockize(v), "blockize");
    }
    case 22: {
      const int64_t last = int64_t(b->shape.size()) - 1;
      std::vector<int64_t> order(b->shape.size());
      for (size_t i = 0; i < order.size(); i++) order[i] = last - int64_t(i);
      return d.below(3) == 0 ? s.pack(b, order) : s.pack(b, order, {last}, {1 + d.below(4)}), "pack";
    }
    case 23: return s.bind(v, d.below(2) ? ForKind::BlockX : ForKind::BlockY), "bind";
    case 24: return d.below(2) ? s.bind_reduction(v) : s.bind_reduction(s.split(v, 32).second), "bind_reduction";
    default:
      return d.below(3) ? (s.cache_read(b, v, Scope::Shared), "cache_read shared")
                        : (s.bind(v, d.below(2) ? ForKind::ThreadX : ForKind::ThreadY), "bind");
  }
}

// The last nest as one launch, in one of four shapes, as far as its loops allow.
void random_launch(Schedule& s, const TensorFn& fn, Dice& d, std::map<std::string, int>& taken) {
  try {
    const std::vector<Var> loops = s.loops(fn.outputs[0]);
    const int64_t shape = d.below(4);
    if (shape == 3) {
      s.bind(loops[0], ForKind::BlockX);
    } else if (shape == 0 || loops.size() < 2) {
      const bool let = d.below(2) == 1;
      const auto [block, thread] = s.split(s.fuse(loops, {{}, let}), 1 + d.below(9), Tail::Guard, {{}, let});
      s.bind(block, ForKind::BlockX), s.bind(thread, ForKind::ThreadX);
    } else if (shape == 1) {
      s.bind(loops[0], ForKind::BlockX), s.bind(loops[1], ForKind::ThreadX);
    } else {
      const auto t = s.tile(loops[0], loops[1], 1 + d.below(4), 1 + d.below(4));
      s.bind(t[0], ForKind::BlockY), s.bind(t[1], ForKind::BlockX), s.bind(t[2], ForKind::ThreadY),
          s.bind(t[3], ForKind::ThreadX);
    }
    taken["bind"]++;
  } catch (const ScheduleError&) {
  }
}

// The same steps again, from what was written down of them: the same loops.
void expect_replayed(const TensorFn& fn, const Schedule& s, const std::string& what) {
  Schedule again(fn, {}, std::vector<bool>(fn.inputs.size(), true));
  for (const PlanLine& line : s.lines()) {
    language::Problems problems;
    const auto read = language::read_schedules("schedule \"*\"\n  naive()\n  " + language::print(line), problems);
    ASSERT_TRUE(problems.empty() && read.size() == 1 && read[0].lines.size() == 2) << what << language::print(line);
    ASSERT_EQ(read[0].lines[1], line);
    ASSERT_NO_THROW(apply_step(again, line, line.name.starts_with("bind"))) << what << language::print(line);
  }
  ASSERT_EQ(to_text(again.body()), to_text(s.body())) << what;
  ASSERT_EQ(again.lines(), s.lines()) << what;
}

Scheduled scheduled(const TensorFn& fn, const Schedule& loops) {
  Scheduled s;
  s.inputs = fn.inputs;
  s.input_index.resize(fn.inputs.size());
  std::iota(s.input_index.begin(), s.input_index.end(), 0);
  s.outputs = fn.outputs;
  loops.hand_over(s);
  return s;
}

// The operands that the loops still read, and what a prologue makes of the others.
std::vector<Constant> with_packed(const TensorFn& fn, const Schedule& loops, const std::vector<Constant>& in) {
  std::vector<Constant> all, known;
  for (const int i : scheduled(fn, loops).input_index) all.push_back(in[size_t(i)]);
  for (const Buffer& b : loops.prologue().inputs)
    known.push_back(in[size_t(std::find(fn.inputs.begin(), fn.inputs.end(), b) - fn.inputs.begin())]);
  if (known.empty()) return all;
  const std::vector<Constant> packed = evaluate(loops.prologue(), known);
  all.insert(all.end(), packed.begin(), packed.end());
  return all;
}

// Tiles that an instruction moves, where the function is a transposition; it comes now, or last.
void tile_moves(Schedule& s, const TensorFn& fn, Dice& d, std::map<std::string, int>& taken) {
  if (fn.stages[0].name != "move") return;
  const std::vector<Var> loops = s.loops(fn.outputs[0]);
  const std::vector<Var> tile = s.tile(loops[0], loops[1], 4, 4);
  taken["tensorize"] += d.below(2) && s.attempt([&](Schedule& t) { t.tensorize(tile[2], "transpose_tile"); });
}

// Instructions come last, wherever a loop is one.
void tensorize_all(Schedule& s, std::map<std::string, int>& taken, std::string& what) {
  for (const Var& v : s.loops())
    for (const std::string& name : tensorizable_instructions()) try {
        s.tensorize(v, name);
        taken["tensorize"]++;
        what += s.steps().back() + "\n";
        break;
      } catch (const ScheduleError&) {
      }
}

void run_random(int from, int to, bool gpu, std::map<std::string, int>& taken) {
  for (int seed = from; seed < to; seed++) {
    Dice d{uint64_t(seed)};
    const TensorFn fn = random_function(d);
    Schedule s(fn, {}, std::vector<bool>(fn.inputs.size(), true));
    std::string what = "seed " + std::to_string(seed) + "\n";
    if (gpu) random_launch(s, fn, d, taken);
    if (!gpu) tile_moves(s, fn, d, taken);
    if (gpu && d.below(2)) {  // a reduction may be the last nest then
      for (const Stage& stage : fn.stages) try {
          s.compute_inline(s.buffer(stage.name));
        } catch (const ScheduleError&) {
        }
    }
    for (int k = 0; k < 60; k++) {
      try {
        const std::string name = random_step(s, fn, d, gpu);
        taken[name]++;
        what += s.steps().back() + "\n";
      } catch (const ScheduleError&) {
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(expect_same(fn, s, what));
    }
    if (!gpu) tensorize_all(s, taken, what);
    ASSERT_NO_FATAL_FAILURE(expect_same(fn, s, what));
    ASSERT_NO_FATAL_FAILURE(expect_replayed(fn, s, what));
    if (gpu) continue;
    std::vector<Constant> in;
    for (const Buffer& b : fn.inputs) in.push_back(small_integers(static_dims(b->shape), uint32_t(in.size() + 1)));
    ASSERT_NO_FATAL_FAILURE(expect_passes_keep(scheduled(fn, s), with_packed(fn, s, in), evaluate(fn, in), what));
  }
}

TEST(ScheduleRandom, StepsKeepEveryBit) {
  std::map<std::string, int> taken;
  run_random(0, 250, false, taken);
  for (const char* name : {"split",
                           "fuse",
                           "reorder",
                           "tile",
                           "unroll",
                           "vectorize",
                           "parallel",
                           "partition",
                           "pad",
                           "compute_inline",
                           "compute_at",
                           "reverse_compute_at",
                           "cache_read",
                           "cache_write",
                           "rfactor",
                           "decompose_reduction",
                           "set_scope",
                           "storage_align",
                           "prefetch",
                           "pipeline",
                           "transform_layout",
                           "annotate",
                           "blockize",
                           "pack",
                           "tensorize"})
    EXPECT_GE(taken[name], 5) << name;
}

TEST(ScheduleRandom, GpuLoopsHaveNoRaces) {
  std::map<std::string, int> taken;
  run_random(5000, 5500, true, taken);
  EXPECT_GE(taken["bind"], 100);
  EXPECT_GE(taken["bind_reduction"], 5);
  EXPECT_GE(taken["cache_read shared"], 5);
}

}  // namespace
}  // namespace tc::random_test
