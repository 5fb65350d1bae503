// The loops of a sum of products: contraction.cc (packing, chunks, rows), contraction_tile.cc, contraction_bytes.cc,
// contraction_tiles.cc.
#pragma once
#include <functional>
#include <map>

#include "templates/cpu/contraction.h"
#include "templates/cpu/lanes.h"

namespace tc {

inline constexpr int64_t kQuad = 4;  // bytes that dot4 takes at a time
/// Steps of dot4 along the last axis of m.k.
int64_t quads_per_run(const Contraction& m);

class ContractionBuilder {
 public:
  ContractionBuilder(const Contraction& m, const ContractionPlan& plan);
  Stmt build(Scheduled& s);

 private:
  using Point = std::vector<std::pair<Var, Expr>>;

  void pack(Scheduled& s);
  void pack_quads(Scheduled& s);
  Stmt chunks();
  Stmt in_shared_rows();
  Stmt repacked();
  Stmt panel_by_panel();
  Stmt all_panels();
  Stmt panel_rows(const Expr& panel, const Var& chunk);
  Stmt with_prefetch(const Expr& index, const std::function<Stmt()>& make);
  Stmt tile_rows();
  Stmt tiles_in_ranges(const Axis& tiled);
  Stmt in_strips(const std::function<Stmt()>& make);
  Stmt tile(int64_t mr, const Expr& row);
  Stmt tile_loops(int64_t height, const std::function<Stmt(const Expr& i, const Var& v)>& body);
  Stmt start(const Buffer& acc, int64_t height, bool has_rows);
  Expr along_sum(Point& at, std::vector<Var>& ks) const;
  std::pair<Expr, Expr> steps_of(const Axis& k) const;
  std::vector<std::pair<Var, Expr>> name_row_steps();
  Stmt sum(const Buffer& acc, int64_t height, const Expr& row);
  Stmt sum_of_quads(const Buffer& acc, int64_t height, const Expr& row);
  Stmt with_row_sums(int64_t height, const std::function<Stmt()>& tile);
  Expr less_row_sum(const Expr& sum, const Expr& i, const LanePoint& p) const;
  size_t tiled_axis() const;
  Stmt with_tiles(int64_t rows, const Stmt& body) const;
  Stmt byte_tile(int64_t height, const Expr& row);
  Stmt finish_row(const Buffer& sums, const Expr& i, const Point& rows);
  Stmt finish_rows(const Buffer& sums, int64_t height, const Expr& row);
  Stmt finish_pair(const Buffer& sums, int64_t height, const Expr& row);
  Stmt join(const Buffer& acc);
  Stmt finish(const Buffer& acc, int64_t mr, const Expr& row);

  Expr column(const Var& v) const;
  Exprs sums_at(const Expr& i, const Var& v) const;
  int64_t used_columns() const;
  Expr vectors_in_strip() const;
  Expr lane_base(const Var& v) const;
  Expr lane_count(const Var& v) const;
  Expr left_index(const Point& at, const Expr& k_extra) const;
  Expr right_base() const;
  Expr right(const Expr& k, const Point& at, const Expr& k_extra, const Var& v);

  Contraction m_;               // its right factor may become a copy
  bool whole_vectors_ = false;  // of the right factor can be read, in the last panel, too
  const ContractionPlan& plan_;
  const int64_t columns_;
  int64_t steps_ = 1;  // of a sum: products, or quads of bytes
  Buffer packed_;
  bool one_panel_ = false;  // at a time is packed
  Buffer row_sums_, ones_;  // where a zero point of the right factor is left
  Var block_;               // row block; null: one
  std::map<const VarDef*, std::pair<Expr, Expr>>
      row_steps_;           // of axes of the sum, named around the tiles; looked up only
  int64_t ranged_row_ = 0;  // of the tiled axis: one of those that the tile has, all of which have the same steps
  Point at_;                // outer axes and row loops around the tile
  Expr panel_, next_panel_, prefetch_;
  Expr strip_;  // of the panel; null: the panel is one
};

}  // namespace tc
