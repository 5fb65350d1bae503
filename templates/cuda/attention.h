// Attention on a GPU: y[batch, row, value] = result(sum(key) softmax(score) v), with score[batch, row, key] =
// f(sum(depth) q k). Multi-head, grouped-query and cross attention, whatever the layout of heads: the axes are
// classified by what the operands read.
#pragma once
#include "templates/cuda/contraction.h"

namespace tc {

struct CudaAttention {
  Canonical c;              // inputs, views and out of the whole function; the rest is unused
  std::vector<Axis> batch;  // what k or v walk beside keys and their own columns: batches, groups of heads
  std::vector<Axis> rows;   // what only q walks: queries, the heads of a group
  Axis keys;
  std::vector<Axis> depth, values;  // summed in a score; columns of v and of the result
  DType type = DType::F32;          // in which q, k and v are stored: f32, or narrower
  Expr q, k, v;                     // over batch, rows, depth; batch, keys, depth; batch, keys, values
  Expr score, result;               // over batch, rows, keys; batch, rows, values: read `acc` for the sum
  Buffer score_acc, result_acc;
  Expr out_index;             // over batch, rows, values
  bool zero_if_none = false;  // rows without any key (all scores -inf) give 0; else they give NaN
  bool zero_if_nan = false;   // and so do rows with a score that is NaN or inf
};

/// Null unless the function's four reductions are those of attention: a sum of products, the largest and the sum of the
/// exponentials of a softmax over its last axis, and a sum of products of that with a third factor.
std::optional<CudaAttention> match_cuda_attention(const CudaArgs& a);

/// Keys that the mask may leave to some row: from `begin` up to, but not including, `end`. Null: nothing is known. They
/// may lie outside of the tensor, and `end` before `begin` where there are none.
struct KeyRange {
  Expr begin, end;
};
/// Of `rows` neighbouring rows from the flat number `first_row` on; `batch`: of the point.
KeyRange allowed_keys(const CudaAttention& m, const VarMap& batch, const Expr& first_row, int64_t rows);

/// What a block computes: the results of `rows` rows, from `keys` keys at a time. A thread has tm rows; tx neighbours
/// share these, each with its part of the scores and of the results. On tensor cores a warp has 16 rows.
struct CudaAttentionPlan {
  int64_t rows = 0, keys = 0, tm = 0, tx = 0;
  int64_t depth = 0, width = 0;  // of the tiles: sizes rounded up
  int64_t splits = 1;            // blocks that share the keys of one row
  int64_t steps = 1;             // tiles of keys per block
  bool warp = false;             // on tensor cores
  DType type = DType::F32;       // of the elements of the tiles
  bool converts = false;         // to that type, from what is stored
  int64_t threads() const { return rows / tm * tx; }
};
/// Null if no tile fits into shared memory and registers.
std::optional<CudaAttentionPlan> plan_cuda_attention(const CudaAttention& m, const CudaModel& gpu,
                                                     const ScheduleOptions& o, const PlanEntry& plan);

/// Whether one kernel takes the whole function. It always pays then: the matrix of scores is never stored, and three
/// launches become one.
bool cuda_attention_pays(const CudaArgs& a);

}  // namespace tc
