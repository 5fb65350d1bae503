// Products with weights of few bits: the loops give the bits of the definition, on integers and scales that are powers of two,
// and what is nearly such a weight is none.
#include "templates/few_bits.h"

#include "ir/loop/build.h"
#include "templates/cpu/test_schedule.h"

namespace tc::few_bits_test {
namespace {

using namespace tc::testing;

struct Product {
  int64_t rows = 1, columns = 40, depth = 96, bits = 4, block = 32;
  bool zeros = false;       // one a block, else the middle of the range
  bool block_sums = false;  // bytes in blocks times bytes in blocks
  bool table = false;       // of what the numbers stand for
};

Axis axis(const char* name, int64_t n) { return {make_var(name), Dim(n)}; }

Stage sum_of(std::vector<Axis> axes, std::vector<Axis> raxes, const Expr& value, const Buffer& out) {
  Stage s;
  s.name = "matmul";
  s.kind = Stage::Kind::Reduce;
  s.axes = std::move(axes);
  s.raxes = std::move(raxes);
  s.values = {value};
  s.combiner.op = Op::Add;
  s.init = {make_float(DType::F32, 0)};
  s.outputs = {out};
  return s;
}

Expr numbers_of(const std::function<Expr(const Expr&)>& bytes, const Expr& k, int64_t bits) {
  if (bits == 8) return cast(DType::I32, bytes(k));
  const Expr byte = cast(DType::I32, bytes(floor_div(k, 8 / bits)));
  const Expr shift = cast(DType::I32, floor_mod(k, 8 / bits) * bits);
  return apply(Op::BitAnd, {apply(Op::Shr, {byte, shift}), make_int(DType::I32, (int64_t(1) << bits) - 1)});
}

Expr low_bits(const Buffer& packed, const Expr& n, const Expr& k, int64_t bits) {
  return numbers_of([&](const Expr& i) { return load(packed, {n, i}); }, k, bits);
}

// y[m, n] = max(sum(k) x[m, k] * (number[k, n] - zero) * scale[n, k / block] + bias[n], 0)
TestFunction floats_times_bits(const Product& p) {
  TestFunction f;
  const int64_t blocks = (p.depth + p.block - 1) / p.block, bytes = blocks * p.block * p.bits / 8;
  const Buffer x = make_buffer("x", DType::F32, to_shape({p.rows, p.depth})),
               packed = make_buffer("packed", DType::U8, to_shape({p.columns, bytes})),
               scales = make_buffer("scales", DType::F32, to_shape({p.columns, blocks})),
               zeros = make_buffer("zeros", DType::U8, to_shape({p.columns, blocks})),
               bias = make_buffer("bias", DType::F32, to_shape({p.columns})),
               table = make_buffer("table", DType::F32, to_shape({16})),
               sum = make_buffer("sum", DType::F32, to_shape({p.rows, p.columns})),
               y = make_buffer("y", DType::F32, to_shape({p.rows, p.columns}));
  f.fn.inputs = {x, packed, scales, bias};
  f.constant = {false, true, true, true};
  if (p.table) {
    f.fn.inputs.push_back(table);
    f.constant.push_back(true);
  }
  if (p.zeros) {
    f.fn.inputs.push_back(zeros);
    f.constant.push_back(true);
  }
  const Axis m = axis("m", p.rows), n = axis("n", p.columns), k = axis("k", p.depth);
  const Expr block = floor_div(Expr(k.var), p.block);
  const Expr zero = p.zeros ? cast(DType::F32, cast(DType::I32, load(zeros, {Expr(n.var), block})))
                            : make_float(DType::F32, double(1 << (p.bits - 1)));
  const Expr number = low_bits(packed, Expr(n.var), Expr(k.var), p.bits);
  const Expr distance = p.table ? load(table, {cast(DType::I64, number)}) : cast(DType::F32, number) - zero;
  const Expr w = distance * load(scales, {Expr(n.var), block});
  f.fn.stages.push_back(sum_of({m, n}, {k}, load(x, {Expr(m.var), Expr(k.var)}) * w, sum));
  Stage last;
  last.name = "relu";
  last.axes = {axis("i", p.rows), axis("j", p.columns)};
  const Exprs at = {Expr(last.axes[0].var), Expr(last.axes[1].var)};
  last.values = {max(load(sum, at) + load(bias, {at[1]}), make_float(DType::F32, 0))};
  last.outputs = {y};
  f.fn.stages.push_back(last);
  f.fn.outputs = {y};
  return f;
}

// y[m, n] = sum(b, k) f32(q[m, b, k] * (number[n, b, k] - zero[n, b])) * (s[m, b] * scale[n, b])
TestFunction blocks_times_blocks(const Product& p) {
  TestFunction f;
  const int64_t blocks = p.depth / p.block;
  const Buffer q = make_buffer("q", DType::I8, to_shape({p.rows, blocks, p.block})),
               s = make_buffer("s", DType::F32, to_shape({p.rows, blocks})),
               packed = make_buffer("packed", DType::U8, to_shape({p.columns, p.depth * p.bits / 8})),
               scales = make_buffer("scales", DType::F32, to_shape({p.columns, blocks})),
               zeros = make_buffer("zeros", DType::U8, to_shape({p.columns, blocks})),
               y = make_buffer("y", DType::F32, to_shape({p.rows, p.columns}));
  f.fn.inputs = {q, s, packed, scales, zeros};
  f.constant = {false, false, true, true, true};
  const Axis m = axis("m", p.rows), n = axis("n", p.columns), b = axis("b", blocks), k = axis("k", p.block);
  const Expr number = low_bits(packed, Expr(n.var), Expr(b.var) * p.block + Expr(k.var), p.bits);
  const Expr zero = p.zeros ? cast(DType::I32, load(zeros, {Expr(n.var), Expr(b.var)}))
                            : make_int(DType::I32, int64_t(1) << (p.bits - 1));
  const Expr product = cast(DType::I32, load(q, {Expr(m.var), Expr(b.var), Expr(k.var)})) * (number - zero);
  const Expr scale = load(s, {Expr(m.var), Expr(b.var)}) * load(scales, {Expr(n.var), Expr(b.var)});
  f.fn.stages.push_back(sum_of({m, n}, {b, k}, cast(DType::F32, product) * scale, y));
  f.fn.outputs = {y};
  return f;
}

// y[m, n] = sum(b, k) f32(q[m, b, k] * (w[b * block + k, n] - zero[n])) * (s[m, b] * scale[n]): bytes with a sign, one scale and one
// zero point for each column, and nothing behind the last row of w.
TestFunction blocks_times_columns(const Product& p) {
  TestFunction f;
  const int64_t blocks = (p.depth + p.block - 1) / p.block;
  const DType t = p.bits == 4 ? DType::I4 : DType::I8;
  const Buffer q = make_buffer("q", DType::I8, to_shape({p.rows, blocks, p.block})),
               s = make_buffer("s", DType::F32, to_shape({p.rows, blocks})),
               w = make_buffer("packed", t, to_shape({p.depth, p.columns})),
               scales = make_buffer("scales", DType::F32, to_shape({p.columns})),
               zeros = make_buffer("zeros", t, to_shape({p.columns})),
               y = make_buffer("y", DType::F32, to_shape({p.rows, p.columns}));
  f.fn.inputs = {q, s, w, scales, zeros};
  f.constant = {false, false, true, true, true};
  const Axis m = axis("m", p.rows), n = axis("n", p.columns), b = axis("b", blocks), k = axis("k", p.block);
  const Expr at = Expr(b.var) * p.block + Expr(k.var);
  Expr number = cast(DType::I32, load(w, {at, Expr(n.var)}));
  if (blocks * p.block != p.depth) number = select(at < Expr(p.depth), number, make_int(DType::I32, 0));
  if (p.zeros) number = number - cast(DType::I32, load(zeros, {Expr(n.var)}));
  const Expr product = cast(DType::I32, load(q, {Expr(m.var), Expr(b.var), Expr(k.var)})) * number;
  const Expr scale = load(s, {Expr(m.var), Expr(b.var)}) * load(scales, {Expr(n.var)});
  f.fn.stages.push_back(sum_of({m, n}, {b, k}, cast(DType::F32, product) * scale, y));
  f.fn.outputs = {y};
  return f;
}

// y[t, j, n] = bias[e, n] + sum(b, k) f32(q[t, j, b, k] * (number[e, n, b, k] - zero)) * (s[t, j, b] * scale[e, n, b]), where e is
// chosen[t, j]; with `same`, q and s have no axis j.
TestFunction blocks_times_experts(const Product& p, bool same) {
  TestFunction f;
  constexpr int64_t kExperts = 3, kChosen = 2;
  const int64_t blocks = p.depth / p.block;
  Dims of_rows = {p.rows, kChosen, blocks};
  if (same) of_rows.erase(of_rows.begin() + 1);
  const Buffer s = make_buffer("s", DType::F32, to_shape(of_rows));
  of_rows.push_back(p.block);
  const Buffer q = make_buffer("q", DType::I8, to_shape(of_rows)),
               chosen = make_buffer("chosen", DType::I64, to_shape({p.rows, kChosen})),
               packed = make_buffer("packed", DType::U8, to_shape({kExperts, p.columns, p.depth * p.bits / 8})),
               scales = make_buffer("scales", DType::F32, to_shape({kExperts, p.columns, blocks})),
               zeros = make_buffer("zeros", DType::U8, to_shape({kExperts, p.columns, blocks})),
               bias = make_buffer("bias", DType::F32, to_shape({kExperts, p.columns})),
               sum = make_buffer("sum", DType::F32, to_shape({p.rows, kChosen, p.columns})),
               y = make_buffer("y", DType::F32, to_shape({p.rows, kChosen, p.columns}));
  f.fn.inputs = {q, s, chosen, packed, scales, zeros, bias};
  f.constant = {false, false, false, true, true, true, true};
  const Axis t = axis("t", p.rows), j = axis("j", kChosen), n = axis("n", p.columns), b = axis("b", blocks),
             k = axis("k", p.block);
  auto expert = [&](const Axis& row, const Axis& place) {
    return min(max(load(chosen, {Expr(row.var), Expr(place.var)}), Expr(0)), Expr(kExperts - 1));
  };
  Exprs row = {Expr(t.var), Expr(j.var), Expr(b.var)};
  if (same) row.erase(row.begin() + 1);
  const Exprs of_block = {expert(t, j), Expr(n.var), Expr(b.var)};
  const Expr zero =
      p.zeros ? cast(DType::I32, load(zeros, of_block)) : make_int(DType::I32, int64_t(1) << (p.bits - 1));
  const Expr scale = load(s, row) * load(scales, of_block);
  row.push_back(Expr(k.var));
  const Expr at = Expr(b.var) * p.block + Expr(k.var);
  const Expr number = numbers_of(
      [&](const Expr& i) {
        return load(packed, {expert(t, j), Expr(n.var), i});
      },
      at, p.bits);
  f.fn.stages.push_back(
      sum_of({t, j, n}, {b, k}, cast(DType::F32, cast(DType::I32, load(q, row)) * (number - zero)) * scale, sum));
  Stage last;
  last.name = "bias";
  last.axes = {axis("t", p.rows), axis("j", kChosen), axis("n", p.columns)};
  const Expr of_column = Expr(last.axes[2].var);
  last.values = {load(sum, {Expr(last.axes[0].var), Expr(last.axes[1].var), of_column}) +
                 load(bias, {expert(last.axes[0], last.axes[1]), of_column})};
  last.outputs = {y};
  f.fn.stages.push_back(last);
  f.fn.outputs = {y};
  return f;
}

std::vector<Constant> operands(const TestFunction& f, int64_t bits) {
  std::vector<Constant> in;
  for (const Buffer& b : f.fn.inputs) {
    const Dims dims = static_dims(b->shape);
    MutableTensor m = new_tensor(b->dtype, dims);
    for (int64_t i = 0; i < num_elements(dims); i++)
      if (b->dtype == DType::F32)
        m.as<float>()[i] =
            b->name == "x" || b->name == "bias" || b->name == "table" ? float(i * 7 % 9 - 4) : 1.0f / float(1 << i % 3);
      else if (b->dtype == DType::I8)
        m.as<int8_t>()[i] = int8_t(i % 11 == 0 ? -127 : i * 37 % 255 - 127);
      else if (b->dtype == DType::I4)
        m.as<int8_t>()[i] = int8_t(i * 5 % 16 - 8);
      else if (b->dtype == DType::I64)
        m.as<int64_t>()[i] = i * 2 % 3;
      else
        m.as<uint8_t>()[i] = uint8_t(b->name == "zeros" ? i * 5 % (1 << bits) : i * 149 + i / 7);
    in.push_back(std::make_shared<const TensorData>(std::move(m.data)));
  }
  return in;
}

void expect_exact(const Product& p, const char* cpu = "x86-64-v4", const ScheduleOptions& options = {}) {
  const TestFunction f = p.block_sums ? blocks_times_blocks(p) : floats_times_bits(p);
  std::vector<bool> loaded = f.constant;
  EXPECT_EQ(reads_few_bits(f.fn, f.constant, *find_cpu(cpu), {}), !p.block_sums);
  expect_equal(f, p.rows == 1 ? "matrix_vector" : "matmul", cpu, operands(f, p.bits), options);
}

TEST(FewBits, RowsAndBits) {
  for (const int64_t rows : {1, 3, 4, 5, 20, 140})
    for (const int64_t bits : {2, 4, 8}) expect_exact({.rows = rows, .bits = bits, .zeros = bits != 2});
}

TEST(FewBits, NumbersOfATable) {
  for (const CpuModel& cpu : cpu_models())
    for (const int64_t rows : {1, 20})
      expect_exact({.rows = rows, .columns = 37, .depth = 100, .table = true}, std::string(cpu.name).c_str());
}

TEST(FewBits, WhatNoTileAndNoBlockDivides) {
  for (const int64_t rows : {1, 2, 9}) {
    expect_exact({.rows = rows, .columns = 37, .depth = 101});
    expect_exact({.rows = rows, .columns = 70, .depth = 301, .block = 64, .zeros = true});
    expect_exact({.rows = rows, .columns = 5, .depth = 20, .block = 256});
    expect_exact({.rows = rows, .columns = 5, .depth = 50, .bits = 8, .block = 16, .zeros = true});
  }
}

TEST(FewBits, EveryCpu) {
  for (const CpuModel& cpu : cpu_models())
    for (const int64_t rows : {1, 3, 30}) {
      expect_exact({.rows = rows, .columns = 150, .zeros = true}, std::string(cpu.name).c_str());
      expect_exact({.rows = rows, .columns = 150, .zeros = true, .block_sums = true}, std::string(cpu.name).c_str());
    }
}

// Sixteen numbers of 2 bits lie in a word: stretches of the sum and panels of several vectors cut them elsewhere than those of 4.
TEST(FewBits, WidePanelsOfTwoBits) {
  for (const int64_t panel_columns : {48, 256})
    for (const int64_t rows : {1, 3, 20}) {
      const ScheduleOptions wide = {.panel_columns = panel_columns};
      expect_exact({.rows = rows, .columns = 200, .depth = 101, .bits = 2, .block = 16, .zeros = true}, "znver4", wide);
      expect_exact({.rows = rows, .columns = 100, .depth = 160, .bits = 2, .block = 64}, "generic", wide);
    }
}

TEST(FewBits, ProductsOfBytes) {
  for (const int64_t rows : {1, 3, 4, 19})
    for (const bool zeros : {false, true}) {
      expect_exact({.rows = rows, .zeros = zeros, .block_sums = true});
      expect_exact({.rows = rows, .columns = 37, .bits = 8, .zeros = zeros, .block_sums = true});
      expect_exact({.rows = rows, .columns = 5, .block = 16, .zeros = zeros, .block_sums = true});
      expect_exact({.rows = rows, .depth = 96, .block = 96, .zeros = zeros, .block_sums = true});
    }
}

TEST(FewBits, ProductsOfBytesWithOneScaleForEachColumn) {
  for (const int64_t rows : {1, 3, 19})
    for (const bool zeros : {false, true})
      for (const int64_t bits : {4, 8}) {
        const Product p = {.rows = rows, .columns = 37, .depth = 100, .bits = bits, .zeros = zeros};
        const TestFunction f = blocks_times_columns(p);
        expect_equal(f, rows == 1 ? "matrix_vector" : "matmul", "x86-64-v4", operands(f, bits), {});
      }
}

TEST(FewBits, ProductsOfBytesWithTheWeightsOfExperts) {
  auto expect = [](const Product& p, bool same, const std::string& cpu) {
    const TestFunction f = blocks_times_experts(p, same);
    expect_equal(f, "matmul", cpu.c_str(), operands(f, p.bits), {});
  };
  for (const CpuModel& cpu : cpu_models())
    expect({.rows = 2, .columns = 37, .zeros = true}, true, std::string(cpu.name));
  for (const int64_t rows : {1, 17})
    for (const bool same : {false, true})
      expect({.rows = rows, .columns = 70, .depth = 64, .bits = same ? 4 : 8, .zeros = rows == 1}, same, "x86-64-v3");
}

TEST(FewBits, BytesAskForWeightsEarlyOnlyWhereTheseComeFromMemory) {
  const TestFunction f = blocks_times_blocks({.block_sums = true});
  for (const bool from_memory : {true, false}) {
    const Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v4"), {.fetch_ahead = from_memory});
    EXPECT_EQ(to_text(s.body).find("prefetch") != std::string::npos, from_memory);
  }
}

// --- the form
const Axis kSum = axis("k", 64);
const Buffer kBytes = make_buffer("bytes", DType::U8, to_shape({64})),
             kScales = make_buffer("scales", DType::F32, to_shape({64}));
Expr byte() { return cast(DType::I32, load(kBytes, {Expr(kSum.var)})); }
Expr scale_of(int64_t block) { return load(kScales, {floor_div(Expr(kSum.var), block)}); }

TEST(FewBitsForm, FindsTheBlock) {
  const auto w = few_bits_form(cast(DType::F32, byte() - make_int(DType::I32, 3)) * scale_of(16), kSum);
  ASSERT_TRUE(w);
  EXPECT_EQ(w->bits, 8);
  EXPECT_EQ(w->block, 16);
  EXPECT_EQ(to_text(w->zero), to_text(make_float(DType::F32, 3 - 128)));
}

TEST(FewBitsForm, TwoScalesOfDifferentBlocksShareTheSmallerOne) {
  const auto w = few_bits_form(cast(DType::F32, byte()) * scale_of(16) * scale_of(32), kSum);
  ASSERT_TRUE(w);
  EXPECT_EQ(w->block, 16);
  EXPECT_FALSE(few_bits_form(cast(DType::F32, byte()) * scale_of(16) * scale_of(24), kSum));
}

TEST(FewBitsForm, NumbersOfATable) {
  const Buffer table = make_buffer("table", DType::F32, to_shape({16})),
               other = make_buffer("other", DType::F32, to_shape({15}));
  const auto at = [](int64_t mask) {
    return cast(DType::I64, apply(Op::BitAnd, {byte(), make_int(DType::I32, mask)}));
  };
  const auto w = few_bits_form(load(table, {at(15)}) * scale_of(16), kSum);
  ASSERT_TRUE(w);
  EXPECT_EQ(w->bits, 4);
  EXPECT_EQ(w->block, 16);
  EXPECT_EQ(w->table, table);
  EXPECT_FALSE(w->zero);
  EXPECT_FALSE(few_bits_form(load(table, {at(31)}) * scale_of(16), kSum));
  EXPECT_FALSE(few_bits_form(load(other, {at(7)}) * scale_of(16), kSum));
  EXPECT_FALSE(few_bits_form(load(table, {at(15)}) * load(table, {at(15)}) * scale_of(16), kSum));
  EXPECT_FALSE(few_bits_form((load(table, {at(15)}) - make_float(DType::F32, 1)) * scale_of(16), kSum));
}

TEST(FewBitsForm, NearMisses) {
  const Expr number = cast(DType::F32, byte()), k = Expr(kSum.var);
  const std::vector<Expr> others = {
      number * load(kScales, {k}),                           // a scale for each number
      number * load(kScales, {floor_mod(k, 16)}),            // scales that come back
      number * load(kScales, {floor_div(k + Expr(1), 16)}),  // blocks that begin elsewhere
      number * scale_of(6),                                  // blocks that cut words
      number * number * scale_of(16),                        // a square
      number + scale_of(16),                                 // no factor
      cast(DType::F32, byte() * byte()) * scale_of(16),      // more than 8 bits
      cast(DType::F32, cast(DType::F16, number)) * scale_of(16),
      (number - load(kScales, {k})) * scale_of(16),  // a zero for each number
      scale_of(16)};
  for (const Expr& e : others) EXPECT_FALSE(few_bits_form(e, kSum)) << to_text(e);
}

}  // namespace
}  // namespace tc::few_bits_test
