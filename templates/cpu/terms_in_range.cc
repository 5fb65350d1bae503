// Sums of terms that only a part of an image has: Col2Im.
//
//   y[h, w] = sum(i, j) [0 <= h - i < m and 0 <= w - j < n]  x[i, j, h - i, w - j]
//
//   for blocks of rows:
//     y[h, w] = start                                 for the rows of the block, in vectors along w
//     for i, j:
//       for p in 0 .. m, q in 0 .. n:                 those whose h = p + i lies in the block
//         y[p + i, q + j] += x[i, j, p, q]            vectors along q
//
// Instead of asking for every element whether there is a term, loops go over the elements that have it. Where only every s-th has one,
// as of blocks that lie s apart, q counts these: w = q * s + j. A block of rows stays in the nearest cache from term to term; a
// row alone would be read again, elsewhere in its vectors, before it is written. Results that are not the sums themselves are made
// of sums in memory of their own. Each sum is taken in the definition's order.
#include <algorithm>

#include "ir/axis_ranges.h"
#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/loop/lane_conditions.h"
#include "templates/cpu/template.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

constexpr int64_t kBlock = 8 << 10, kMostOwn = 16 << 10;  // bytes of a block of rows

// The elements of an axis that have a term: at = q * stride - rest for begin <= q < end.
struct Elements {
  Axis axis;
  Var q;
  Expr rest = {};
  int64_t stride = 1;
  Exprs begin = {}, end = {};  // of all of these the last and the first
  Expr at() const { return simplify(Expr(q) * Expr(stride) - rest); }
};

struct Terms {
  Canonical c;
  Elements lane;                // the last axis
  std::optional<Elements> row;  // the one before
  Exprs around;                 // other conditions
  Expr value;                   // over q of these, and the other axes
};

// p mod s = 0: {p, s}
std::optional<std::pair<Expr, int64_t>> every(const Expr& condition) {
  const Apply* k = as<Apply>(condition);
  const Apply* mod = k && k->op == Op::Eq && is_const(k->args[1], 0) ? as<Apply>(k->args[0]) : nullptr;
  const auto s = mod && mod->op == Op::FloorMod ? as_const_int(mod->args[1]) : std::nullopt;
  if (!s || *s < 1) return {};
  return std::pair{mod->args[0], *s};
}

// The elements for which all of `conditions` may hold, each of which compares a position on the axis; null: they are others.
std::optional<Elements> elements_of(const Canonical& c, const Axis& axis, const std::string& count,
                                    const Exprs& conditions) {
  Elements e{axis, make_var(count)};
  const Apply* compared = conditions.empty() ? nullptr : as<Apply>(conditions[0]);
  const bool counts = compared && compared->args.size() == 2 && compared->args[0]->dtype == DType::I64;
  Expr position = counts ? compared->args[0] - compared->args[1] : Expr();
  for (const Expr& x : conditions)
    if (const auto s = every(x)) position = s->first, e.stride = s->second;
  const auto f = position ? affine_in(position, {axis.var}) : std::nullopt;
  if (!f || std::abs(f->coefficients[0]) != 1) return {};
  e.rest = simplify(f->coefficients[0] == 1 ? f->rest : Expr(0) - f->rest);
  if (uses_any(e.rest, c.axes)) return {};
  for (const Expr& x : conditions) {
    const Expr here = simplify(substitute(x, {{axis.var.get(), e.at()}}), ranges_of({&c.axes, &c.raxes}));
    if (as_const_int(here) == 1) continue;
    if (const auto end = end_of(here, e.q))
      e.end.push_back(*end);
    else if (const auto begin = begin_of(here, e.q))
      e.begin.push_back(*begin);
    else
      return {};
  }
  return e;
}

bool asks_for(const Elements& e, const Var& v) {
  const auto asks = [&](const Expr& x) { return uses_var(x, v); };
  return std::any_of(e.begin.begin(), e.begin.end(), asks) || std::any_of(e.end.begin(), e.end.end(), asks);
}

