// Sums of products on a GPU: y[batch, m, n] = epilogue(sum(k) p[batch, m, k] * q[batch, k, n]). Matrix products,
// convolutions (their rows are pixels, the sum runs over kernel and channels), transposed operands, groups.
#pragma once
#include "ir/loop/build.h"
#include "templates/cuda/flat_point.h"
#include "templates/cuda/template.h"

namespace tc {

/// One of the factors.
struct Factor {
  Expr value;           // over batch, rows or columns, and the sum's axes
  bool packed = false;  // known at compile time: `value` is unused
  Expr shaped;          // packed: the factor over the operands themselves, and over these axes, which are not merged
  std::vector<Axis> batch, d, k;
  std::string name;         // of the operand
  DType type = DType::F32;  // the narrowest that holds its values: that of the operand, where it is only widened
  Expr zero;                // what was taken from the value and is missing in the sum (zero_points.h); null: nothing
};

/// The axes of a sum of products by which factor walks them, each list row-major; merged as far as memory allows.
struct CudaContraction {
  Canonical c;  // value is unused after matching
  Factor p, q;
  std::vector<Axis> batch, m, n, k;
  DType sum = DType::F32;  // or I32

  int64_t batches() const { return points(batch); }
  int64_t rows() const { return points(m); }
  int64_t columns() const { return points(n); }
  int64_t depth() const { return points(k); }
};

inline bool is_zero(const Expr& e) { return as_const_number(e).value_or(1) == 0; }

std::optional<CudaContraction> match_cuda_contraction(const CudaArgs& a);

/// What a block computes: rows x columns of the result, `depth` of the sum at a time; a thread has tm x tn of it, or, on
/// tensor cores, a warp or a group of four.
struct CudaTile {
  int64_t rows, columns, depth, tm, tn;
  int64_t together = 1;  // threads that have a part
  bool on_tensor_cores() const { return together > 1; }
  bool in_groups() const { return together > kWarp; }
  int64_t threads() const { return rows / tm * (columns / tn) * together; }
};
struct CudaPlan {
  CudaTile tile;
  int64_t splits = 1;                              // blocks that share the sum of one tile
  int64_t k_groups = 1;                            // split-K groups: threads of a block that share its part of the sum
  int64_t steps = 1;                               // tiles of depth per group
  int64_t stages = 2;                              // tiles in shared memory
  DType p_type = DType::F32, q_type = DType::F32;  // of the elements of the tiles
  int64_t products = 1;                            // 3: of tf32, of a factor's rounded value and of what that leaves
  int64_t threads() const { return tile.threads() * k_groups; }
  /// Steps between the copies of a tile and its products: those of groups may still read a stage in the step behind theirs.
  int64_t ahead() const { return stages - (tile.in_groups() ? 2 : 1); }
};
CudaPlan plan_cuda_contraction(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o,
                               const PlanEntry& plan);

/// The factor's values of one step of the sum, on their way to shared memory.
struct TileCopy {
  bool is_packed = false;
  Expr value;              // over batch, d and k; unused if packed
  Buffer packed;           // [batch][tile][step], and there as `shared` without its padding; flat
  Expr packed_tile;        // which tile of it, batch included
  std::vector<Axis> d, k;  // rows or columns; summed
  VarMap batch;
  std::string d_name;  // of an index along d
  Expr d_begin;        // the block's first
  int64_t d_tile = 0, k_tile = 0;
  int64_t k_steps = 0;      // of the whole sum
  bool k_inner = false;     // shared[stage][d][k], else shared[stage][k][d]
  bool swizzled = false;    // chunks of shared[stage][d] change places (ir/loop/instruction.h)
  DType type = DType::F32;  // of shared; f16 and bf16 may round the value
  Buffer shared;
  Buffer registers;  // where values wait that no copy can bring; null: see through_registers
  Var thread;
  int64_t threads = 0;
};
/// Elements of the source that are read at once along the inner axis of the tile: 16 bytes, or 8 or 4 of narrow types.
int64_t copy_width(const TileCopy& t);
/// Does the factor come to tensor cores best as rows along the sum? Elements of two bytes can also lie along rows or columns.
bool lies_along_k(TileCopy t);
/// A read that may be left out: where `inside` does not hold, the value is `otherwise`. Widening is seen through.
struct Read {
  const Load* load = nullptr;  // null: the value is no plain read
  Expr inside;                 // null: always
  Expr otherwise;              // null: 0; only for integers, of which 0 times any is 0
};
Read read_of(const Expr& e);
/// Is the value computed or converted on its way? Then copy_tile reads it into `registers`, and put_tile stores these.
bool through_registers(const TileCopy& t);
Buffer registers_of(const TileCopy& t, const std::string& name);
/// Issues the copies of step `step` into shared[stage].
Stmt copy_tile(const TileCopy& t, const Expr& stage, const Expr& step);
/// Null if nothing waits in registers.
Stmt put_tile(const TileCopy& t, const Expr& stage);

/// A factor in the order of t.packed, padded with zeros to whole tiles.
Buffer pack_factor(const Canonical& c, const Factor& f, const TileCopy& t, Scheduled& s);

}  // namespace tc
