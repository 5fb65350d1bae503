// Sums of products on a GPU: y[batch, m, n] = epilogue(sum(k) p[batch, m, k] * q[batch, k, n]). Matrix products,
// convolutions (their rows are pixels, the sum runs over kernel and channels), transposed operands, groups.
#pragma once
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cuda/template.h"

namespace tc {

/// One of the factors.
struct Factor {
  Expr value;           // over batch, rows or columns, and the sum's axes
  bool packed = false;  // known at compile time: `value` is unused
  Expr shaped;          // packed: the factor over the operands themselves, and over these axes, which are not merged
  std::vector<Axis> batch, d, k;
  std::string name;  // of the operand
};

/// The axes of a sum of products by which factor walks them, each list row-major; merged as far as memory allows.
struct CudaContraction {
  Canonical c;  // value is unused after matching
  Factor p, q;
  std::vector<Axis> batch, m, n, k;

  int64_t batches() const { return points(batch); }
  int64_t rows() const { return points(m); }
  int64_t columns() const { return points(n); }
  int64_t depth() const { return points(k); }
};

inline bool is_zero(const Expr& e) { return as_const_number(e).value_or(1) == 0; }

std::optional<CudaContraction> match_cuda_contraction(const CudaArgs& a);

/// What a block computes: rows x columns of the result, `depth` of the sum at a time; a thread has tm x tn of it.
struct CudaTile {
  int64_t rows, columns, depth, tm, tn;
  int64_t threads() const { return rows / tm * (columns / tn); }
};
struct CudaPlan {
  CudaTile tile;
  int64_t splits = 1;  // blocks that share the sum of one tile
  int64_t steps = 1;   // tiles of depth per split
};
CudaPlan plan_cuda_contraction(const CudaContraction& m, const CudaModel& gpu, const ScheduleOptions& o);

/// A point of `axes` given by one number: a variable per axis.
class FlatPoint {
 public:
  /// `name`: the number's, where there are several axes.
  FlatPoint(const std::vector<Axis>& axes, const Expr& flat, const std::string& name);
  /// The number itself, inside of wrap.
  Expr flat;
  /// The axes' variables as expressions, inside of wrap.
  VarMap at;
  Stmt wrap(Stmt body) const;

 private:
  std::vector<std::pair<Var, Expr>> lets_;
};

/// The factor's values of one step of the sum, on their way to shared memory.
struct TileCopy {
  Expr value;              // over batch, d and k; null: packed
  Buffer packed;           // [batch][tile][step][depth][d in tile], flat
  Expr packed_tile;        // which tile of it, batch included
  std::vector<Axis> d, k;  // rows or columns; summed
  VarMap batch;
  std::string d_name;  // of a place along d
  Expr d_begin;        // the block's first
  int64_t d_tile = 0, k_tile = 0;
  int64_t k_steps = 0;  // of the whole sum
  Buffer shared;        // [stage][depth][d]
  Var thread;
  int64_t threads = 0;
};
/// Issues the copies of step `step` into shared[stage].
Stmt copy_tile(const TileCopy& t, const Expr& stage, const Expr& step);
/// May rows of four neighbours along `d` be copied at once?
bool copies_vectors(const TileCopy& t);

/// A factor in the order of TileCopy::packed, padded with zeros to whole tiles of d_tile by k_tile, `steps` of these.
Buffer pack_factor(const Canonical& c, const Factor& f, int64_t d_tile, int64_t k_tile, int64_t steps, Scheduled& s);

}  // namespace tc