std::optional<Terms> match(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value || a.canonical->axes.empty()) return {};
  const Canonical& c = *a.canonical;
  const Cast* widened = as<Cast>(c.value);
  const Select* k = as<Select>(widened ? widened->value : c.value);
  const Expr identity = identity_of(c.combine, c.value->dtype);
  if (!k || !identity) return {};
  const Expr otherwise = widened ? simplify(cast(c.value->dtype, k->no)) : k->no;
  const auto f = affine_in(c.out_index, {c.axes.back().var});
  if (!structurally_equal(otherwise, identity) || !f || f->coefficients[0] != 1) return {};
  Terms t{c, {}, {}, {}, widened ? cast(c.value->dtype, k->yes) : k->yes};
  const Axis lane = c.axes.back(), row = c.axes.size() > 1 ? c.axes[c.axes.size() - 2] : Axis{make_var("row"), Dim(1)};
  Exprs all, of_lane, of_row;
  conjuncts(k->condition, all);
  for (const Expr& e : all) (uses_var(e, lane.var) ? of_lane : uses_var(e, row.var) ? of_row : t.around).push_back(e);
  const auto elements = elements_of(c, lane, "q", of_lane);
  if (!elements) return {};
  t.lane = *elements;
  if (!asks_for(t.lane, row.var)) t.row = elements_of(c, row, "p", of_row);
  if (!t.row) t.around.insert(t.around.end(), of_row.begin(), of_row.end());
  VarMap to{{lane.var.get(), t.lane.at()}};
  if (t.row) to[row.var.get()] = t.row->at();
  t.value = simplify(substitute(t.value, to), ranges_of({&c.axes, &c.raxes}));
  return t;
}

class Builder {
 public:
  explicit Builder(const Terms& t) : t_(t), c_(t.c) {
    const int64_t n = t.lane.axis.extent.value, bytes = info(c_.reduced->dtype).bytes;
    if (t_.row) rows_ = std::clamp<int64_t>(kBlock / (n * bytes), 1, t_.row->axis.extent.value);
    around_.assign(c_.axes.begin(), c_.axes.end() - (t_.row ? 2 : 1));
    if (t_.row) cut_into_blocks();
    const Load* acc = as<Load>(c_.epilogue);
    if (!acc || acc->buffer != c_.reduced || c_.out->dtype != c_.reduced->dtype)
      own_ = make_buffer("sums", c_.reduced->dtype, {Dim(rows_), Dim(n)}, Scope::Stack);
  }

  bool has_room() const {
    return !own_ || num_elements(static_dims(own_->shape)) * info(own_->dtype).bytes <= kMostOwn;
  }

  /// Iterations of the loop that threads may share.
  int64_t outermost() const { return around_.empty() ? 1 : around_[0].extent.value; }

  Stmt build(bool parallel) const {
    const Expr sum = own_ ? load(own_, own_index(here())) : Expr();
    Stmts list{over_block(put(here(), c_.init)), terms(0)};
    if (own_) list.push_back(over_block(store(c_.out, {c_.out_index}, with_reduced(c_.epilogue, c_.reduced, sum))));
    Stmt s = own_ ? alloc(own_, seq(list)) : seq(list);
    for (size_t d = around_.size(); d-- > 0;)
      s = loop(around_[d].var, around_[d].extent, s, d == 0 && parallel ? ForKind::Parallel : ForKind::Serial);
    return s;
  }

 private:
  void cut_into_blocks() {
    const int64_t n = t_.row->axis.extent.value, blocks = ceil_div(n, rows_);
    const Axis block{make_var(t_.row->axis.var->name + "_o"), Dim(blocks)};
    if (blocks > 1) around_.push_back(block);
    first_ = blocks > 1 ? Expr(block.var) * Expr(rows_) : Expr(0);
    last_ = n % rows_ == 0 ? first_ + Expr(rows_) : min(first_ + Expr(rows_), Expr(n));
  }

