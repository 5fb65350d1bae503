// Windows that lie along the vectors: pooling with the channels first.
//
//   y[.., o] = combine over (across, k)  f(x[.., o * stride + k * dilation])      o, the results of a row, side by side
//
// What a row of results reads is a row of positions p = o * stride + k * dilation. Each position is joined over the taps
// across first, in vectors that lie side by side, whatever the stride; the taps along the row are joined from there:
//
//   for rows of results, a few at a time:             shared among threads
//     row[i][p] = combine over (across)  f(x[.., p])  blocks of positions in registers; taps outside of x are skipped
//     y[i][o] = combine over (k)  row[i][o * stride + k * dilation]
//
// So a window of 13 x 13 takes 26 steps instead of 169. A few rows, because a vector that lies across two others has to
// wait until these have left the processor's queue of stores. Positions that lie in the padding hold what joins to nothing from
// the beginning; the row ends in a few more of them, so that whole vectors may be read.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/conditions.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/cpu/tile.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kStackFloats = 1024;  // a row of so many is a local array
constexpr int64_t kMostRows = 8;
constexpr int64_t kLongestRow = 1 << 20;  // positions
constexpr int64_t kWidestStride = 16;     // from there on a result's taps are rows of their own
constexpr int64_t kMostUnrolled = 72;     // vectors of an unrolled loop

struct WindowRows {
  Canonical c;
  std::vector<Axis> rows;    // all but the results of a row
  Axis n, k;                 // results of a row; taps along it, without a variable: one
  std::vector<Axis> across;  // the other taps
  int64_t stride = 1, dilation = 0;
  Var position;
  Expr value;                  // of a position: over rows, across and position
  Exprs conditions;            // on rows and taps across: where one does not hold, nothing joins
  int64_t begin = 0, end = 0;  // positions that exist
  int64_t length() const { return (n.extent.value - 1) * stride + (taps() - 1) * dilation + 1; }
  int64_t taps() const { return k.var ? k.extent.value : 1; }
};

// The stride of the results in the loads, and the taps that move along the same row.
bool find_steps(WindowRows& w) {
  w.stride = 0;
  for (const Load* l : loads_of(w.c.value)) {
    if (l->index.size() != 1) return false;
    const auto f = affine_in(l->index[0], {w.n.var});
    if (!f) return false;
    if (f->coefficients[0] == 0) continue;
    if (w.stride != 0) continue;  // the others are compared later
    w.stride = f->coefficients[0];
    for (const Axis& r : w.c.raxes) {
      const auto g = affine_in(l->index[0], {r.var});
      if (!g) return false;
      const int64_t step = g->coefficients[0];
      if (step < 1 || step >= w.stride * w.n.extent.value || (w.k.var && step >= w.dilation)) continue;
      w.k = r;
      w.dilation = step;
    }
  }
  for (const Axis& r : w.c.raxes)
    if (r.var != w.k.var) w.across.push_back(r);
  return w.stride >= 1;
}

// e as times * position + rest; null if the results and their taps move it in another way.
struct OfPosition {
  int64_t times = 0;
  Expr rest;
};
std::optional<OfPosition> of_position(const Expr& e, const WindowRows& w) {
  std::vector<Var> vars = {w.n.var};
  if (w.k.var) vars.push_back(w.k.var);
  const auto f = affine_in(e, vars);
  if (!f || f->coefficients[0] % w.stride != 0) return {};
  const int64_t times = f->coefficients[0] / w.stride;
  if (w.k.var && f->coefficients[1] != times * w.dilation) return {};
  return OfPosition{times, f->rest};
}

bool uses_row(const Expr& e, const WindowRows& w) { return uses_var(e, w.n.var) || (w.k.var && uses_var(e, w.k.var)); }

// A comparison that every tap has to meet: of positions, which narrows begin .. end, or of rows and taps across.
bool add_condition(WindowRows& w, const Expr& e) {
  const Apply* k = as<Apply>(e);
  if (!k) return false;
  if (k->op == Op::And) return add_condition(w, k->args[0]) && add_condition(w, k->args[1]);
  if (!uses_row(e, w)) return w.conditions.push_back(e), true;
  const bool less = k->op == Op::Lt || k->op == Op::Le, strict = k->op == Op::Lt || k->op == Op::Gt;
  if ((!less && k->op != Op::Gt && k->op != Op::Ge) || k->args[0]->dtype != DType::I64) return false;
  // d = large - small; d > 0 or d >= 0
  const auto d = of_position(k->args[less ? 1 : 0] - k->args[less ? 0 : 1], w);
  const auto rest = d ? as_const_int(simplify(d->rest)) : std::nullopt;
  if (!rest || (d->times != 1 && d->times != -1)) return false;
  const int64_t least = strict ? 1 : 0;
  if (d->times == 1)
    w.begin = std::max(w.begin, least - *rest);
  else
    w.end = std::min(w.end, *rest - least + 1);
  return true;
}

