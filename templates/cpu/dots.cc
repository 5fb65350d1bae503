// Sums of products with few columns: what is summed lies side by side, and vectors run along it.
//
//   for outer (groups, subpixels), for rows, MR at a time:     shared among threads
//     acc[MR][N] = 0                                           a vector for each sum
//     for pieces of the sum: for v in vectors of a piece:
//       acc[i][n] += x[row i, piece, v] * w[n, piece, v]
//     y[row i, n] = epilogue(the lanes of acc[i][n] joined)
//
// A convolution to a few channels (a mask, a picture) would leave most lanes of vectors of its results empty.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lane_sums.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kMostRows = 8, kFewestLanes = 8;
constexpr int64_t kJoinCost = 6;  // multiplications that take as long as joining the lanes of a vector

struct Dots {
  Canonical c;
  std::vector<Axis> outer, rows;  // of the result: those that choose weights, and the others
  std::vector<Axis> pieces;       // of the sum, around `lane`
  Axis lane;
  std::optional<Axis> column;
  Expr product;  // of a load that the rows read and of packed weights
  int64_t columns() const { return column ? column->extent.value : 1; }
};

// The factors of a product: a load, and what is known of the weights, before buffers were made flat.
struct Factors {
  Expr x, w;
};
std::optional<Factors> factors(const TemplateArgs& a) {
  const Canonical& c = *a.canonical;
  const Apply *flat = as<Apply>(c.value), *shaped = as<Apply>(c.shaped_value);
  if (!flat || flat->op != Op::Mul || !shaped || shaped->op != Op::Mul) return {};
  const auto known = [&](int k) { return is_constant(flat->args[size_t(k)], c, a.constant_input); };
  if (known(0) == known(1)) return {};
  const size_t x = known(0) ? 1 : 0;
  const Load* l = as<Load>(flat->args[x]);
  if (!l || l->buffer->dtype != DType::F32) return {};
  return Factors{flat->args[x], shaped->args[1 - x]};
}

