// Sums of products of bytes on machines that multiply tiles of them: what differs from quads in vectors (contraction_bytes.cc).
//
//   tiles of MR rows, steps of K bytes
//   for rows, MR at a time:
//     sums[MR][32] = p[rows, all k] . q[all k, panel]      multiply_byte_tiles: the registers are the instruction's own
//     y[row i, v] = epilogue(start + sums[i][v])
//
// The left factor lies in two tiles, so that each tile of the right one is loaded for both: the halves of MR rows, or, where
// rows of pixels are short, two of them.
//
// The right factor is packed as for quads. A sum has one or two axes: runs of bytes that lie side by side, which a step divides.
// Signed bytes are multiplied as they are.
#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/visit.h"
#include "templates/cpu/contraction_builder.h"
#include "templates/cpu/lanes.h"
#include "templates/points.h"

namespace tc {
namespace {

constexpr int64_t kStepBytes = 64, kShortestStep = 16, kShortestSum = 32;
constexpr int64_t kTileRows = 16, kMostTileRows = 2 * kTileRows;
// Cycles: of a product of two tiles, around those of a block (results are stored, and read again), of other shapes.
constexpr double kProduct = 16, kBlock = 60, kOtherShapes = 300;

}  // namespace

int64_t tile_step(const Contraction& m, const CpuModel& cpu) {
  if (!cpu.byte_tiles || !m.bytes || bool(m.q_zero) || m.rows.empty() || m.k.size() > 2) return 0;
  const int64_t run = m.k.back().extent.value;
  if (m.rows.back().extent.value < 4 || m.n.extent.value < 8 || points(m.k) < kShortestSum) return 0;
  for (int64_t step = kStepBytes; step >= kShortestStep; step -= kQuad)
    if (run % step == 0) return step;
  return 0;
}

int64_t choose_tile_rows(int64_t rows, int64_t steps) {
  auto block = [&](int64_t n) { return n == 0 ? 0 : kBlock + double(ceil_div(n, kTileRows) * steps) * kProduct * 2; };
  int64_t best = std::min(rows, kMostTileRows);
  double least = 0;
  for (int64_t n = best; n >= 1; n--) {
    const int64_t whole = rows / n, rest = rows % n;
    const double cost = double(whole) * block(n) + block(rest) + (whole > 0 && rest != 0 ? kOtherShapes : 0.0);
    if (least != 0 && cost >= least) continue;
    least = cost;
    best = n;
  }
  return best;
}

bool has_row_pairs(const Contraction& m) {
  return m.rows.size() > 1 && m.rows.back().extent.value <= kTileRows && m.rows[m.rows.size() - 2].extent.value > 1;
}

namespace {

// Rows of the two tiles of the left factor.
struct TileRows {
  int64_t upper, lower;
};
TileRows tile_rows_of(int64_t height, const Contraction& m, bool pairs) {
  const int64_t row = m.rows.back().extent.value;
  if (pairs) return {row, height > 1 ? row : 0};
  return height > kTileRows ? TileRows{ceil_div(height, 2), height / 2} : TileRows{height, 0};
}

}  // namespace

// The axis of rows that is cut into tiles: of pairs the one around rows of pixels.
size_t ContractionBuilder::tiled_axis() const { return m_.rows.size() - (plan_.row_pairs ? 2 : 1); }

// From here on tiles have so many rows, or pairs so many rows of pixels.
Stmt ContractionBuilder::with_tiles(int64_t height, const Stmt& body) const {
  if (plan_.tile_step == 0 || !body) return body;
  const TileRows rows = tile_rows_of(height, m_, plan_.row_pairs);
  return seq({intrin("byte_tiles_begin", {}, {Expr(rows.upper), Expr(rows.lower), Expr(plan_.tile_step)}), body});
}

Stmt ContractionBuilder::byte_tile(int64_t height, const Expr& row) {
  const TileRows rows = tile_rows_of(height, m_, plan_.row_pairs);
  const Axis &tiled = m_.rows[tiled_axis()], &inner = m_.rows.back(), &run = m_.k[0];
  const int64_t stride = m_.p_at.of(inner.var);
  const Buffer sums = make_buffer("sums", DType::I32, {Dim((rows.upper + rows.lower) * columns_)}, Scope::Stack);
  Point first = at_;
  first.push_back({tiled.var, row});
  if (plan_.row_pairs) first.push_back({inner.var, Expr(0)});
  for (const Axis& a : m_.k) first.push_back({a.var, Expr(0)});
  const bool several = m_.k.size() > 1;
  const Expr below = plan_.row_pairs ? m_.p_at.of(tiled.var) : rows.upper * stride;
  const Stmt products = intrin(
      "multiply_byte_tiles", {{sums, {}}, {m_.p, {left_index(first, 0)}}, {packed_, {right_base()}}},
      {Expr(columns_), Expr(rows.upper), Expr(rows.lower), Expr(stride), below, several ? Expr(run.extent) : Expr(1),
       Expr(several ? m_.p_at.of(run.var) : 0), Expr(m_.k.back().extent), Expr(plan_.tile_step)});
  return alloc(sums,
               seq({products, plan_.row_pairs ? finish_pair(sums, height, row) : finish_rows(sums, height, row)}));
}

// What becomes of row i of the sums, at a point of the rows.
Stmt ContractionBuilder::finish_row(const Buffer& sums, const Expr& i, const Point& rows) {
  const Var v = make_var("v");
  const bool from_zero = as_const_number(m_.start) && *as_const_number(m_.start) == 0;
  const LanePoint column_start{at_, m_.n.var, lane_base(v), lane_count(v), {}};
  LanePoint p = column_start;
  p.acc = load(sums, {ramp(i * Expr(columns_) + column(v))});
  if (!from_zero) p.acc = p.acc + broadcast(vector_form(m_.start, column_start));
  p.at.insert(p.at.end(), rows.begin(), rows.end());
  return loop(v, vectors_in_strip(), store_lanes(m_.c.out, m_.c.out_index, m_.c.epilogue, p), ForKind::Unroll);
}

Stmt ContractionBuilder::finish_rows(const Buffer& sums, int64_t height, const Expr& row) {
  const Var i = make_var("i");
  return loop(i, height, finish_row(sums, Expr(i), {{m_.rows.back().var, row + Expr(i)}}));
}

Stmt ContractionBuilder::finish_pair(const Buffer& sums, int64_t height, const Expr& row) {
  const Axis &tiled = m_.rows[tiled_axis()], &inner = m_.rows.back();
  const Var half = make_var("half"), i = make_var("i");
  auto pixels = [&](const Expr& which) {
    const Expr number = which * Expr(inner.extent) + Expr(i);
    return loop(i, inner.extent, finish_row(sums, number, {{tiled.var, row + which}, {inner.var, Expr(i)}}));
  };
  return height == 1 ? pixels(0) : loop(half, height, pixels(Expr(half)));
}

}  // namespace tc