// What is joined, over positions; conditions aside.
bool find_value(WindowRows& w) {
  Expr e = w.c.value;
  w.end = w.length();
  if (const Select* s = as<Select>(e)) {
    const auto no = as_const_number(s->no), none = as_const_number(identity_of(w.c.combine, e->dtype));
    if (!no || !none || *no != *none || !add_condition(w, s->condition)) return false;
    e = s->yes;
  }
  bool ok = true;
  w.position = make_var("p");
  w.value = rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    if (!l || !uses_row(l->index[0], w)) return {};
    const auto at = of_position(l->index[0], w);
    ok = ok && at && at->times == 1;
    return ok ? load(l->buffer, {at->rest + Expr(w.position)}) : Expr();
  });
  return ok && !uses_row(w.value, w) && has_vector_form(w.value, w.position);
}

// Whether results are joined from a few neighbours each, one after the other, with nothing across: then rows of taps
// are the longer ones, or there is little to do.
bool is_short_row(const WindowRows& w) {
  const bool apart = w.stride >= w.taps() * w.dilation && w.across.empty();
  return apart && (w.stride > 4 || w.n.extent.value < kMaxLanes);
}

// Whether all taps of a result in vectors, as they lie, take no more steps than two passes: a step is a load and a
// join; a position is stored as well, and its loops begin and end.
bool direct_is_better(const WindowRows& w) {
  if (w.stride != 1 || !has_vector_form(w.c.value, w.n.var)) return false;
  const int64_t across = points(w.across);
  return across * w.taps() <= across + w.taps() + 3;
}

std::optional<WindowRows> match(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value || a.canonical->raxes.empty()) return {};
  WindowRows w;
  w.c = *a.canonical;
  const Op op = w.c.combine;
  if (op != Op::Max && op != Op::Min && (op != Op::Add || a.options.strict_fp)) return {};
  if (w.c.value->dtype != DType::F32 || !has_lanes(w.c.out->dtype)) return {};
  const auto n = unit_axis(w.c);
  if (!n) return {};
  w.n = *n;
  merge_axes(w.c.raxes, {&w.c.value}, {});
  if (!find_steps(w) || w.stride > kWidestStride || w.length() > kLongestRow || (w.stride == 1 && !w.k.var)) return {};
  if (!find_value(w) || w.begin >= w.end || is_short_row(w) || direct_is_better(w)) return {};
  if (!has_vector_form(w.c.epilogue, w.n.var) || !has_vector_form(w.c.init, w.n.var)) return {};
  for (const Axis& x : w.c.axes)
    if (x.var != n->var) w.rows.push_back(x);
  std::vector<Expr*> values = {&w.value, &w.c.epilogue, &w.c.init};
  for (Expr& e : w.conditions) values.push_back(&e);
  merge_axes(w.rows, values, {&w.c.out_index});
  return w;
}

class Builder {
 public:
  Builder(const WindowRows& w, const CpuModel& cpu) : w_(w), most_columns_(std::max(16, 8 * cpu.vector_lanes)) {
    size_ = w.stride * round_up(w.n.extent.value, kMaxLanes) + round_up((w.taps() - 1) * w.dilation, kMaxLanes);
    count_ = w.rows.empty() ? 1 : rows_at_once(w.rows.back().extent.value, kStackFloats / size_);
    row_ =
        make_buffer("row", DType::F32, {Dim(count_ * size_)}, size_ <= kStackFloats ? Scope::Stack : Scope::Workspace);
    for (const Axis& r : w.rows) rows_.push_back({r.var, Expr(r.var)});
  }

  int64_t rows() const { return count_; }  // at once

  Stmt build(bool parallel) {
    if (w_.rows.empty()) return with_rows(seq({join_across(0), join_along(0)}));
    const Axis& last = w_.rows.back();
    Expr count = last.extent;
    Var number = last.var;
    if (count_ > 1) {
      const int64_t groups = ceil_div(last.extent.value, count_);
      number = make_var(last.var->name + "_o");
      count = groups;
    }
    Stmt body = seq({over_rows(number, [&](const Expr& i) { return join_across(i); }),
                     over_rows(number, [&](const Expr& i) { return join_along(i); })});
    if (w_.rows.size() > 1) body = loop(number, count, body);
    for (size_t i = w_.rows.size() - 1; i-- > 1;) body = loop(w_.rows[i].var, w_.rows[i].extent, body);
    const Var outer = w_.rows.size() > 1 ? w_.rows[0].var : number;
    return shared(outer, w_.rows.size() > 1 ? w_.rows[0].extent.value : *as_const_int(count), body, parallel);
  }

