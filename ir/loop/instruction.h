// The instructions that C has no word for, of machines and of our support text: one table. What an Intrin means, reads and
// writes, who has to come by, which machines have it and how it is spelled stand in its row (instruction.cc); the
// interpreter, the placement of barriers and fragments, the cost models and the printers ask the row, and match no name.
#pragma once
#include <optional>
#include <variant>

#include "ir/loop/cuda_limits.h"
#include "ir/loop/intrin.h"

namespace tc {

inline constexpr int64_t kTileRows = 16, kTileColumns = 8;

/// sums[16, 8] += left[16, depth] * right[depth, 8] of a warp: on tiles of scope Fragment, or on the registers of the lanes
/// that infer_fragment makes of them.
struct MatrixInstruction {
  std::string_view name;
  DType left, right, sum;
  int64_t depth;
  /// Elements in one of a lane's 32-bit registers.
  int64_t per_word() const { return depth / 8; }
};

/// sums[16, columns] += left[16, depth] * right[columns, depth]^T of each of four warps, whose left factors lie one behind
/// the other, and which have the same right one. Sums are pieces of 16 x 8, one behind the other. The factors are in shared
/// memory, as rows of kSwizzledRow bytes from a multiple of eight of these on, and swizzled. (PTX ISA, asynchronous
/// warpgroup level matrix multiply-accumulate.)
struct GroupMatrixInstruction {
  DType left, right, sum;
  int64_t columns;
};
inline constexpr int64_t kGroupWarps = 4, kGroupRows = kGroupWarps * kTileRows, kGroupDepthBytes = 32,
                         kSwizzledRow = 128;
/// Where element `column` of row `row` lies in its row: chunks of 16 bytes change places, so that those of one column are in
/// different banks. `column` is a multiple of `aligned`.
Expr swizzled(const Expr& row, const Expr& column, DType type, int64_t aligned = 1);

// --- what an instruction does
/// The statements that it stands for; null: nothing. `n`: the number in its name, if it has one.
struct Assignments {
  Stmt (*made)(const IntrinCall& call, int64_t n);
  int64_t n = 0;
};
/// Every thread of a group, whose size is the scalar, gets the result of all of them.
struct ThreadReduction {
  Op op;
};
/// Every lane of a warp gets the value that the lane gives which this form makes of its own number and the second scalar.
enum class ShuffleForm : uint8_t { Xor, Up, Down, Index };
struct WarpShuffle {
  ShuffleForm form;
};
/// Every lane passes the address of a row of 16 bytes, and gets of each matrix its word.
struct MatrixLoad {
  int count;
  bool transposed;
};
/// On all elements of a tile of a warp. Of a tile with a single column every lane has its own, with a number for each of its
/// rows: what it knows of a row of other tiles.
enum class TileForm : uint8_t { Fill, Load, LoadTransposed, Join, Round, Split };
struct TileOperation {
  TileForm form;
};
using Meaning = std::variant<Assignments, ThreadReduction, WarpShuffle, MatrixLoad, MatrixInstruction, TileOperation,
                             GroupMatrixInstruction>;

// --- operands
/// What lies where an operand begins. Memory: elements one behind the other; Registers: the last axis of a thread's array;
/// Scalar: one register; Vector: VL lanes along the last axis; Rows: such vectors, along the last two; Tile: of a warp.
enum class OperandForm : uint8_t { Memory, Registers, Scalar, Vector, Rows, Tile };
enum class OperandUse : uint8_t { Read, Written, Both };
struct InstructionOperand {
  std::string_view name;
  OperandForm form;
  OperandUse use;
  std::vector<DType> types = {};  // one of these; empty: any
  int64_t reach = 16;             // bytes behind its beginning that one thread may touch
  int offset = -1;                // the scalar that its beginning is shifted by; -1: none
  int64_t rows = 1;               // so many, along the axis before the last, each of that reach
};
/// An index or a size, or, if `is_data`, a value of a tensor's type or a condition.
struct InstructionScalar {
  std::string_view name;
  bool is_data = false;
  int64_t least = 0, most = INT64_MAX;  // of a size
};

/// Who makes it together: none of them may be elsewhere. Group: as many threads as its last scalar says.
enum class Collective : uint8_t { No, Warp, Group };
/// Copies that arrive later: those of a thread since its last Commit are a group, and Wait waits for groups.
enum class AsyncCopy : uint8_t { No, Copy, Commit, Wait };
/// The header of emitted C that has it.
enum class SupportText : uint8_t { None, IntegerVectors, FewBits, Transposes, ByteTiles };

/// Text with holes: {a} an operand or a scalar, {a.type} its type, {a.bytes} the size of an element. Empty: tc_NAME(...)
/// with all of them in order. `where_last`: only where the last scalar is that number; the first that fits is taken.
struct Spelling {
  std::string_view text;
  std::optional<int64_t> where_last = {};
};

struct Instruction {
  std::string name;  // Intrin::name
  std::vector<InstructionOperand> operands = {};
  std::vector<InstructionScalar> scalars = {};
  Meaning meaning;
  Collective collective = Collective::No;
  AsyncCopy async = AsyncCopy::No;
  std::vector<Spelling> c = {}, cuda = {};  // empty: not on that target
  SupportText support = SupportText::None;
  bool byte_products = false;  // some processors have them beyond their level of x86-64, or of ARM
  int optional_scalars = 0;    // so many of the last ones may be missing
  bool repeats_last = false;   // its last operand may stand several times
  int sm = 75;                 // CUDA: machines from here on have it; older ones do the same with other instructions
  bool is_wgmma = false;       // CUDA: only machines with products of warp groups have it
  double cycles = 0;           // CUDA: of a multiprocessor, for one warp; 0: no cost model counts it

  /// Its operand `i`, however often the last one stands.
  const InstructionOperand& operand(size_t i) const;
};

/// All rows, in the order of the table.
const std::vector<Instruction>& instructions();
/// Null if there is none of that name.
const Instruction* find_instruction(std::string_view name);
/// Throws InternalError if the table has no such row.
const Instruction& instruction(std::string_view name);
inline const Instruction& instruction(const Intrin& k) { return instruction(k.name); }

/// Does it read, or write, operand `i`?
bool reads_operand(const Intrin& k, size_t i);
bool writes_operand(const Intrin& k, size_t i);

/// What an instruction does, if that is of this kind; else null.
template <class T>
const T* meaning_as(const Intrin& k) {
  return std::get_if<T>(&instruction(k).meaning);
}
/// The matrix instruction for factors of these types; f32 is rounded to tf32. Null if there is none.
const MatrixInstruction* matrix_instruction(DType left, DType right);
/// The name of the one of a warp group, for so many columns; empty if there is none.
std::string group_matrix_instruction(DType left, DType right, int64_t columns);

}  // namespace tc
