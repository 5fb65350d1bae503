// Inverted residuals, row by row: a 1 x 1 convolution that expands the channels, a depthwise convolution, a 1 x 1
// convolution that projects them back, each with its bias, activation or residual.
//
//   for bands of rows:                                     shared among threads
//     for rows y:
//       expanded[row mod k] = expand(x[row])               the rows that y needs and that are not there yet
//       filtered = depthwise(expanded[k rows])             a row of zeros stands for what lies beyond the edge
//       out[y] = project(filtered)
//
// The expanded tensor, the largest of the three, never leaves the caches: k of its rows exist at a time, with the zeros
// left and right that the depthwise convolution wants. A band expands the rows between itself and the next one again.
#include "templates/cpu/inverted_residual.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/regions.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kColumns = 16;    // channels of a block of the depthwise convolution
constexpr int64_t kMostPixels = 8;  // of a tile of it
constexpr int64_t kMostTaps = 27;   // that registers may hold
constexpr int64_t kMostBands = 64;

// Rows that two bands expand are work done twice: at most a twentieth of all rows, but two bands at least.
int64_t choose_bands(const InvertedResidual& r) {
  const InvertedResidual::Depthwise& d = r.depthwise;
  const int64_t again = std::max<int64_t>(0, (d.kh - 1) * d.row_dilation + 1 - d.row_step);
  int64_t bands = 1;
  while (bands < 16 && bands * 2 <= r.out_height && (bands == 1 || (bands * 2 - 1) * again * 20 <= r.height))
    bands *= 2;
  return bands;
}

class Builder {
 public:
  Builder(const InvertedResidual& r, const TemplateArgs& a) : r_(r), d_(r.depthwise), a_(a), memory_(a.fn) {
    slots_ = (d_.kh - 1) * d_.row_dilation + 1;
    line_ = r.padded_width * r.channels;
    const int64_t lowest = (r.out_height - 1) * d_.row_step - r.top + (d_.kh - 1) * d_.row_dilation;
    has_zero_row_ = r.top > 0 || lowest >= r.height;
    ring_ = make_buffer("expanded", DType::F32, {Dim((slots_ + (has_zero_row_ ? 1 : 0)) * line_)}, Scope::Workspace);
    row_ = make_buffer("filtered", DType::F32, {Dim(r.out_width * r.channels)}, Scope::Workspace);
    decide();
  }

  Scheduled build() {
    const Var part = make_var("part"), first = make_var("first"), end = make_var("end");
    const Expr band = r_.images == 1 ? Expr(part) : apply(Op::Mod, {Expr(part), Expr(bands_)});
    Stmt body = seq({zeros(), loop(r_.y, Expr(end) - Expr(first), row(first), ForKind::Serial, Expr(first))});
    body = alloc(ring_, alloc(row_, body));
    body = let(end, (band + Expr(1)) * Expr(r_.out_height) / Expr(bands_), body);
    body = let(first, band * Expr(r_.out_height) / Expr(bands_), body);
    if (r_.images > 1) body = let(r_.image, Expr(part) / Expr(bands_), body);
    const int64_t chunks = r_.images * bands_;
    if (chunks == 1)
      s_.body = substitute(body, {{part.get(), Expr(0)}});
    else
      s_.body = loop(part, chunks, body, ForKind::Parallel);
    memory_.bind(s_);
    s_.family = "inverted_residual";
    describe();
    return std::move(s_);
  }

 private:
  void decide() {
    const int64_t taps = d_.kh * d_.kw;
    bands_ = a_.plan.in_range(
        "bands", [&] { return choose_bands(r_); }, 1, std::min(r_.out_height, kMostBands));
    const bool fits = taps + 5 <= a_.cpu.vector_registers * a_.cpu.vector_lanes / kColumns;
    keep_taps_ = a_.plan.flag("kept_weights", fits, taps <= kMostTaps, "there are " + to_text(taps) + " of a channel");
    pixels_ = a_.plan.in_range(
        "columns", [&] { return choose_pixels(); }, 1, std::min(r_.out_width, kMostPixels));
    expand_ = plan_part(r_.expand.m, a_.cpu, a_.options);
    project_ = plan_part(r_.project.m, a_.cpu, a_.options);
  }

