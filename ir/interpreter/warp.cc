// What the lanes of a warp do together on their registers: ldmatrix and mma, as templates/text/tc_cuda.h describes
// them.
#include <cstring>

#include "ir/interpreter/compiler.h"
#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "support/text.h"

namespace tc::interp {
namespace {

// Where lane l has the first word of an operand in registers; the next is `step` further.
struct Words {
  uint32_t* first = nullptr;
  int64_t step = 0;
  uint32_t& at(int lane, int64_t word) const { return first[word * step + lane]; }
};

Words words_of(Machine& m, int access) {
  const Access& x = m.program.accesses[size_t(access)];
  Strided s;
  const bool strided = resolve(m, x, m.lanes, 1, s);
  check(strided && s.lane_step == 1, "operands of a warp's instruction are registers of each lane");
  return {reinterpret_cast<uint32_t*>(m.program.buffers[size_t(x.buffer)].bytes) + s.offset, m.program.batch};
}

// All lanes of a warp are there, or none.
bool warp_is_active(const Machine& m, int begin) {
  for (int l = begin; l < begin + kWarp; l++)
    check(m.active(l) == m.active(begin), "the lanes of a warp are not all there");
  return m.active(begin);
}

double element(DType t, uint32_t word, int64_t i) {
  const int bits = info(t).bytes * 8;
  const uint32_t raw = bits == 32 ? word : word >> (i * bits) & ((1u << bits) - 1);
  if (t == DType::I8) return double(int8_t(raw));
  if (t == DType::U8) return double(raw);
  if (is_narrow_float(t)) return narrow_float_to_double(t, uint16_t(raw));
  const uint32_t cut = raw & 0xffffe000u;  // tf32
  float f;
  std::memcpy(&f, &cut, 4);
  return double(f);
}

// The bytes where the operand begins, one number for each lane.
std::vector<int64_t> begins_of(Machine& m, const Access& x) {
  Strided s;
  const int64_t bytes = info(m.program.buffers[size_t(x.buffer)].buffer->dtype).bytes;
  const bool strided = resolve(m, x, m.lanes, 1, s);
  std::vector<int64_t> list(size_t(m.lanes));
  for (int l = 0; l < m.lanes; l++)
    list[size_t(l)] = (strided ? s.offset + l * s.lane_step : m.addresses[size_t(l)]) * bytes;
  return list;
}

// a, b: accesses of the rows' addresses and of the result; c: matrices; aux: 1 to transpose
void read_matrices(Machine& m, const Instr& i) {
  const Access& from = m.program.accesses[size_t(i.a)];
  const BufferSlot& slot = m.program.buffers[size_t(from.buffer)];
  const int64_t bytes = info(slot.buffer->dtype).bytes;
  const std::vector<int64_t> rows = begins_of(m, from);
  const Words to = words_of(m, i.b);
  for (int w = 0; w < m.lanes; w += kWarp) {
    if (!warp_is_active(m, w)) continue;
    for (int matrix = 0; matrix < i.c; matrix++)
      for (int l = 0; l < kWarp; l++) {
        uint16_t halves[2];
        for (int h = 0; h < 2; h++) {
          const int row = i.aux ? l % 4 * 2 + h : l / 4, column = i.aux ? l / 4 : l % 4 * 2 + h;
          const int64_t at = rows[size_t(w + 8 * matrix + row)];
          check(at % 16 == 0 && at + 16 <= slot.elements * bytes, "a row of 16 bytes on 16 bytes");
          std::memcpy(&halves[h], slot.bytes + at + 2 * column, 2);
        }
        std::memcpy(&to.at(w + l, matrix), halves, 4);
      }
  }
  m.steps += m.lanes * i.c;
}

template <class T>
T sum_of(const MatrixInstruction& mma, const Words& a, const Words& b, int warp, int row, int column, T sum) {
  const int64_t per = mma.per_word();
  for (int64_t k = 0; k < mma.depth; k++) {
    const int64_t word = k / per % 4, high = k / (4 * per);
    const double x = element(mma.left, a.at(warp + int(row % 8 * 4 + word), row / 8 + high * 2), k % per);
    const double y = element(mma.right, b.at(warp + int(column * 4 + word), high), k % per);
    sum += T(x) * T(y);
  }
  return sum;
}

// a, b, c: accesses of sums, left and right; aux: the instruction
void multiply_matrices(Machine& m, const Instr& i) {
  const MatrixInstruction& mma = m.program.matrix_instructions[size_t(i.aux)];
  const Words c = words_of(m, i.a), a = words_of(m, i.b), b = words_of(m, i.c);
  for (int w = 0; w < m.lanes; w += kWarp) {
    if (!warp_is_active(m, w)) continue;
    for (int l = 0; l < kWarp; l++)
      for (int e = 0; e < 4; e++) {
        const int row = l / 4 + e / 2 * 8, column = l % 4 * 2 + e % 2;
        uint32_t& sum_bits = c.at(w + l, e);
        if (mma.sum == DType::I32) {
          sum_bits = uint32_t(sum_of<int64_t>(mma, a, b, w, row, column, int64_t(int32_t(sum_bits))));
        } else {
          float sum;
          std::memcpy(&sum, &sum_bits, 4);
          sum = sum_of<float>(mma, a, b, w, row, column, sum);
          std::memcpy(&sum_bits, &sum, 4);
        }
      }
  }
  m.steps += m.lanes * mma.depth;
}

// Element `column` of row `row`, from `begin` on, which is in the matrix's first row; its chunks are exchanged by the row.
double swizzled_element(const BufferSlot& slot, DType t, int64_t begin, int64_t row, int64_t column) {
  const int64_t first = begin / kSwizzledRow * kSwizzledRow, at = begin % kSwizzledRow + column * info(t).bytes;
  check(first / kSwizzledRow % 8 == 0 && at < kSwizzledRow, "eight rows of 128 bytes are exchanged together");
  const int64_t from = first + row * kSwizzledRow + ((at / 16) ^ (row % 8)) * 16 + at % 16;
  check(from + info(t).bytes <= slot.elements * info(slot.buffer->dtype).bytes, "rows that are there");
  uint32_t word = 0;
  std::memcpy(&word, slot.bytes + from, size_t(info(t).bytes));
  return element(t, word, 0);
}

// a, b, c: accesses of sums, left and right; aux: the instruction
void multiply_in_group(Machine& m, const Instr& i) {
  const GroupMatrixInstruction& g = m.program.group_instructions[size_t(i.aux)];
  const Access &left = m.program.accesses[size_t(i.b)], &right = m.program.accesses[size_t(i.c)];
  const std::vector<int64_t> a = begins_of(m, left), b = begins_of(m, right);
  const BufferSlot &a_slot = m.program.buffers[size_t(left.buffer)], &b_slot = m.program.buffers[size_t(right.buffer)];
  const Words c = words_of(m, i.a);
  const int64_t depth = kGroupDepthBytes / info(g.left).bytes;
  for (int l = 0; l < m.lanes; l++) {
    const int group = l / int(kGroupWarps * kWarp) * int(kGroupWarps * kWarp), warp = (l - group) / kWarp;
    check(m.active(l) == m.active(group), "the warps of a group are not all there");
    if (!m.active(l)) continue;
    check(a[size_t(l)] == a[size_t(group)] + warp * kTileRows * kSwizzledRow && b[size_t(l)] == b[size_t(group)],
          "the left factors of a group lie one behind the other, and it has one right factor");
    for (int64_t e = 0; e < g.columns / 2; e++) {
      const int64_t row = l % kWarp / 4 + e % 4 / 2 * 8, column = e / 4 * kTileColumns + l % 4 * 2 + e % 2;
      double sum = 0;
      for (int64_t k = 0; k < depth; k++)
        sum += swizzled_element(a_slot, g.left, a[size_t(l)], row, k) *
               swizzled_element(b_slot, g.right, b[size_t(l)], column, k);
      uint32_t& bits = c.at(l, e);
      if (g.sum == DType::I32) {
        bits = uint32_t(int64_t(int32_t(bits)) + int64_t(sum));
      } else {
        float f;
        std::memcpy(&f, &bits, 4);
        f += float(sum);
        std::memcpy(&bits, &f, 4);
      }
    }
  }
  m.steps += m.lanes * g.columns * depth / 16;
}

}  // namespace

bool Compiler::warp_instruction(const Intrin& k) {
  const auto* mma = meaning_as<MatrixInstruction>(k);
  const auto* loads = meaning_as<MatrixLoad>(k);
  const auto* group = meaning_as<GroupMatrixInstruction>(k);
  if ((!mma && !loads && !group) || k.buffers.at(0)->scope == Scope::Fragment) return false;
  check(in_threads_ && threads_.total() % kWarp == 0, "warps are whole");
  const IntrinCall call = parse(k);
  std::vector<int32_t> at;
  for (const IntrinOperand& o : call.operands) {
    Exprs index = o.index;
    if (o.buffer->scope == Scope::Register) index.push_back(0);
    bool varying = true, vector = false;
    at.push_back(access(o.buffer, index, {}, at.empty() && !loads, varying, vector));
  }
  const size_t i = emit_jump(group ? &multiply_in_group : mma ? &multiply_matrices : &read_matrices, at[loads ? 1 : 0]);
  Instr& instr = program_.code[i];
  if (group) {
    program_.group_instructions.push_back(*group);
    instr.b = at[1], instr.c = at[2], instr.aux = int32_t(program_.group_instructions.size()) - 1;
  } else if (mma) {
    program_.matrix_instructions.push_back(*mma);
    instr.b = at[1], instr.c = at[2], instr.aux = int32_t(program_.matrix_instructions.size()) - 1;
  } else {
    instr.b = at[0], instr.c = loads->count, instr.aux = loads->transposed ? 1 : 0;
  }
  return true;
}

}  // namespace tc::interp
