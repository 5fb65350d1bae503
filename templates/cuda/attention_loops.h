// What every attention kernel has in common: the launch, the walk over tiles of keys, the running softmax, the results,
// and keys that several blocks share. How scores and results are multiplied, and which of them a thread has, is the
// derived class's.
#pragma once
#include <memory>

#include "templates/cuda/attention.h"

namespace tc {

class AttentionLoops {
 public:
  AttentionLoops(const CudaAttention& m, const CudaAttentionPlan& plan);
  virtual ~AttentionLoops() = default;
  AttentionLoops(const AttentionLoops&) = delete;
  AttentionLoops& operator=(const AttentionLoops&) = delete;

  /// The launches.
  Stmt build();
  /// Does the mask say which tiles of keys a block need not walk?
  bool skips_keys() const { return bool(allowed_.begin) || bool(allowed_.end); }

 protected:
  /// `at`: the index of a score of the thread in s_; `key`: its index in the tile.
  using ScoreBody = std::function<Stmt(const Exprs& at, const Expr& key)>;
  /// Neighbouring results of one row: the first column, how many, and the accumulator of the e'th.
  struct Run {
    Expr column;
    int64_t count;
    std::function<Exprs(const Expr& e)> at;
  };
  using RunBody = std::function<Stmt(const Run& run)>;
  using RowBody = std::function<Stmt(const Expr& row)>;

  /// Sets shared and type of the three tiles.
  virtual void lay_out_tiles(TileCopy& q, TileCopy& k, TileCopy& v) const = 0;
  /// The names of a thread's indices in the block, around its code.
  virtual Stmt with_thread_indices(Stmt code) const = 0;
  /// Zeros all over acc_ or s_.
  virtual Stmt zeros(const Buffer& b) const = 0;
  /// `body` for every row that the thread has, or has a part of; it gets what the following functions call row i.
  virtual Stmt over_rows(const RowBody& body) const = 0;
  virtual Expr row_in_tile(const Expr& i) const = 0;
  /// The element of row_max_ and row_sum_.
  virtual Exprs row_at(const Expr& i) const = 0;
  /// `body` for all scores, or for the runs of results, that the thread has of row i.
  virtual Stmt over_scores(const Expr& i, const ScoreBody& body) const = 0;
  virtual Stmt over_runs(const Expr& i, const RunBody& body) const = 0;
  /// Null, or where others read the weight that the thread has in s_[at].
  virtual Stmt keep_weight(const Expr& i, const Exprs& at, const Expr& key) const = 0;
  /// s_ += q k of the tiles.
  virtual Stmt dot_products() const = 0;
  /// acc_ += weights times v_.
  virtual Stmt add_values() const = 0;
  /// `s`, made by one of the threads that have a row.
  virtual Stmt by_one(const Stmt& s) const = 0;

  TileCopy tile(const Expr& value, const std::vector<Axis>& d, const std::string& d_name, int64_t d_tile,
                const std::vector<Axis>& k, int64_t k_tile) const;

  const CudaAttention& m_;
  const CudaAttentionPlan p_;
  const Var block_ = make_var("block"), group_ = make_var("group"), part_ = make_var("part"),
            thread_ = make_var("thread");
  const FlatPoint z_;
  TileCopy q_, k_, v_;
  Buffer acc_, s_, row_max_, row_sum_;  // set by the derived class
  std::vector<Buffer> exchange_;        // shared memory beside the tiles

 private:
  Expr key_tile(const Expr& step) const;
  Stmt with_bounds(Stmt code) const;
  TileCopy keys_of(const Expr& step) const;
  FlatPoint row_of(const Expr& i) const;
  Stmt walk_keys() const;
  Stmt finish_score(const Exprs& element, const Expr& key_in_tile, const FlatPoint& row, const Expr& step) const;
  Stmt softmax(const Expr& step) const;
  Expr inverse(const Expr& sum) const;
  Expr weighted(const Expr& sum, const Expr& scale) const;
  Stmt results() const;
  Stmt over_columns(const Expr& i, int64_t last,
                    const std::function<Stmt(const FlatPoint& n, const Expr& e, const Exprs& at)>& one) const;
  Stmt store_result(const Expr& i, const FlatPoint& row, const Expr& scale) const;
  Expr partial_row(const Expr& part, const Expr& group, const Expr& row) const;
  Stmt store_partial(const Expr& i, const FlatPoint& row, const Buffer& total) const;
  Stmt join_parts() const;

  KeyRange allowed_;  // null: the block takes all of its tiles
  const Var first_tile_ = make_var("first_tile"), end_tile_ = make_var("end_tile");
  Buffer partial_, partial_max_, partial_sum_;
};

/// On CUDA cores (attention.cc) and on tensor cores (attention_tensor_cores.cc).
std::unique_ptr<AttentionLoops> simt_attention(const CudaAttention& m, const CudaAttentionPlan& plan);
std::unique_ptr<AttentionLoops> tensor_core_attention(const CudaAttention& m, const CudaAttentionPlan& plan);

/// Arrays of a thread, and loops over them.
inline Buffer registers(const std::string& name, const Dims& dims, DType t = DType::F32) {
  return make_buffer(name, t, to_shape(dims), Scope::Register);
}
inline Stmt each(const Var& v, int64_t n, const Stmt& body) { return loop(v, n, body, ForKind::Unroll); }

}  // namespace tc