std::vector<Var> joined(std::vector<Var> a, const std::vector<Var>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// `s` gets the weights in the order of the sum.
std::optional<Dots> match(const TemplateArgs& a, Scheduled& s) {
  if (!a.canonical || !a.canonical->value || a.options.strict_fp) return {};
  Dots d{*a.canonical, {}, {}, {}, {}, {}, {}};
  if (d.c.combine != Op::Add || d.c.raxes.empty() || d.c.value->dtype != DType::F32 || d.c.out->dtype != DType::F32)
    return {};
  const auto f = factors(a);
  Expr index = f ? as<Load>(f->x)->index[0] : Expr();
  const auto at = f ? offset_of(index, joined(vars_of(d.c.axes), vars_of(d.c.raxes))) : std::nullopt;
  if (!at || is_costly(d.c.epilogue) || !offset_of(d.c.out_index, vars_of(d.c.axes))) return {};
  for (const Axis& x : d.c.axes) {
    const bool moves = at->of(x.var) != 0;
    if (!uses_var(f->w, x.var)) {
      if (!moves) return {};
      d.rows.push_back(x);
    } else if (moves) {
      d.outer.push_back(x);
    } else {
      if (d.column) d.outer.push_back(*d.column);
      d.column = x;
    }
  }
  std::vector<Axis> weights = d.outer, sum = d.c.raxes;
  std::stable_sort(sum.begin(), sum.end(), [&](const Axis& p, const Axis& q) { return at->of(p.var) > at->of(q.var); });
  if (d.column) weights.push_back(*d.column);
  std::vector<Axis> packed = weights;
  packed.insert(packed.end(), sum.begin(), sum.end());
  merge_axes(sum, {}, {&index});
  d.lane = sum.back();
  d.pieces.assign(sum.begin(), sum.end() - 1);
  const auto along_sum = offset_of(index, joined(vars_of(d.c.axes), vars_of(sum)));
  if (!along_sum || along_sum->of(d.lane.var) != 1 || d.lane.extent.value < kFewestLanes) return {};
  const Buffer w = add_packed(s, d.c, packed, f->w, "packed: the sum of a column side by side");
  const Expr weight = load(w, {point_number(sum, point_number(weights))});
  d.product = load(as<Load>(f->x)->buffer, {index}) * weight;
  return d;
}

// Is it faster than vectors of columns, of which some would be empty?
bool pays(const Dots& d, const CpuModel& cpu) {
  const int64_t sum = points(d.pieces) * d.lane.extent.value, panels = ceil_div(d.columns(), kMaxLanes);
  const int64_t vectors = points(d.pieces) * ceil_div(d.lane.extent.value, cpu.vector_lanes);
  return d.columns() < kMaxLanes && d.columns() * (vectors + kJoinCost) < sum * panels * kMaxLanes / cpu.vector_lanes;
}

// So many rows that their sums, the weights of a vector and a load fit into the registers.
int64_t choose_rows(const Dots& d, const CpuModel& cpu) {
  const int64_t most = (cpu.vector_registers - 1) / d.columns() - 1;
  return std::min({most, kMostRows, d.rows.empty() ? 1 : d.rows.back().extent.value});
}

class Builder {
 public:
  Builder(const Dots& d, int64_t tile, bool parallel)
      : d_(d), tile_(tile), around_(d.outer), kind_(parallel ? ForKind::Parallel : ForKind::Serial) {
    if (!d.rows.empty()) around_.insert(around_.end(), d.rows.begin(), d.rows.end() - 1);
    for (const Axis& a : around_) at_.push_back({a.var, Expr(a.var)});
    for (const Axis& a : d.pieces) at_.push_back({a.var, Expr(a.var)});
  }

  Stmt build() const {
    Stmt body = d_.rows.empty() ? tile(1, {}) : tiles(d_.rows.back());
    for (size_t i = around_.size(); i-- > 0;)
      body = loop(around_[i].var, around_[i].extent, body, i == 0 ? kind_ : ForKind::Serial);
    return body;
  }

 private:
  Stmt tiles(const Axis& tiled) const {
    const int64_t whole = tiled.extent.value / tile_, rest = tiled.extent.value % tile_;
    const Var t = make_var(tiled.var->name + "_o");
    const Stmt full = loop(t, whole, tile(tile_, Expr(t) * Expr(tile_)), around_.empty() ? kind_ : ForKind::Serial);
    return rest > 0 ? seq({full, tile(rest, Expr(whole * tile_))}) : full;
  }

  // The sums of `count` rows from `first` on.
  Stmt tile(int64_t count, const Expr& first) const {
    LaneTile t{at_, {}, {}, first, 0, count, d_.columns()};
    if (first) t.row = d_.rows.back().var;
    if (d_.column) t.column = d_.column->var;
    return lane_sums({d_.c, d_.pieces, d_.lane, d_.product}, t);
  }

  const Dots& d_;
  const int64_t tile_;
  std::vector<Axis> around_;  // the tiles
  const ForKind kind_;
  Point at_;
};

}  // namespace

std::optional<Scheduled> schedule_dots(const TemplateArgs& a) {
  Scheduled s;
  const auto d = match(a, s);
  if (!d || (!a.no_columns && !pays(*d, a.cpu))) return {};
  const int64_t most = choose_rows(*d, a.cpu);
  if (most < 1) return {};
  const int64_t rows = a.plan.in_range(
      "rows", [&] { return most; }, 1, most);
  const int64_t work = points(d->outer) * points(d->rows) * d->columns() * points(d->pieces) * d->lane.extent.value;
  const bool parallel =
      a.plan.flag("parallel", work >= kParallelThreshold, !d->rows.empty() || !d->outer.empty(), "there is one row");
  s.body = seq({fill_border(d->c), Builder(*d, rows, parallel).build()});
  bind_operands(s, d->c);
  s.family = "dots";
  s.description = to_text(rows) + " rows by " + to_text(d->columns()) + " columns, a vector of partial sums each";
  return s;
}

}  // namespace tc
