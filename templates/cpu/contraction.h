// Sums of products: y[outer, rows, n] = epilogue(sum(k) p[outer, rows, k] * q[outer, k, n]).
#pragma once
#include "templates/cpu/template.h"
#include "templates/cpu/tile.h"
#include "templates/points.h"

namespace tc {

/// Steps along an axis of a sum that a row has: those at which begin <= row_step * row + k_step * k < end. Behind them is the border of
/// a convolution, which nobody has stored.
struct TapRange {
  Var row, k;
  int64_t row_step = 0, k_step = 0, begin = 0, end = 0;
  /// Of the rows: the first that has step k, and the one behind the last.
  int64_t first_row(int64_t k) const { return rows_below(begin, k); }
  int64_t behind_row(int64_t k) const { return rows_below(end, k); }

 private:
  int64_t rows_below(int64_t n, int64_t k) const { return ceil_div(std::max<int64_t>(0, n - k * k_step), row_step); }
};

/// The axes of a sum of products, by which factor walks them; extents are merged as far as memory allows.
struct Contraction {
  Canonical c;  // value is unused after matching
  Buffer p;     // left factor: one load, a scalar in the tile
  Offset p_at;
  std::vector<Axis> outer;  // in q, maybe in p: batches, groups
  std::vector<Axis> rows;   // in p only; the last one is tiled
  Axis n;                   // in q only, unit stride in the result: the vector axis
  std::vector<Axis> k;      // summed, in p's memory order
  DType type = DType::F32;  // of the factors: f32 or f64; not of bytes
  Expr start;               // joins first: over n and outer (a bias, or zero)
  // Where the run chooses how many there are, over no axis: terms of a sum, of the only k, and columns that anybody reads; null: all
  Expr k_end, n_end;
  std::vector<TapRange>
      ranges;  // of axes k, by rows; where they are by the last, which is tiled, it is not the only one
  // q, repacked at compile time, repacked per outer point at run time, in panels [panel][k][column] that somebody else
  // has filled (copy_to_panels), or read as it lies (unit stride along n)
  enum class Right { Packed, Repacked, Panels, Direct } right = Right::Direct;
  Buffer q;  // the buffer, unless Packed
  Offset q_at;
  // Packed: the definition before axes were merged
  Expr q_value;  // of halves, if the factor is one widened
  std::vector<Axis> q_outer, q_k;
  // Products of bytes, summed in i32, four steps of k at a time (dot4): q is Packed as i8; p is u8 or i8, k.back()
  // walks it element by element.
  bool bytes = false;
  Expr p_zero;  // i32, taken away from p; null: 0
  Expr q_zero;  // i32 over n and outer: what is left to take away from the packed q; null: 0
};

/// Null if no axis of at least 4 has unit stride in the result and in one factor only, or if an index is not affine.
/// `typed_constants`: the factor that is Packed may be computed from constants of other types.
/// `in_ranges`: with ranges, too.
std::optional<Contraction> match_contraction(const TemplateArgs& a, bool typed_constants = false,
                                             bool in_ranges = false);
/// The same for f64.
std::optional<Contraction> match_double_contraction(const TemplateArgs& a);
/// The same for bytes: sum(k) (i32(p) - p_zero) * (q - q_zero).
std::optional<Contraction> match_byte_contraction(const TemplateArgs& a);
/// Takes the zero point of p, and what dot4 adds to signed bytes, away from what the sums start with.
/// `signed_as_unsigned`: what multiplies them takes 128 more for signed ones.
void fold_zero_points(Contraction& m, Scheduled& s, bool signed_as_unsigned = true);

/// Do steps depend on the row that is tiled? Tiles have rows with the same steps then, and fetch nothing ahead.
bool has_ranges_of_tiles(const Contraction& m);

/// A copy of a Repacked right factor in which neighbours along n are neighbours and windows overlap (shared_rows.cc).
struct SharedRows {
  Buffer buffer;
  Offset at;  // of an element of the factor
  Stmt copy;
};
bool has_shared_rows(const Contraction& m);
/// The copy of one outer point `at`. Vectors of `columns` columns may be read whole.
SharedRows shared_rows(const Contraction& m, int64_t columns, const std::vector<std::pair<Var, Expr>>& at);

/// Do the terms of a sum lie side by side in a Repacked right factor, so that tiles of it can be turned in registers (turned_panel.cc)?
bool can_turn(const Contraction& m);
/// Copies panel `panel`, of as many columns, at the outer axes' point `at`, to to[begin ..]: points(k) * columns floats. Columns that do
/// not exist are zero.
Stmt turned_panel(const Contraction& m, int64_t columns, std::vector<std::pair<Var, Expr>> at, const Expr& panel,
                  const Buffer& to, const Expr& begin);

struct ContractionPlan;
/// Does a copy of each panel of a Direct right factor pay? Measured on Zen 4, 512 terms, 1000 columns: 0.53 of the time for 64 rows; 128
/// rows, 768 terms, 3072 columns: 0.85; 128 rows, 3072 terms, 768 columns: 1.07.
bool should_copy(const Contraction& m, const ContractionPlan& plan);
/// The same of such a factor, to the begin of `to`.
Stmt copied_panel(const Contraction& m, int64_t columns, std::vector<std::pair<Var, Expr>> at, const Expr& panel,
                  const Buffer& to);

/// The loops. `tile` must fit; `row_blocks` cuts the rows of a panel into that many chunks.
struct ContractionPlan {
  Tile tile;
  int64_t panels = 1;           // ceil(n / columns)
  int64_t row_blocks = 1;       // chunks per panel
  bool panels_inside = false;   // of the loop over row blocks; see row_blocks.h
  bool images_outside = false;  // of both
  int64_t unroll_k = 1;         // > 1: rows is empty; so many partial sums
  bool fetch_ahead = false;     // rows is empty: the panel is fetched ahead of the sum
  int64_t prefetch = 0;         // floats of the next panel that a k step fetches ahead; 0: none
  bool parallel = false;
  int64_t tile_step = 0;   // of products of tiles of bytes (contraction_tiles.cc): bytes of a sum at a time; 0: vectors
  bool row_pairs = false;  // of these: two short rows of pixels together
};
/// The bytes of a sum that tiles take at a time; 0: the processor has none, or they do not suit.
int64_t tile_step(const Contraction& m, const CpuModel& cpu);
/// Whether rows of pixels are so short that two of them are multiplied together.
bool has_row_pairs(const Contraction& m);
/// How many rows, of `rows`, tiles have, where a sum takes so many steps.
int64_t choose_tile_rows(int64_t rows, int64_t steps);
/// Adds the packed right factor to s.prologue and s.views.
Stmt contraction_loops(const Contraction& m, const ContractionPlan& plan, Scheduled& s);
/// Copies the right factor, Repacked or Direct, into the panels that the plan wants: panels * points(k) * columns
/// floats, columns that do not exist being zero. m.outer is empty.
Stmt copy_to_panels(const Contraction& m, const ContractionPlan& plan, const Buffer& panels);
ContractionPlan plan_contraction(const Contraction& m, const CpuModel& cpu, const ScheduleOptions& o);
/// Of a product inside of another template's loops, which share it among threads: only the tile is decided on.
ContractionPlan plan_part(const Contraction& m, const CpuModel& cpu, const ScheduleOptions& o);

}  // namespace tc
