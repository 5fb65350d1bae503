// The matrix instructions of a warp: sums[16, 8] += left[16, depth] * right[depth, 8], on tiles of scope Fragment, or
// on the registers of the lanes that infer_fragment makes of them. With them come, as Intrins,
//   fill_fragment(t, value)                every element of tile t
//   load_fragment(t, m[..., r, c])         t[i, j] = m[..., r + i, c + j]; load_fragment_trans: m[..., r + j, c + i]
//   join_fragments(t, s0, s1, ..)          t[i, j] = s0[i, j], and behind its columns those of s1: sums become a factor
//   round_fragment_tf32(t)                 to the precision of mma_tf32_k8, which would cut off the rest
//   split_fragment_tf32(rest, t)           rounds t so, and keeps in rest, rounded, what that took away
// All lanes of a warp make them together. Of a tile with a single column every lane has its own, with a number for each
// of its rows: what it knows of a row of other tiles.
#pragma once
#include "ir/loop/cuda_limits.h"
#include "ir/loop/ir.h"

namespace tc {

inline constexpr int64_t kTileRows = 16, kTileColumns = 8;

struct MatrixInstruction {
  std::string_view name;
  DType left, right, sum;
  int64_t depth;
  /// Elements in one of a lane's 32-bit registers.
  int64_t per_word() const { return depth / 8; }
};

/// Null if there is none of that name.
const MatrixInstruction* find_matrix_instruction(std::string_view name);
/// That for factors of these types; f32 is rounded to tf32. Null if there is none.
const MatrixInstruction* matrix_instruction(DType left, DType right);

}  // namespace tc