 private:
  // A divisor where there is one of three and more.
  static int64_t rows_at_once(int64_t rows, int64_t free_registers) {
    const int64_t most = std::min({rows, free_registers, kMostRows});
    for (int64_t n = most; n >= 3; n--)
      if (rows % n == 0) return n;
    return std::max<int64_t>(most, 1);
  }

  Stmt shared(const Var& outer, int64_t count, const Stmt& body, bool parallel) const {
    const int64_t parts = parallel ? choose_row_blocks(1, count) : 1;
    if (parts == 1) return with_rows(loop(outer, count, body));
    const Var part = make_var("part");
    const bool even = count % parts == 0;
    const Expr begin = even ? Expr(part) * Expr(count / parts) : Expr(part) * Expr(count) / Expr(parts);
    const Expr extent = even ? Expr(count / parts) : (Expr(part) + Expr(1)) * Expr(count) / Expr(parts) - begin;
    return loop(part, parts, with_rows(loop(outer, extent, body, ForKind::Serial, begin)), ForKind::Parallel);
  }

  // The rows of a group one after the other; `number` is the group's.
  Stmt over_rows(const Var& number, const std::function<Stmt(const Expr& i)>& body) {
    if (count_ == 1) return body(0);
    const int64_t rows = w_.rows.back().extent.value;
    const Var i = make_var("i");
    rows_.back().second = Expr(number) * Expr(count_) + Expr(i);
    const Expr here = rows % count_ == 0 ? Expr(count_) : min(Expr(count_), Expr(rows) - Expr(number) * Expr(count_));
    return loop(i, here, body(Expr(i)));
  }

  using Block = std::function<Stmt(const Expr& begin, int64_t size)>;

  // Blocks of at most `most` columns, nearly equal ones.
  Stmt over_blocks(const std::string& name, int64_t count, const Block& body) const {
    const int64_t blocks = ceil_div(count, most_columns_), columns = round_up(ceil_div(count, blocks), kMaxLanes);
    if (blocks == 1) return body(0, count);
    const Var b = make_var(name);
    const int64_t whole = count / columns, rest = count % columns;
    return seq({loop(b, whole, body(Expr(b) * Expr(columns), columns)),
                rest > 0 ? body(Expr(whole * columns), rest) : Stmt()});
  }
  static Stmt over_vectors(int64_t size, const std::function<Stmt(const Var& v)>& body) {
    const Var v = make_var("v");
    return loop(v, vectors(size), body(v), ForKind::Unroll);
  }
  // Lanes v * VL .. of a block.
  LanePoint at(const Point& p, const Var& axis, const Expr& begin, int64_t size, const Var& v,
               const Expr& acc = {}) const {
    const Expr offset = Expr(v) * lanes();
    return {p, axis, begin + offset, size % kMaxLanes == 0 ? Expr() : Expr(size) - offset, acc};
  }
  static Buffer accumulators(int64_t size) {
    return make_buffer("acc", DType::F32, {Dim(round_up(size, kMaxLanes))}, Scope::Register);
  }
  static Exprs vector_index(const Var& v) { return {ramp(Expr(v) * lanes())}; }

  // The ends of the rows, which no position writes.
  Stmt with_rows(const Stmt& body) const {
    const Var i = make_var("i");
    auto fill = [&](int64_t begin, int64_t end) {
      const Var p = make_var("p");
      const Expr none = identity_of(w_.c.combine, DType::F32);
      const Expr index = Expr(i) * Expr(size_) + (Expr(p) + Expr(begin));
      return begin < end ? loop(p, end - begin, store(row_, {index}, none)) : Stmt();
    };
    const Stmt ends = loop(i, count_, seq({fill(0, w_.begin), fill(w_.end, size_)}));
    return alloc(row_, seq({comment("what lies outside joins to nothing", ends), body}));
  }

  Stmt join_across(const Expr& i) const {
    return over_blocks("block", w_.end - w_.begin, [&](const Expr& offset, int64_t size) {
      const Expr begin = Expr(w_.begin) + offset, position = i * Expr(size_) + Expr(w_.position);
      const Stmt only = over_vectors(size, [&](const Var& v) {
        return store_lanes(row_, position, w_.value, at(rows_, w_.position, begin, size, v));
      });
      if (w_.across.empty() && w_.conditions.empty()) return only;
      const Buffer acc = accumulators(size);
      const Stmt start = over_vectors(size, [&](const Var& v) {
        return store(acc, vector_index(v), broadcast(identity_of(w_.c.combine, DType::F32)));
      });
      const Stmt finish = over_vectors(size, [&](const Var& v) {
        return store_lanes(row_, position, load(w_.c.reduced, {}),
                           at(rows_, w_.position, begin, size, v, load(acc, vector_index(v))));
      });
      return alloc(acc, seq({start, taps_across(acc, begin, size), finish}));
    });
  }