  // The zeros around the rows are written once; rows change between them.
  Stmt zeros() {
    const Expr zero = make_float(DType::F32, 0);
    const int64_t right = r_.padded_width - r_.left - r_.width;
    auto columns = [&](int64_t from, int64_t count) -> Stmt {
      if (count == 0) return {};
      const Var slot = make_var("slot"), i = make_var("i");
      const Expr at = Expr(slot) * Expr(line_) + Expr(from * r_.channels) + Expr(i);
      return loop(slot, slots_, loop(i, count * r_.channels, store(ring_, {at}, zero)));
    };
    Stmt below;
    if (has_zero_row_) {
      const Var i = make_var("i");
      below = loop(i, line_, store(ring_, {Expr(slots_ * line_) + Expr(i)}, zero));
    }
    const Stmt all = seq({columns(0, r_.left), columns(r_.left + r_.width, right), below});
    return all ? comment("zeros left and right of the rows, and a row of zeros", all) : all;
  }

  Stmt row(const Var& first) {
    const Expr y = Expr(r_.y), reach = Expr(slots_ - r_.top), step = Expr(d_.row_step);
    const Var from = make_var("from"), to = make_var("to");
    const Expr begin = select(eq(y, Expr(first)), y * step - Expr(r_.top), y * step + reach - step);
    Stmt fill = loop(r_.source, Expr(to) - Expr(from), expand(), ForKind::Serial, Expr(from));
    fill = let(to, min(y * step + reach, Expr(r_.height)), fill);
    fill = let(from, max(begin, Expr(0)), fill);
    return seq({comment("expand the rows that are missing", fill), comment("filter each channel", depthwise()),
                comment("project", project())});
  }

  Stmt expand() {
    TileMemory memory = memory_;
    const Expr slot = apply(Op::Mod, {Expr(r_.source), Expr(slots_)});
    memory.keep_in(r_.interior, ring_, slot * Expr(line_) + Expr(r_.left * r_.channels));
    ResultTile tile = r_.expand.tile;
    tile.result.step.assign(tile.result.step.size(), 0);
    return memory.see(contraction_loops(r_.expand.m, expand_, s_), tile, r_.expand.m.c, r_.source_row(), "row");
  }

  Stmt project() {
    TileMemory memory = memory_;
    memory.keep_in(r_.filtered, row_);
    ResultTile tile = r_.project.tile;
    for (ResultTile::Operand& o : tile.operands)
      if (o.whole == r_.filtered) o.step.assign(o.step.size(), 0);
    return memory.see(contraction_loops(r_.project.m, project_, s_), tile, r_.project.m.c, r_.result_row(), "row");
  }

  // --- the depthwise convolution of one row
  int64_t choose_pixels() const {
    const int64_t nv = std::max<int64_t>(1, kColumns / a_.cpu.vector_lanes), w = r_.out_width;
    const int64_t free_registers = (a_.cpu.vector_registers - 4) / nv - (keep_taps_ ? d_.kh * d_.kw : 0);
    const int64_t most = std::min(std::clamp<int64_t>(free_registers, 1, kMostPixels), w);
    for (int64_t p = most; p * 2 > most; p--)
      if (w % p == 0) return p;
    return most;
  }