  struct Point {
    Expr row, lane;  // no row: it is that of a loop around
  };
  Point here() const { return {t_.row ? Expr(t_.row->axis.var) : Expr(), Expr(t_.lane.axis.var)}; }

  Exprs own_index(const Point& p) const { return {p.row ? p.row - first_ : Expr(0), p.lane}; }
  Stmt put(const Point& p, const Expr& value, std::optional<Op> join = {}) const {
    if (own_) return store(own_, own_index(p), value, join);
    VarMap to{{t_.lane.axis.var.get(), p.lane}};
    if (p.row) to[t_.row->axis.var.get()] = p.row;
    return store(c_.out, {simplify(substitute(c_.out_index, to))}, value, join);
  }
  // For all elements of the block's rows.
  Stmt over_block(const Stmt& s) const {
    const Var v = make_var(t_.lane.axis.var->name), r = make_var(t_.row ? t_.row->axis.var->name : "r");
    VarMap to{{t_.lane.axis.var.get(), Expr(v)}};
    if (t_.row) to[t_.row->axis.var.get()] = Expr(r);
    const Stmt row = loop(v, t_.lane.axis.extent, substitute(s, to), ForKind::Vector);
    return t_.row ? loop(r, simplify(last_ - first_), row, ForKind::Serial, first_) : row;
  }

  // `s` for the elements of positions first .. last - 1 that have a term.
  Stmt over(const Elements& e, const Expr& first, const Expr& last, const Stmt& s, ForKind kind) const {
    Expr begin = floor_div(e.rest + first + Expr(e.stride - 1), e.stride);
    Expr end = floor_div(e.rest + last - Expr(1), e.stride) + Expr(1);
    for (const Expr& x : e.begin) begin = max(begin, x);
    for (const Expr& x : e.end) end = min(end, x);
    const Ranges ranges = ranges_of({&c_.axes, &c_.raxes});
    begin = simplify(begin, ranges);
    return loop(e.q, simplify(max(end - begin, Expr(0)), ranges), s, kind, begin);
  }
  // The loops over the terms from axis d of the sum on, behind what is asked as soon as it can be.
  Stmt terms(size_t d) const {
    Stmt s;
    if (d < c_.raxes.size()) {
      s = loop(c_.raxes[d].var, c_.raxes[d].extent, terms(d + 1));
    } else {
      const Stmt one = put({t_.row ? t_.row->at() : Expr(), t_.lane.at()}, t_.value, c_.combine);
      s = over(t_.lane, 0, t_.lane.axis.extent, one, t_.lane.stride == 1 ? ForKind::Vector : ForKind::Serial);
      if (t_.row) s = over(*t_.row, first_, last_, s, ForKind::Serial);
    }
    Expr asked;
    for (const Expr& e : t_.around)
      if (depth_of(e) == d) asked = asked ? asked && e : e;
    return asked ? if_then(asked, s) : s;
  }
  size_t depth_of(const Expr& condition) const {
    for (size_t d = c_.raxes.size(); d-- > 0;)
      if (uses_var(condition, c_.raxes[d].var)) return d + 1;
    return 0;
  }

  const Terms& t_;
  const Canonical& c_;
  std::vector<Axis> around_;  // loops around a block
  int64_t rows_ = 1;          // of a block
  Expr first_, last_;         // rows of a block; null: it is the row of a loop around
  Buffer own_;                // sums that are no results; null: there are none
};

}  // namespace

std::optional<Scheduled> schedule_terms_in_range(const TemplateArgs& a) {
  const auto t = match(a);
  if (!t) return {};
  const Builder loops(*t);
  if (!loops.has_room()) return {};
  const bool pays = points(t->c.axes) * points(t->c.raxes) >= kParallelThreshold;
  const bool parallel = a.plan.flag("parallel", pays, loops.outermost() > 1, "there is nothing to share");
  Scheduled s;
  s.body = seq({fill_border(t->c), loops.build(parallel)});
  bind_operands(s, t->c);
  s.family = "terms_in_range";
  s.description = "term by term, each over the elements that have it";
  return s;
}

}  // namespace tc