  Expr at_rows(const Expr& e) const {
    VarMap to;
    for (const auto& [v, value] : rows_) to[v.get()] = value;
    return simplify(substitute(e, to));
  }

  Stmt taps_across(const Buffer& acc, const Expr& begin, int64_t size) const {
    Point p = rows_;
    for (const Axis& r : w_.across) p.push_back({r.var, Expr(r.var)});
    Stmt body = over_vectors(size, [&](const Var& v) {
      return store(acc, vector_index(v), broadcast(vector_form(w_.value, at(p, w_.position, begin, size, v))),
                   w_.c.combine);
    });
    Expr all;
    for (const Expr& e : w_.conditions) all = both(all, at_rows(e));
    if (all) body = if_then(all, body);
    int64_t copies = ceil_div(size, kMaxLanes);
    bool unrolled = !all;
    for (size_t i = w_.across.size(); i-- > 0;) {
      const Axis& r = w_.across[i];
      copies *= r.extent.value;
      unrolled = unrolled && copies <= kMostUnrolled;
      body = loop(r.var, r.extent, body, unrolled ? ForKind::Unroll : ForKind::Serial);
    }
    return body;
  }

  Stmt join_along(const Expr& i) const {
    return over_blocks("block", w_.n.extent.value, [&](const Expr& begin, int64_t size) {
      const Buffer acc = accumulators(size);
      const Stmt start = over_vectors(size, [&](const Var& v) {
        return store(acc, vector_index(v), broadcast(vector_form(w_.c.init, at(rows_, w_.n.var, begin, size, v))));
      });
      const Stmt finish = over_vectors(size, [&](const Var& v) {
        return store_lanes(w_.c.out, w_.c.out_index, w_.c.epilogue,
                           at(rows_, w_.n.var, begin, size, v, load(acc, vector_index(v))));
      });
      return alloc(acc, seq({start, taps_along(acc, i * Expr(size_) + begin * Expr(w_.stride), size), finish}));
    });
  }

  // `begin`: in the rows.
  Stmt taps_along(const Buffer& acc, const Expr& begin, int64_t size) const {
    const Expr tap = w_.k.var ? Expr(w_.k.var) * Expr(w_.dilation) : Expr(0);
    const Stmt body = over_vectors(size, [&](const Var& v) {
      const Expr first = begin + Expr(v) * lanes() * Expr(w_.stride) + tap;
      if (w_.stride == 1) return store(acc, vector_index(v), load(row_, {ramp(first)}), w_.c.combine);
      const Buffer taken = make_buffer("taken", DType::F32, {Dim(kMaxLanes)}, Scope::Register);
      const Exprs memory = row_->scope == Scope::Stack ? Exprs() : Exprs{0};
      return alloc(taken, seq({intrin("load_strided", {{taken, {}}, {row_, memory}}, {first, Expr(w_.stride)}),
                               store(acc, vector_index(v), load(taken, {ramp(0)}), w_.c.combine)}));
    });
    if (!w_.k.var) return body;
    const bool unrolled = ceil_div(size, kMaxLanes) * w_.taps() <= kMostUnrolled;
    return loop(w_.k.var, w_.k.extent, body, unrolled ? ForKind::Unroll : ForKind::Serial);
  }

  const WindowRows& w_;
  const int64_t most_columns_;    // of a block: eight vectors
  int64_t size_ = 0, count_ = 1;  // of a row, and rows at once
  Buffer row_;
  Point rows_;  // where the row is among the axes around it
};

}  // namespace

std::optional<Scheduled> schedule_window_rows(const TemplateArgs& a) {
  const auto w = match(a);
  if (!w) return {};
  const int64_t steps = points(w->across) * (w->end - w->begin) + w->taps() * w->n.extent.value;
  Scheduled s;
  Builder builder(*w, a.cpu);
  s.body = seq({fill_border(w->c), builder.build(points(w->rows) * steps >= kParallelThreshold)});
  bind_operands(s, w->c);
  s.family = "window_rows";
  std::string across;
  for (const Axis& r : w->across) across += (across.empty() ? "" : ", ") + r.var->name;
  s.description = builder.rows() == 1 ? "a row" : to_text(builder.rows()) + " rows";
  s.description += across.empty() ? " at a time" : " at a time, joined over " + across + " in vectors";
  if (w->k.var) s.description += ", then over " + w->k.var->name;
  if (w->stride > 1)
    s.description += " from every " + to_text(w->stride) +
                     (w->stride == 2   ? "nd"
                      : w->stride == 3 ? "rd"
                                       : "th") +
                     " position";
  return s;
}

}  // namespace tc