  LanePoint at(const Point& p, const Var& v, const Expr& acc = {}) const {
    const Expr lane = base_ + Expr(v) * lanes();
    return {p, d_.channel.var, lane, r_.channels % kColumns == 0 ? Expr() : Expr(r_.channels) - lane, acc};
  }
  Stmt over_vectors(const std::function<Stmt(const Var& v)>& body) const {
    const Var v = make_var("v");
    return loop(v, vectors(std::min(r_.channels, kColumns)), body(v), ForKind::Unroll);
  }
  Stmt over_tile(int64_t height, const std::function<Stmt(const Expr& i, const Var& v)>& body) const {
    if (height == 1) return over_vectors([&](const Var& v) { return body(0, v); });
    const Var i = make_var("i");
    return loop(i, height, over_vectors([&](const Var& v) { return body(Expr(i), v); }), ForKind::Unroll);
  }
  static Exprs vector_index(const Expr& i, const Var& v) { return {i, ramp(Expr(v) * lanes())}; }

  Stmt depthwise() {
    const Var block = make_var(d_.channel.var->name + "_o");
    const int64_t blocks = ceil_div(r_.channels, kColumns);
    base_ = blocks > 1 ? Expr(block) * Expr(kColumns) : Expr(0);
    weights_ = pack_taps();
    for (int64_t k = 0; k < d_.kh; k++)
      rows_.push_back(make_buffer("row" + to_text(k), DType::F32, {Dim(line_)}, Scope::Workspace));
    taps_ = make_buffer("taps", DType::F32, {Dim(d_.kh * d_.kw), Dim(kColumns)}, Scope::Register);
    Stmt body = columns();
    if (keep_taps_) {
      const Var tap = make_var("tap");
      const Stmt fill = loop(tap, d_.kh * d_.kw, over_vectors([&](const Var& v) {
                               return store(taps_, vector_index(Expr(tap), v), weight(Expr(tap), v));
                             }),
                             ForKind::Unroll);
      body = alloc(taps_, seq({fill, body}));
    }
    if (blocks > 1) body = loop(block, blocks, body);
    TileMemory memory = memory_;
    memory.keep_in(r_.filtered, row_);
    ResultTile tile = d_.tile;
    tile.result.step.assign(tile.result.step.size(), 0);
    body = memory.see(body, tile, d_.c, r_.result_row(), "row");
    for (size_t k = rows_.size(); k-- > 0;) body = alias(rows_[k], ring_, slot_of(int64_t(k)) * Expr(line_), body);
    return body;
  }

  // Where the k-th of the rows around y is kept: beyond the edges, the row of zeros.
  Expr slot_of(int64_t k) const {
    const int64_t shift = k * d_.row_dilation - r_.top;
    const Expr source = Expr(r_.y) * Expr(d_.row_step) + Expr(shift), slot = apply(Op::Mod, {source, Expr(slots_)});
    const bool above = shift < 0, below = (r_.out_height - 1) * d_.row_step + shift >= r_.height;
    if (!above && !below) return slot;
    const Expr in_front = source >= Expr(0), in_back = source < Expr(r_.height);
    return select(above && below ? in_front && in_back : above ? in_front : in_back, slot, Expr(slots_));
  }

  Buffer pack_taps() {
    const std::vector<Axis> axes = {d_.kh_axis, d_.kw_axis, d_.channel};
    const std::string layout =
        "packed: " + d_.kh_axis.var->name + ", " + d_.kw_axis.var->name + ", " + d_.channel.var->name;
    return add_packed(s_, d_.c, axes, d_.weight, layout);
  }

  Expr weight(const Expr& tap, const Var& v) const {
    const LanePoint p = at({}, v);
    const Expr w = load(weights_, {ramp(tap * Expr(r_.channels) + p.base)});
    return p.count ? partial(w, p.count) : w;
  }

  Stmt columns() {
    const int64_t px = pixels_, whole = r_.out_width / px, rest = r_.out_width % px;
    const Var t = make_var("ow_o");
    Stmt full = whole == 1 ? tile(px, 0) : loop(t, whole, tile(px, Expr(t) * Expr(px)));
    return seq({full, rest > 0 ? tile(rest, whole * px) : Stmt()});
  }

