#include "ir/loop/instruction.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/expand_intrin.h"
#include "support/error.h"
#include "support/text.h"

namespace tc {
namespace {

using enum OperandForm;
using enum OperandUse;
using Table = std::vector<Instruction>;

// --- C: vectors of VL lanes (tc_int.h, tc_simd.h, tc_transpose.h)
void add_vector_rows(Table& t) {
  // sum[lane] += (a[0] + shift) * b[4 * lane] + ... in every lane from `first` on, n products of bytes; shift: 128 for i8
  t.push_back(
      {.name = "dot4",
       .operands = {{"sum", Vector, Both, {DType::I32}, 64, 0},
                    {"a", Memory, Read, {DType::I8, DType::U8}, 4},
                    {"b", Memory, Read, {DType::I8}, 64}},
       .scalars = {{"first"}, {"n", false, 1, 4}},
       .meaning = Assignments{sums_of_quads},
       .c = {{"{sum} = tc_dot4_{a.type}({sum}, {a}, {b})", 4}, {"{sum} = tc_dot4_{a.type}_n({sum}, {a}, {b}, {n})"}},
       .support = SupportText::IntegerVectors,
       .byte_products = true});
  // sum[lane] += a[lane] * factor[lane] in every lane; factor: numbers of 16 bits
  t.push_back({.name = "multiply_add_bytes",
               .operands = {{"sum", Vector, Both, {DType::I32}, 64, 0},
                            {"a", Memory, Read, {DType::I8, DType::U8}},
                            {"factor", Vector, Read, {DType::I32}, 64, 0}},
               .scalars = {{"first"}},
               .meaning = Assignments{products_of_bytes},
               .c = {{"{sum} = tc_madd_{a.type}({sum}, {a}, {factor})"}},
               .support = SupportText::IntegerVectors,
               .byte_products = true});
  // sum[lane] += the numbers of `bits` bits without a sign in words[stride * w + lane], in every lane from `first` on, times
  // a: number 4 * j + i is at bit 8 * i + bits * j, and `count` words have as many numbers as a has elements, 32 at most
  t.push_back({.name = "dot_words",
               .operands = {{"sum", Vector, Both, {DType::I32}, 64, 0},
                            {"words", Memory, Read, {DType::I32}, 4096},
                            {"a", Memory, Read, {DType::I8}, 32}},
               .scalars = {{"first"}, {"stride"}, {"count"}, {"bits"}},
               .meaning = Assignments{sums_of_words},
               .c = {{"{sum} = tc_dot_words_{bits}({sum}, {words}, {stride}, {a}, {count})"}},
               .support = SupportText::FewBits,
               .byte_products = true});
  // to[lane] = number `j` of the numbers of `bits` bits with a sign in words[lane], as f32, in every lane from `first` on
  t.push_back({.name = "unpack_bits",
               .operands = {{"to", Vector, Written, {DType::F32}, 64, 0}, {"words", Vector, Read, {DType::I32}, 64, 0}},
               .scalars = {{"first"}, {"j"}, {"bits"}},
               .meaning = Assignments{unpacked_bits},
               .c = {{"{to} = tc_unpack_{bits}({words}, {j})"}},
               .support = SupportText::FewBits});
  // to[lane] = table[number `j` of the numbers of 4 bits without a sign in words[lane]], in every lane from `first` on
  t.push_back({.name = "lookup_bits",
               .operands = {{"to", Vector, Written, {DType::F32}, 64, 0},
                            {"words", Vector, Read, {DType::I32}, 64, 0},
                            {"table", Memory, Read, {DType::F32}, 16}},
               .scalars = {{"first"}, {"j"}},
               .meaning = Assignments{looked_up_bits},
               .c = {{"{to} = tc_lookup_4({words}, {j}, {table})"}},
               .support = SupportText::FewBits});
  // to[lane] = from[first + stride * lane] in every lane
  t.push_back({.name = "load_strided",
               .operands = {{"to", Vector, Written, {DType::F32}}, {"from", Memory, Read, {DType::F32}, 16, 0}},
               .scalars = {{"first"}, {"stride"}},
               .meaning = Assignments{every_nth},
               .c = {{"{to} = tc_load_even({from})", 2}, {"{to} = tc_load_stride({from}, {stride})"}}});
  // tile[row, lane] = from[row + stride * lane], VL rows
  t.push_back({.name = "load_transposed",
               .operands = {{"tile", Rows, Written, {DType::F32}}, {"from", Memory, Read, {DType::F32}}},
               .scalars = {{"stride"}},
               .meaning = Assignments{columns_as_rows},
               .c = {{}},
               .support = SupportText::Transposes});
  // rows[row, lane] = from[row + n * lane], n rows
  t.push_back({.name = "load_unriffled",
               .operands = {{"rows", Rows, Written, {DType::F32}}, {"from", Memory, Read, {DType::F32}}},
               .scalars = {{"n"}},
               .meaning = Assignments{deinterleaved_rows},
               .c = {{"tc_load_unriffled_{n}({rows}, {from})"}},
               .support = SupportText::Transposes});
  // to[lane * n + row] = rows[row, lane], n rows
  t.push_back({.name = "store_riffled",
               .operands = {{"to", Memory, Written, {DType::F32}}, {"rows", Rows, Read, {DType::F32}}},
               .scalars = {{"n"}},
               .meaning = Assignments{interleaved_store},
               .c = {{"tc_store_riffled_{n}({to}, {rows})"}},
               .support = SupportText::Transposes});
  // the same of bytes, which are the lower bits of the lanes
  t.push_back({.name = "store_riffled_bytes",
               .operands = {{"to", Memory, Written, {DType::I8, DType::U8}}, {"rows", Rows, Read, {DType::I32}}},
               .scalars = {{"n"}},
               .meaning = Assignments{interleaved_store},
               .c = {{"tc_store_riffled_{n}_{to.type}({to}, {rows})"}},
               .support = SupportText::IntegerVectors});
  // to[first + row] = the sum of rows[row, lane], n rows
  t.push_back({.name = "store_sums",
               .operands = {{"to", Memory, Written, {DType::F32}, 64, 0}, {"rows", Rows, Read, {DType::F32}}},
               .scalars = {{"first"}, {"n", false, 4, 16}},
               .meaning = Assignments{sums_of_lanes},
               .c = {{"tc_store_sums_{n}({to}, {rows})"}},
               .support = SupportText::Transposes});
  // nothing; a compiler no longer knows where p points to
  t.push_back({.name = "hide_address",
               .operands = {{"p", Memory, Read, {}, 1}},
               .meaning = Assignments{no_assignments},
               .c = {{}}});
  // to[column * s + row] = from[row * t + column], as many rows and columns as elements are in 16 bytes
  t.push_back({.name = "transpose_tile",
               .operands = {{"to", Memory, Written}, {"from", Memory, Read}},
               .scalars = {{"s"}, {"t"}},
               .meaning = Assignments{transposed_tile},
               .c = {{"tc_transpose_{to.bytes}({to}, {s}, {from}, {t})"}},
               .support = SupportText::Transposes});
}

// --- C: tiles of bytes (tc_tiles.h)
void add_byte_tile_rows(Table& t) {
  // The shapes of a thread's tiles: rows of the left factor, in two tiles, and bytes of a sum at a time.
  t.push_back({.name = "byte_tiles_begin",
               .scalars = {{"upper", false, 1, 16}, {"lower", false, 0, 16}, {"step", false, 4, 64}},
               .meaning = Assignments{no_assignments},
               .c = {{"tc_tiles_begin({upper}, {lower}, {step})"}},
               .support = SupportText::ByteTiles,
               .byte_products = true});
  t.push_back({.name = "byte_tiles_end",
               .meaning = Assignments{no_assignments},
               .c = {{"tc_tiles_end()"}},
               .support = SupportText::ByteTiles,
               .byte_products = true});
  // sums[i * columns + j] = left[i * row_stride + r * run_stride + k] * right[(r * depth + k) / 4, j, k % 4], over r and k; the
  // lower rows, counted anew, lie `below` behind
  t.push_back(
      {.name = "multiply_byte_tiles",
       .operands = {{"sums", Memory, Written, {DType::I32}, 4096},
                    {"left", Memory, Read, {DType::I8, DType::U8}, 64},
                    {"right", Memory, Read, {DType::I8}, 64}},
       .scalars = {{"columns", false, 16, 32},
                   {"upper", false, 1, 16},
                   {"lower", false, 0, 16},
                   {"row_stride"},
                   {"below"},
                   {"runs"},
                   {"run_stride"},
                   {"depth"},
                   {"step", false, 4, 64}},
       .meaning = Assignments{products_of_tiles},
       .c = {{"tc_multiply_tiles_{left.type}({sums}, {columns}, {upper}, {lower}, {left}, {row_stride}, {below}, "
              "{right}, {runs}, {run_stride}, {depth}, {step})"}},
       .support = SupportText::ByteTiles,
       .byte_products = true});
}

// --- CUDA: copies (tc_cuda.h)
void add_copy_rows(Table& t) {
  for (const int64_t n : {2, 4, 8, 16}) {  // neighbours, of 16 bytes at most
    t.push_back({.name = "load" + to_text(n),
                 .operands = {{"to", Registers, Written}, {"from", Memory, Read}},
                 .meaning = Assignments{copied_elements, n},
                 .cuda = {{}}});
    t.push_back({.name = "store" + to_text(n),
                 .operands = {{"to", Memory, Written}, {"from", Registers, Read}},
                 .meaning = Assignments{copied_elements, n},
                 .cuda = {{}}});
  }
  // to[..] = valid ? from[..] : 0, so many bytes, from global to shared memory
  for (const int64_t n : {4, 8, 16})
    t.push_back({.name = "cp_async" + to_text(n),
                 .operands = {{"to", Memory, Written, {}, n}, {"from", Memory, Read, {}, n}},
                 .scalars = {{"valid", true}},
                 .meaning = Assignments{copied_bytes, n},
                 .async = AsyncCopy::Copy,
                 .cuda = {{}},
                 .optional_scalars = 1,
                 .sm = 80,
                 .cycles = double(n) / 2});
  t.push_back({.name = "cp_async_commit",
               .meaning = Assignments{no_assignments},
               .async = AsyncCopy::Commit,
               .cuda = {{}},
               .sm = 80});
  // for all but the newest groups
  t.push_back({.name = "cp_async_wait",
               .scalars = {{"groups"}},
               .meaning = Assignments{no_assignments},
               .async = AsyncCopy::Wait,
               .cuda = {{"tc_cp_async_wait<{groups}>()"}},
               .sm = 80});
}

// --- CUDA: exchange between threads
void add_exchange_rows(Table& t) {
  // Over more than a warp they are cut into those of warps: pass lower_thread_allreduce.
  auto reduction = [&](const char* name, Op op, std::string_view warp, std::string_view lanes) {
    t.push_back({.name = name,
                 .operands = {{"value", Scalar, Both}},
                 .scalars = {{"n"}},
                 .meaning = ThreadReduction{op},
                 .collective = Collective::Group,
                 .cuda = {{warp, kWarp}, {lanes}}});
  };
  reduction("allreduce_add", Op::Add, "{value} = tc_warp_add({value})", "{value} = tc_warp_add<{n}>({value})");
  reduction("allreduce_mul", Op::Mul, "{value} = tc_warp_mul({value})", "{value} = tc_warp_mul<{n}>({value})");
  reduction("allreduce_max", Op::Max, "{value} = tc_warp_max({value})", "{value} = tc_warp_max<{n}>({value})");
  reduction("allreduce_min", Op::Min, "{value} = tc_warp_min({value})", "{value} = tc_warp_min<{n}>({value})");
  // passes/loop/lower_warp_memory.h makes them; of 4 or 8 bytes
  auto shuffle = [&](const char* name, ShuffleForm form, std::string_view text) {
    t.push_back({.name = name,
                 .operands = {{"to", Scalar, Written}},
                 .scalars = {{"value", true}, {"by"}},
                 .meaning = WarpShuffle{form},
                 .collective = Collective::Warp,
                 .cuda = {{text}}});
  };
  shuffle("shuffle_xor", ShuffleForm::Xor, "{to} = tc_shuffle_xor({value}, {by})");
  shuffle("shuffle_up", ShuffleForm::Up, "{to} = tc_shuffle_up({value}, {by})");
  shuffle("shuffle_down", ShuffleForm::Down, "{to} = tc_shuffle_down({value}, {by})");
  shuffle("shuffle_idx", ShuffleForm::Index, "{to} = tc_shuffle_idx({value}, {by})");
}

// --- CUDA: tensor cores, on the registers of lanes
void add_matrix_rows(Table& t) {
  auto load = [&](const char* name, int count, bool transposed) {
    t.push_back({.name = name,
                 .operands = {{"to", Registers, Written, {DType::U32}}, {"row", Memory, Read}},
                 .meaning = MatrixLoad{count, transposed},
                 .collective = Collective::Warp,
                 .cuda = {{}},
                 .cycles = double(count)});
  };
  load("ldmatrix_x4", 4, false), load("ldmatrix_x4_trans", 4, true);
  load("ldmatrix_x2", 2, false), load("ldmatrix_x2_trans", 2, true);
  for (const int64_t n : {4, 2}) {
    t.push_back({.name = "round_tf32_x" + to_text(n),
                 .operands = {{"v", Registers, Both, {DType::U32}}},
                 .meaning = Assignments{round_words, n},
                 .cuda = {{}},
                 .sm = 80});
    t.push_back({.name = "split_tf32_x" + to_text(n),
                 .operands = {{"rest", Registers, Written, {DType::U32}}, {"v", Registers, Both, {DType::U32}}},
                 .meaning = Assignments{split_words, n},
                 .cuda = {{}},
                 .sm = 80});
  }
  auto multiply = [&](const MatrixInstruction& m, int sm) {
    t.push_back({.name = std::string(m.name),
                 .operands = {{"sums", Registers, Both, {m.sum}},
                              {"left", Registers, Read, {m.left, DType::U32}},
                              {"right", Registers, Read, {m.right, DType::U32}}},
                 .meaning = m,
                 .collective = Collective::Warp,
                 .cuda = {{}},
                 .sm = sm,
                 .cycles = 2});
  };
  multiply({"mma_f16_k16", DType::F16, DType::F16, DType::F32, 16}, 75);
  multiply({"mma_bf16_k16", DType::BF16, DType::BF16, DType::F32, 16}, 80);
  multiply({"mma_tf32_k8", DType::F32, DType::F32, DType::F32, 8}, 80);
  multiply({"mma_s8_k32", DType::I8, DType::I8, DType::I32, 32}, 75);
  multiply({"mma_u8_k32", DType::U8, DType::U8, DType::I32, 32}, 75);
  multiply({"mma_s8u8_k32", DType::I8, DType::U8, DType::I32, 32}, 75);
  multiply({"mma_u8s8_k32", DType::U8, DType::I8, DType::I32, 32}, 75);
}

// --- CUDA: products of warp groups, of machines that have wgmma
void add_group_rows(Table& t) {
  auto multiply = [&](const std::string& types, DType left, DType right, DType sum) {
    for (const int64_t columns : {64, 128, 256})
      t.push_back({.name = "wgmma_" + types + "_n" + to_text(columns),
                   .operands = {{"sums", Registers, Both, {sum}},
                                {"left", Memory, Read, {left}, kSwizzledRow, -1, kTileRows},
                                {"right", Memory, Read, {right}, kSwizzledRow, -1, columns}},
                   .meaning = GroupMatrixInstruction{left, right, sum, columns},
                   .collective = Collective::Warp,
                   .cuda = {{}},
                   .sm = 90,
                   .is_wgmma = true});
  };
  multiply("f16", DType::F16, DType::F16, DType::F32);
  multiply("bf16", DType::BF16, DType::BF16, DType::F32);
  multiply("s8", DType::I8, DType::I8, DType::I32);
  multiply("u8", DType::U8, DType::U8, DType::I32);
  multiply("s8u8", DType::I8, DType::U8, DType::I32);
  multiply("u8s8", DType::U8, DType::I8, DType::I32);
  // What a thread has stored in shared memory, products of groups see behind the next barrier.
  t.push_back(
      {.name = "wgmma_publish", .meaning = Assignments{no_assignments}, .cuda = {{}}, .sm = 90, .is_wgmma = true});
  // Before the first of several products, and behind them: they are a group.
  for (const char* name : {"wgmma_begin", "wgmma_commit"})
    t.push_back({.name = name, .meaning = Assignments{no_assignments}, .cuda = {{}}, .sm = 90, .is_wgmma = true});
  // Until all groups but the newest are done, nobody may touch their factors; until the end, the sums.
  t.push_back({.name = "wgmma_wait",
               .scalars = {{"groups"}},
               .meaning = Assignments{no_assignments},
               .cuda = {{"tc_wgmma_wait<{groups}>()"}},
               .sm = 90,
               .is_wgmma = true});
  t.push_back({.name = "wgmma_end",
               .operands = {{"sums", Registers, Both}},
               .scalars = {{"pieces"}},
               .meaning = Assignments{no_assignments},
               .cuda = {{"tc_wgmma_end<{pieces}>({sums})"}},
               .sm = 90,
               .is_wgmma = true});
}

// --- CUDA: tiles of a warp. They have no text: infer_fragment makes those on registers of them.
void add_tile_rows(Table& t) {
  auto tile = [&](const char* name, TileForm form, std::vector<InstructionOperand> operands,
                  std::vector<InstructionScalar> scalars = {}) {
    t.push_back({.name = name,
                 .operands = std::move(operands),
                 .scalars = std::move(scalars),
                 .meaning = TileOperation{form},
                 .collective = Collective::Warp,
                 .repeats_last = form == TileForm::Join});
  };
  // every element = value
  tile("fill_fragment", TileForm::Fill, {{"to", Tile, Written}}, {{"value", true}});
  // to[i, j] = m[..., r + i, c + j], or m[..., r + j, c + i]
  tile("load_fragment", TileForm::Load, {{"to", Tile, Written}, {"m", Memory, Read}});
  tile("load_fragment_trans", TileForm::LoadTransposed, {{"to", Tile, Written}, {"m", Memory, Read}});
  // to[i, j] = s0[i, j], and behind its columns those of s1: sums become a factor
  tile("join_fragments", TileForm::Join, {{"to", Tile, Written}, {"s", Tile, Read}});
  // to the precision of mma_tf32_k8, which would cut off the rest; split keeps in rest, rounded, what that took away
  tile("round_fragment_tf32", TileForm::Round, {{"v", Tile, Both, {DType::F32}}});
  tile("split_fragment_tf32", TileForm::Split,
       {{"rest", Tile, Written, {DType::F32}}, {"v", Tile, Both, {DType::F32}}});
}

Table make_table() {
  Table t;
  add_vector_rows(t);
  add_byte_tile_rows(t);
  add_copy_rows(t);
  add_exchange_rows(t);
  add_matrix_rows(t);
  add_group_rows(t);
  add_tile_rows(t);
  return t;
}

}  // namespace

const InstructionOperand& Instruction::operand(size_t i) const {
  check(i < operands.size() || (repeats_last && !operands.empty()), "an operand that the instruction has");
  return operands[std::min(i, operands.size() - 1)];
}

const std::vector<Instruction>& instructions() {
  static const Table table = make_table();
  return table;
}

const Instruction* find_instruction(std::string_view name) {
  for (const Instruction& row : instructions())
    if (row.name == name) return &row;
  return nullptr;
}

const Instruction& instruction(std::string_view name) {
  const Instruction* row = find_instruction(name);
  if (!row) throw InternalError("no instruction has the name " + std::string(name));
  return *row;
}

bool reads_operand(const Intrin& k, size_t i) { return instruction(k).operand(i).use != Written; }
bool writes_operand(const Intrin& k, size_t i) { return instruction(k).operand(i).use != Read; }

Expr swizzled(const Expr& row, const Expr& column, DType type, int64_t aligned) {
  const int64_t chunk = 16 / info(type).bytes;
  const Expr moved = apply(Op::BitXor, {floor_div(column, chunk), floor_mod(row, 8)});
  return aligned % chunk == 0 ? moved * Expr(chunk) : moved * Expr(chunk) + floor_mod(column, chunk);
}

std::string group_matrix_instruction(DType left, DType right, int64_t columns) {
  for (const Instruction& row : instructions())
    if (const auto* m = std::get_if<GroupMatrixInstruction>(&row.meaning);
        m && m->left == left && m->right == right && m->columns == columns)
      return row.name;
  return "";
}

const MatrixInstruction* matrix_instruction(DType left, DType right) {
  for (const Instruction& row : instructions())
    if (const auto* m = std::get_if<MatrixInstruction>(&row.meaning); m && m->left == left && m->right == right)
      return m;
  return nullptr;
}

}  // namespace tc
