// Tiles spread over lanes hold what whole tiles hold, for every instruction and both ways in which factors lie in
// memory.
#include "passes/loop/infer_fragment.h"

#include <gtest/gtest.h>

#include <cstring>

#include "ir/interpreter.h"
#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/intrin.h"
#include "ir/loop/print.h"
#include "ir/tensor_fn.h"
#include "support/error.h"

namespace tc::infer_fragment_test {
namespace {

const MatrixInstruction& multiplies(std::string_view name) {
  return std::get<MatrixInstruction>(instruction(name).meaning);
}

struct Product {
  Stmt body;
  Buffer a, b, y;
};

// One warp: y = a b for one tile, which passes through shared memory. `transposed`: a lies [k][row], b [k][column].
Product product(const MatrixInstruction& m, bool transposed) {
  auto memory = [](const char* name, DType t, int64_t rows, int64_t columns, Scope scope) {
    return make_buffer(name, t, {Dim(rows), Dim(columns)}, scope);
  };
  const int64_t n = kTileColumns, rows = kTileRows, k = m.depth;
  Product p;
  p.a = memory("a", m.left, transposed ? k : rows, transposed ? rows : k, Scope::Global);
  p.b = memory("b", m.right, transposed ? k : n, transposed ? n : k, Scope::Global);
  p.y = memory("y", m.sum, rows, n, Scope::Global);
  const Buffer acc = memory("acc", m.sum, rows, n, Scope::Fragment),
               left = memory("left", m.left, rows, k, Scope::Fragment),
               right = memory("right", m.right, k, n, Scope::Fragment);
  const Var thread = make_var("thread"), r = make_var("r"), c = make_var("c"), e = make_var("e");
  Stmts copies;
  Buffer tiles[2];
  for (int i = 0; i < 2; i++) {
    const Buffer from = i == 0 ? p.a : p.b;
    tiles[i] = make_buffer(from->name + "_tile", from->dtype, from->shape, Scope::Shared);
    const Var row = make_var("row"), column = make_var("column");
    const Stmt one = store(tiles[i], {row, column}, load(from, {row, column}));
    copies.push_back(if_then(eq(Expr(thread), Expr(i)), loop(row, from->shape[0], loop(column, from->shape[1], one))));
  }
  copies.push_back(barrier(Scope::Shared));
  copies.push_back(intrin("fill_fragment", {{acc, {}}}, {make_const(m.sum, 1)}));
  copies.push_back(intrin(transposed ? "load_fragment_trans" : "load_fragment", {{left, {}}, {tiles[0], {0, 0}}}));
  copies.push_back(intrin(transposed ? "load_fragment" : "load_fragment_trans", {{right, {}}, {tiles[1], {0, 0}}}));
  for (const auto& t : {left, right})
    if (t->dtype == DType::F32) copies.push_back(intrin("round_fragment_tf32", {{t, {}}}));
  copies.push_back(intrin(std::string(m.name), {{acc, {}}, {left, {}}, {right, {}}}));
  const Expr column = Expr(c) * Expr(2) + Expr(e);
  Stmt out = loop(e, 2, store(p.y, {r, column}, load(acc, {r, column})), ForKind::Unroll);
  copies.push_back(loop(r, rows, loop(c, n / 2, out, ForKind::Fragment), ForKind::Fragment));
  Stmt s = alloc(acc, alloc(left, alloc(right, seq(copies))));
  s = alloc(tiles[0], alloc(tiles[1], loop(thread, kWarp, s, ForKind::ThreadX)));
  p.body = loop(make_var("block"), 1, s, ForKind::BlockX);
  return p;
}

// Numbers that tell their elements apart, and that the sums of which are exact.
std::vector<uint8_t> numbers(const Buffer& b, uint32_t seed) {
  const int bytes = info(b->dtype).bytes;
  std::vector<uint8_t> out(size_t(num_elements(static_dims(b->shape)) * bytes));
  for (size_t i = 0; i < out.size() / size_t(bytes); i++) {
    seed = seed * 1664525u + 1013904223u;
    const int v = int(seed >> 20) % 200 - (info(b->dtype).is_unsigned_int ? 0 : 100);
    const float f = float(v);
    const uint16_t half = double_to_narrow_float(is_narrow_float(b->dtype) ? b->dtype : DType::F16, v);
    const int8_t byte = int8_t(v);
    std::memcpy(out.data() + i * size_t(bytes),
                bytes == 4   ? static_cast<const void*>(&f)
                : bytes == 2 ? static_cast<const void*>(&half)
                             : &byte,
                size_t(bytes));
  }
  return out;
}

std::vector<uint8_t> result(const Product& p, const Stmt& body) {
  std::vector<uint8_t> a = numbers(p.a, 1), b = numbers(p.b, 2), y(size_t(kTileRows * kTileColumns * 4), 0x5a);
  RunOptions o;
  o.check_races = true;
  run(body, {{p.a, a.data()}, {p.b, b.data()}, {p.y, y.data()}}, o);
  return y;
}

TEST(InferFragment, LanesHoldWhatTilesHold) {
  for (const char* name :
       {"mma_f16_k16", "mma_bf16_k16", "mma_tf32_k8", "mma_s8_k32", "mma_u8_k32", "mma_s8u8_k32", "mma_u8s8_k32"})
    for (const bool transposed : {false, true}) {
      const MatrixInstruction* m = &multiplies(name);
      ASSERT_NE(m, nullptr) << name;
      if (transposed && info(m->left).bytes != 2) continue;  // refused: below
      const Product p = product(*m, transposed);
      const Stmt spread = infer_fragment(p.body);
      EXPECT_EQ(to_text(spread).find("fragment"), std::string::npos) << to_text(spread);
      EXPECT_EQ(result(p, p.body), result(p, spread)) << name << "\n" << to_text(spread);
    }
}

// One warp: z[row] = 2 * its number, y = that of the row + (a b, rounded to the type of factors) c, where the first
// product becomes a factor of the second without leaving its registers. a, b and c lie as tiles want them.
struct Chain {
  Stmt body;
  Buffer a, b, c, y, z;
};
Chain chain(const MatrixInstruction& m) {
  auto memory = [](const char* name, DType t, int64_t rows, int64_t columns, Scope scope) {
    return make_buffer(name, t, {Dim(rows), Dim(columns)}, scope);
  };
  const int64_t n = kTileColumns, rows = kTileRows, k = m.depth, pieces = k / n;
  Chain p;
  p.a = memory("a", m.left, rows, k, Scope::Shared);
  p.b = memory("b", m.right, k, k, Scope::Shared);  // [column][k]
  p.c = memory("c", m.right, k, n, Scope::Shared);  // [k][column]
  p.y = memory("y", m.sum, rows, n, Scope::Global);
  p.z = memory("z", m.sum, rows, 1, Scope::Global);
  const Buffer sums = make_buffer("s", m.sum, {Dim(pieces), Dim(rows), Dim(n)}, Scope::Fragment),
               acc = memory("acc", m.sum, rows, n, Scope::Fragment),
               numbers = memory("numbers", m.sum, rows, 1, Scope::Fragment),
               left = memory("left", m.left, rows, k, Scope::Fragment),
               joined = memory("joined", m.left, rows, k, Scope::Fragment),
               right = make_buffer("right", m.right, {Dim(pieces), Dim(k), Dim(n)}, Scope::Fragment),
               last = memory("last", m.right, k, n, Scope::Fragment);
  const Var thread = make_var("thread"), r = make_var("r"), pair = make_var("pair"), e = make_var("e");
  Stmts fill;
  for (const Buffer& t : {p.a, p.b, p.c}) {
    const Var i = make_var("i"), j = make_var("j");
    const Expr value = floor_mod(Expr(i) * Expr(7) + Expr(j) * Expr(5), 11) - Expr(5);
    fill.push_back(
        loop(i, t->shape[0], loop(j, t->shape[1], store(t, {i, j}, cast(t->dtype, cast(DType::F32, value))))));
  }
  Stmts list = {if_then(eq(Expr(thread), 0), seq(fill)), barrier(Scope::Shared)};
  list.push_back(loop(r, rows, store(numbers, {r, 0}, cast(m.sum, Expr(r))), ForKind::Fragment));
  list.push_back(loop(r, rows, store(numbers, {r, 0}, make_float(m.sum, 2), Op::Mul), ForKind::Fragment));
  list.push_back(intrin("load_fragment", {{left, {}}, {p.a, {0, 0}}}));
  std::vector<IntrinOperand> factor = {{joined, {}}};
  for (int64_t j = 0; j < pieces; j++) {
    list.push_back(intrin("fill_fragment", {{sums, {j}}}, {make_const(m.sum, 0)}));
    list.push_back(intrin("load_fragment_trans", {{right, {j}}, {p.b, {Expr(j * n), 0}}}));
    list.push_back(intrin(std::string(m.name), {{sums, {j}}, {left, {}}, {right, {j}}}));
    factor.push_back({sums, {j}});
  }
  list.push_back(intrin("join_fragments", factor));
  list.push_back(intrin("load_fragment", {{last, {}}, {p.c, {0, 0}}}));
  list.push_back(intrin("fill_fragment", {{acc, {}}}, {make_const(m.sum, 0)}));
  list.push_back(intrin(std::string(m.name), {{acc, {}}, {joined, {}}, {last, {}}}));
  const Expr column = Expr(pair) * Expr(2) + Expr(e);
  const Stmt out = store(p.y, {r, column}, load(numbers, {r, 0}) + load(acc, {r, column}));
  const Stmt first = if_then(eq(Expr(pair), 0), store(p.z, {r, 0}, load(numbers, {r, 0})));
  list.push_back(loop(r, rows,
                      seq({loop(pair, n / 2, first, ForKind::Fragment),
                           loop(pair, n / 2, loop(e, 2, out, ForKind::Unroll), ForKind::Fragment)}),
                      ForKind::Fragment));
  Stmt s = seq(list);
  for (const Buffer& t : {sums, acc, numbers, left, joined, right, last}) s = alloc(t, s);
  s = loop(thread, kWarp, s, ForKind::ThreadX);
  for (const Buffer& t : {p.a, p.b, p.c}) s = alloc(t, s);
  p.body = loop(make_var("block"), 1, s, ForKind::BlockX);
  return p;
}

TEST(InferFragment, SumsBecomeAFactorWhereTheyAre) {
  for (const char* name : {"mma_f16_k16", "mma_bf16_k16", "mma_tf32_k8"}) {
    const Chain p = chain(multiplies(name));
    auto results = [&](const Stmt& body) {
      std::vector<float> y(kTileRows * kTileColumns, -1), z(kTileRows, -1);
      RunOptions o;
      o.check_races = true;
      run(body, {{p.y, reinterpret_cast<uint8_t*>(y.data())}, {p.z, reinterpret_cast<uint8_t*>(z.data())}}, o);
      y.insert(y.end(), z.begin(), z.end());
      return y;
    };
    const Stmt spread = infer_fragment(p.body);
    EXPECT_EQ(to_text(spread).find("fragment"), std::string::npos) << to_text(spread);
    const std::vector<float> whole = results(p.body);
    EXPECT_EQ(whole, results(spread)) << name << "\n" << to_text(spread);
    EXPECT_EQ(whole.back(), 2 * (kTileRows - 1));
  }
}

TEST(InferFragment, Text) {
  const std::string text = to_text(infer_fragment(product(multiplies("mma_f16_k16"), false).body));
  for (const char* line : {"ldmatrix_x4", "ldmatrix_x2", "acc[h * 2 + e_2]", "lane_m = floor_div(lane, 4)"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(InferFragment, RefusesWhatLanesCannotDo) {
  EXPECT_THROW(infer_fragment(product(multiplies("mma_s8_k32"), true).body), InternalError);
}

TEST(InferFragment, LeavesOtherLoopsAlone) {
  const Buffer y = make_buffer("y", DType::F32, {Dim(32)});
  const Var t = make_var("t");
  const Stmt s = loop(t, 32, store(y, {t}, make_float(DType::F32, 0)), ForKind::ThreadX);
  EXPECT_TRUE(infer_fragment(s).same_as(s));
}

}  // namespace
}  // namespace tc::infer_fragment_test