  Stmt tile(int64_t px, const Expr& column) {
    const Buffer acc = make_buffer("acc", DType::F32, {Dim(px), Dim(kColumns)}, Scope::Register);
    auto point = [&](const Expr& i) { return d_.ow.var ? Point{{d_.ow.var, column + i}} : Point{}; };
    Stmts list = {over_tile(px, [&](const Expr& i, const Var& v) {
      return store(acc, vector_index(i, v), broadcast(vector_form(d_.c.init, at(point(i), v))));
    })};
    for (int64_t k = 0; k < d_.kh; k++) {
      const Var kw = make_var(d_.kw_axis.var->name);
      const Stmt sum = over_tile(px, [&](const Expr& i, const Var& v) {
        const LanePoint p = at(point(i), v);
        const Expr pixel = (column + i) * Expr(d_.column_step) + Expr(kw) * Expr(d_.column_dilation);
        const Expr read = load(rows_[size_t(k)], {ramp(pixel * Expr(r_.channels) + p.base)});
        const Expr tap = Expr(k * d_.kw) + Expr(kw);
        const Expr w = keep_taps_ ? load(taps_, vector_index(tap, v)) : weight(tap, v);
        return store(acc, vector_index(i, v), (p.count ? partial(read, p.count) : read) * w, Op::Add);
      });
      list.push_back(loop(kw, d_.kw, sum, ForKind::Unroll));
    }
    list.push_back(over_tile(px, [&](const Expr& i, const Var& v) {
      return store_lanes(d_.c.out, d_.c.out_index, d_.c.epilogue, at(point(i), v, load(acc, vector_index(i, v))));
    }));
    return alloc(acc, seq(list));
  }

  void describe() {
    auto tile = [](const ContractionPlan& p) {
      return to_text(int64_t(p.tile.rows)) + " pixels by " + to_text(int64_t(p.tile.columns)) + " channels";
    };
    s_.description = "row by row: " + to_text(slots_) + " expanded rows are kept, with their zeros; expand " +
                     tile(expand_) + ", filter " + to_text(pixels_) + " by " + to_text(kColumns) + ", project " +
                     tile(project_) + " in registers";
    if (bands_ > 1) s_.description += "; " + to_text(bands_) + " bands of rows";
  }

  const InvertedResidual& r_;
  const InvertedResidual::Depthwise& d_;
  const TemplateArgs& a_;
  TileMemory memory_;
  Scheduled s_;
  int64_t slots_ = 1, line_ = 1, bands_ = 1, pixels_ = 1;  // pixels: columns of a tile
  ContractionPlan expand_, project_;
  bool has_zero_row_ = false, keep_taps_ = false;
  Expr base_;
  Buffer ring_, row_, weights_, taps_;
  std::vector<Buffer> rows_;
};

}  // namespace

// The expanded tensor has to come from beyond the second-level cache; then the depthwise convolution waits for it, and
// with stride 2, where it computes least for what it reads, most of all. Where half of it is still there, the rows that
// bands expand twice cost as much as is gained. Measured on Zen 4 (L2 1 MiB), new time over old, in MobileNetV2:
// 112 x 112 x 96 (4.9 MB) 0.92; 56 x 56 x 144 (1.9 MB) 1.02 with stride 1, 1.01 with stride 2; 28 x 28 x 192 1.04;
// 14 x 14 x 384 0.98 to 1.05; 7 x 7 x 960 1.0 to 1.1.
bool inverted_residual_pays(const TemplateArgs& a) {
  const auto r = match_inverted_residual(a);
  return r && 4 * num_elements(static_dims(r->expanded->shape)) >= 2 * int64_t(a.cpu.l2_bytes);
}

std::optional<Scheduled> schedule_inverted_residual(const TemplateArgs& a) {
  const auto r = match_inverted_residual(a);
  if (!r) return {};
  return Builder(*r, a).build();
}

}  // namespace tc
