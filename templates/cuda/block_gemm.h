// What every kernel has in common that computes a sum of products by tiles of the result: the launch, the pipeline of
// copies, the results, and sums that several blocks share. How a block multiplies is the derived class's.
#pragma once
#include <memory>

#include "templates/cuda/contraction.h"

namespace tc {

class BlockGemm {
 public:
  BlockGemm(const CudaContraction& m, const CudaPlan& plan);
  virtual ~BlockGemm() = default;
  BlockGemm(const BlockGemm&) = delete;
  BlockGemm& operator=(const BlockGemm&) = delete;

  /// The launches. Adds packed factors to `s`.
  Stmt build(Scheduled& s);

 protected:
  /// Neighbouring results of one row in one thread: the flat row and the first column lie where `row` and `column` say;
  /// `sum` gives the accumulator of the j'th.
  struct Run {
    const FlatPoint& row;
    Expr column;
    int64_t count;
    std::function<Expr(const Expr& j)> sum;
  };
  using RunBody = std::function<Stmt(const Run& run)>;

  /// `body` for every accumulator of a thread: its index, and a slot that is its own among all of the block.
  using SumBody = std::function<Stmt(const Exprs& at, const Exprs& slot)>;

  /// How a tile lies in shared memory: sets shared and k_inner of `c`, which is complete otherwise.
  virtual void lay_out_tile(TileCopy& c, const std::string& name) const = 0;
  /// The names of a thread's indices in the block, around its code.
  virtual Stmt with_thread_indices(Stmt code) const = 0;
  /// Zeros in the accumulators.
  virtual Stmt clear() const = 0;
  /// acc += the product of the tiles of `stage`.
  virtual Stmt multiply(const TileCopy& p, const TileCopy& q, const Expr& stage) const = 0;
  /// Are products only begun, and go on by themselves? Then wait_for_products() waits for all but those of the last step, and
  /// end_products() for all.
  virtual bool begins_products() const { return false; }
  virtual Stmt wait_for_products() const { return {}; }
  virtual Stmt end_products() const { return {}; }
  /// `body` for all runs of a thread; rows that are none are left out.
  virtual Stmt over_runs(const RunBody& body) const = 0;
  virtual Stmt over_sums(const SumBody& body) const = 0;
  /// Of an array that has all these slots.
  virtual Shape sums_shape() const { return {Dim(t_.rows * t_.columns)}; }

  Stmt if_row(const FlatPoint& row, const Stmt& s) const;

  const CudaContraction& m_;
  const CudaPlan plan_;
  const CudaTile t_;
  const Var block_m_ = make_var("block_m"), block_n_ = make_var("block_n"), thread_ = make_var("thread"),
            k_group_ = make_var("member");
  Buffer acc_;  // set by the derived class

 private:
  TileCopy tile_of(const Factor& f, DType type, const std::vector<Axis>& axes, const std::string& d_name,
                   const Var& block, int64_t size, int64_t tiles, Scheduled& s) const;
  Stmt sum(const TileCopy& p, const TileCopy& q) const;
  Stmt join_k_groups(const Buffer& sums, const Stmt& result) const;
  Stmt store_result() const;
  Stmt store_partial() const;
  Stmt add_parts() const;
  Expr partial_index(const Expr& split, const Expr& batch, const Expr& row, const Expr& column) const;
  Expr split() const;

  Var group_;
  std::unique_ptr<FlatPoint> z_;
  Buffer partial_;
};

/// On tensor cores (tensor_cores.cc), of warps or of groups of them, as the tile says.
std::unique_ptr<BlockGemm> tensor_core_gemm(const CudaContraction& m, const CudaPlan& plan);

}  // namespace tc
