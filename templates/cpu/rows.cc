// Reductions along rows that lie contiguous in memory, with everything around them: softmax, layer normalisation,
// means.
//
//   for rows:                                 shared among threads
//     m = max(row); s = sum(exp(row - m))     vectors with several accumulators, joined over the lanes at the end
//     row' = exp(row - m) / s                 vectors again; the row is still in the first-level cache
//
// Where the run chooses how many elements of a row are reduced, the reductions end behind the last of them, and so does a result
// that is one number from there on.
//
// Rows that memory does not let walk as one axis (the blocks of a quantised row) are reduced piece by piece, into the same
// accumulators.
//
// Stages over whole rows (templates/rows.h) are written in place into what reads them, unless they are costly and read twice: these are
// stored to the row of the result, and read back. What has one value per row is a scalar.
#include "templates/rows.h"

#include <algorithm>
#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"
#include "templates/match/axes.h"
#include "templates/match/counted.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

constexpr int64_t kFewestParts = 4, kMostParts = 32;  // of the rows; fewer rows, or more parts, are rows one by one
constexpr int64_t kMostAccumulators = 8;

struct RowsPlan {
  int64_t parts = 1;         // of the rows, for threads; 1: they are not shared
  int64_t inner_parts = 1;   // of the second axis of rows, where the first is no more than a few
  int64_t accumulators = 1;  // vectors of sums that are joined at the end
};

bool all_vector_forms(const Rows& r) {
  const Var lane = r.columns.back().var;
  const auto is_worth_it = [&](const RowStep& s) {
    return along_row(s) && r.columns.back().extent.value >= fewest_lanes(s.value);
  };
  if (std::none_of(r.steps.begin(), r.steps.end(), is_worth_it)) return false;
  for (const RowStep& s : r.steps)
    if (s.kind == RowStep::Kind::Row ? !has_stored_form(s.value, r.c.out->dtype, lane)
        : along_row(s)               ? !has_vector_form(s.value, lane)
                                     : uses_var(s.value, lane))
      return false;
  return true;
}

// Rows in at most 32 equal parts where there are some; else each row is one.
int64_t choose_parts(int64_t rows) {
  int64_t parts = kMostParts;
  while (rows % parts != 0) parts--;
  return parts < kFewestParts ? rows : parts;
}

/// `open`: rows may end early, so that there are several axes of them.
RowsPlan decide(const Rows& r, const PlanEntry& plan, bool open) {
  const int64_t n = r.columns.back().extent.value, rows = r.c.axes.empty() ? 1 : r.c.axes[0].extent.value;
  const bool parallel = points(r.c.axes) * points(r.columns) * int64_t(r.steps.size()) >= kParallelThreshold;
  RowsPlan p;
  p.parts = plan.number(
      "parts", [&] { return parallel ? choose_parts(rows) : 1; },
      KnobValues::divisors(rows, INT64_MAX, "threads take equal shares of " + to_text(rows) + " rows"));
  if (open && p.parts == rows && rows < kMostParts && r.c.axes.size() > 1)
    while (p.inner_parts * 2 * rows <= kMostParts && r.c.axes[1].extent.value % (p.inner_parts * 2) == 0)
      p.inner_parts *= 2;
  const bool reduces =
      std::any_of(r.steps.begin(), r.steps.end(), [](const RowStep& s) { return s.kind == RowStep::Kind::Reduce; });
  p.accumulators = plan.number(
      "accumulators", [&] { return n >= 256  ? 4
                                   : n >= 64 ? 2
                                             : 1; },
      KnobValues::powers_of_two(1, reduces ? std::clamp<int64_t>(n / kMaxLanes, 1, kMostAccumulators) : 1,
                                "vectors of sums that a row of " + to_text(n) + " fills"));
  return p;
}

// Of reductions that are all of select(column < count, x, nothing): they become reductions of x, and the result is how many
// elements they are of. So does a row of select(column < count, x, a number). Null where they are not, or rows are pieces.
Expr take_end(Rows& r) {
  const Var lane = r.columns.back().var;
  Expr end;
  for (const RowStep& s : r.steps) {
    if (s.kind != RowStep::Kind::Reduce) continue;
    const auto first = first_terms(s.value, identity_of(s.op, s.name->dtype));
    if (!first || first->v != lane) return {};
    if (end ? !structurally_equal(end, first->end) : uses_any(first->end, r.columns)) return {};
    end = first->end;
  }
  if (!end || r.columns.size() != 1 || uses_any(end, r.c.axes)) return {};
  for (RowStep& s : r.steps) {
    const Select* k = as<Select>(s.value);
    if (s.kind == RowStep::Kind::Reduce) s.value = Expr(k->yes);
    if (s.kind != RowStep::Kind::Row || !k || !as_const_number(k->no)) continue;
    const auto first = first_terms(s.value, k->no);
    if (!first || first->v != lane || !structurally_equal(first->end, end)) continue;
    s.behind = k->no;
    s.value = first->value;
  }
  return max(min(end, Expr(r.columns.back().extent)), Expr(0));
}

class Builder {
 public:
  /// `end`: of what is reduced; null: all.
  Builder(const Rows& r, const RowsPlan& plan, const Expr& end)
      : r_(r),
        plan_(plan),
        end_(end ? Expr(length_) : Expr()),
        end_value_(end),
        pieces_(r.columns.begin(), r.columns.end() - 1),
        lane_(r.columns.back().var),
        n_(r.columns.back().extent.value),
        ends_(bool(end) && std::all_of(r.steps.begin(), r.steps.end(), [](const RowStep& s) {
                return s.kind != RowStep::Kind::Row || bool(s.behind);
              })) {}

  Stmt build() {
    for (const auto* axes : {&r_.c.axes, &pieces_})
      for (const Axis& a : *axes) at_.push_back({a.var, Expr(a.var)});
    Stmt body = steps(0);
    for (const RowStep& k : r_.steps)
      if (k.kind == RowStep::Kind::Keep && k.kept->scope == Scope::Stack) body = alloc(k.kept, body);
    for (size_t i = r_.c.axes.size(); i-- > (plan_.inner_parts > 1 ? 2u : 1u);)
      body = loop(r_.c.axes[i].var, r_.c.axes[i].extent, body);
    if (!r_.c.axes.empty()) body = outermost(body);
    return end_ ? let(length_, end_value_, body) : body;
  }

 private:
  Stmt outermost(const Stmt& body) {
    const Axis& a = r_.c.axes[0];
    const int64_t rows = a.extent.value, parts = plan_.parts;
    if (plan_.inner_parts > 1) {  // a few rows of many
      const Axis& b = r_.c.axes[1];
      const Var part = make_var("part");
      const int64_t n = plan_.inner_parts, each = b.extent.value / n;
      const Expr begin = apply(Op::Mod, {Expr(part), Expr(n)}) * Expr(each);
      const Stmt inner = loop(b.var, each, body, ForKind::Serial, begin);
      return loop(part, rows * n, let(a.var, Expr(part) / Expr(n), inner), ForKind::Parallel);
    }
    if (parts == 1) return loop(a.var, a.extent, body);
    if (parts == rows && (parts > kMostParts || parts < kFewestParts))
      return loop(a.var, a.extent, body, ForKind::Parallel);
    const Var part = make_var("part");
    const int64_t each = rows / parts;
    return loop(part, parts, loop(a.var, each, body, ForKind::Serial, Expr(part) * Expr(each)), ForKind::Parallel);
  }

  LanePoint point(const Expr& base, const Expr& count = {}) const { return {at_, lane_, base, count, {}}; }

  Stmt steps(size_t i) {
    if (i == r_.steps.size()) return {};
    const RowStep& s = r_.steps[i];
    switch (s.kind) {
      case RowStep::Kind::Scalar: return let(s.name, scalar_form(s.value, at_), steps(i + 1));
      case RowStep::Kind::Value: return store(r_.c.out, {index_at(r_.c.out_index, at_)}, scalar_form(s.value, at_));
      case RowStep::Kind::Row: return row(s);
      case RowStep::Kind::Keep: {
        const bool next = !end_ && i + 1 < r_.steps.size() && r_.steps[i + 1].kind == RowStep::Kind::Reduce;
        if (next) return reduce(r_.steps[i + 1], &s, i + 2);
        return seq({row(s), steps(i + 1)});
      }
      case RowStep::Kind::Reduce: return reduce(s, nullptr, i + 1);
    }
    return {};
  }

  Stmt row(const RowStep& s) {
    const bool keeps = s.kind == RowStep::Kind::Keep;
    const auto part = [&](const Expr& offset, const Expr& count) {
      return store_lanes(keeps ? s.kept : r_.c.out, keeps ? r_.kept_index : r_.c.out_index, s.value,
                         point(offset, count));
    };
    if (!ends_) return over_lanes("v", n_, part);
    const Var v = make_var("v");
    const Expr done = end_ / lanes() * lanes();
    const Stmt elements = seq({loop(v, end_ / lanes(), part(Expr(v) * lanes(), {})), part(done, end_ - done)});
    if (keeps) return elements;
    const Var k = make_var("k");
    Point at = at_;
    at.push_back({lane_, Expr(k)});
    const Stmt behind = store(r_.c.out, {index_at(r_.c.out_index, at)}, s.behind);
    return seq({elements, loop(k, Expr(n_) - end_, behind, ForKind::Serial, end_)});
  }

  // One value of a row; `keep` is stored on the way. What is left of the row joins in lanes that exist.
  Stmt reduce(const RowStep& s, const RowStep* keep, size_t next) {
    const int64_t ways = plan_.accumulators;
    const DType t = s.name->dtype;
    const Expr identity = s.op == Op::Add ? zero(t) : s.op == Op::Max ? lowest(t) : highest(t);
    const Buffer acc = make_buffer("acc", t, {Dim(kMaxLanes * ways)}, Scope::Register);
    auto vector_index = [&](const Expr& u) { return Exprs{ramp(u * lanes())}; };
    auto ways_loop = [&](const std::function<Stmt(const Expr& u)>& f) {
      if (ways == 1) return f(Expr(0));
      const Var u = make_var("u");
      return loop(u, ways, f(Expr(u)), ForKind::Unroll);
    };
    auto join = [&](const Expr& u, const Expr& base, const Expr& count) {
      LanePoint p = point(base, count);
      if (!keep) return store(acc, vector_index(u), broadcast(vector_form(s.value, p)), s.op, count);
      // Read back from memory, a partial vector would have to wait until it has got there.
      const Buffer kept = make_buffer("kept", t, {Dim(kMaxLanes)}, Scope::Register);
      const Stmt value = store(kept, {ramp(0)}, broadcast(vector_form(keep->value, p)));
      p.acc = load(kept, {ramp(0)});
      const Expr stands = load(make_buffer("kept", t, {}, Scope::Register), {});
      const Expr term = rewrite(s.value, [&](const Expr& e) {
        const Load* l = as<Load>(e);
        return l && l->buffer == keep->kept ? stands : Expr();
      });
      return alloc(kept, seq({value, store_lanes(keep->kept, r_.kept_index, stands, p),
                              store(acc, vector_index(u), broadcast(vector_form(term, p)), s.op, count)}));
    };
    const Stmt start = ways_loop([&](const Expr& u) { return store(acc, vector_index(u), broadcast(identity)); });
    const Var v = make_var("v");
    const Expr n = end_ ? end_ : Expr(n_), groups = n / Expr(ways) / lanes(), done = groups * Expr(ways) * lanes();
    const Stmt main =
        loop(v, groups, ways_loop([&](const Expr& u) { return join(u, (Expr(v) * Expr(ways) + u) * lanes(), {}); }));
    Stmt rest;
    if (bool(end_) || n_ % (ways * kMaxLanes) != 0)
      rest = ways_loop([&](const Expr& u) { return join(u, done + u * lanes(), n - done - u * lanes()); });
    Stmt all = seq({main, rest});
    for (size_t i = pieces_.size(); i-- > 0;) all = loop(pieces_[i].var, pieces_[i].extent, all);
    return alloc(acc, seq({start, all, let(s.name, joined(s, acc, ways), steps(next))}));
  }

  // The lanes joined.
  Expr joined(const RowStep& s, const Buffer& acc, int64_t ways) const {
    Expr all;
    for (int64_t u = 0; u < ways; u++) {
      const Expr part = load(acc, {ramp(u == 0 ? Expr(0) : Expr(u) * lanes())});
      all = all ? apply(s.op, {all, part}) : part;
    }
    const Op over = s.op == Op::Add ? Op::ReduceAdd : s.op == Op::Max ? Op::ReduceMax : Op::ReduceMin;
    const Expr value = apply(over, {all});
    const auto init = as_const_number(s.init);
    const bool neutral = init && (s.op == Op::Add   ? *init == 0
                                  : s.op == Op::Max ? *init == -INFINITY
                                                    : *init == INFINITY);
    return neutral ? value : apply(s.op, {scalar_form(s.init, at_), value});
  }

  const Rows& r_;
  const RowsPlan plan_;
  const Var length_ = make_var("length");
  const Expr end_, end_value_;
  const std::vector<Axis> pieces_;  // of a row, each of n_ elements side by side
  const Var lane_;
  const int64_t n_;
  const bool ends_;  // rows, too, end where the reductions do
  Point at_;
};

// Whether `name` is a sum of e^(x - m) of a row, m being the largest x: then it is one at least (or NaN).
bool is_one_at_least(const Rows& r, const Expr& name) {
  const VarRef* v = as<VarRef>(name);
  auto step_of = [&](const VarRef* of) {
    return std::find_if(r.steps.begin(), r.steps.end(),
                        [&](const RowStep& s) { return of && s.kind == RowStep::Kind::Reduce && s.name == of->var; });
  };
  const auto sum = step_of(v);
  if (sum == r.steps.end() || sum->op != Op::Add || as_const_number(sum->init) != 0.0) return false;
  Expr value = sum->value;
  for (const RowStep& s : r.steps)
    if (const Load* l = as<Load>(value); l && s.kind == RowStep::Kind::Keep && l->buffer == s.kept) value = s.value;
  const Apply* e = as<Apply>(value);
  const Apply* d = e && e->op == Op::Exp ? as<Apply>(e->args[0]) : nullptr;
  const auto largest = d && d->op == Op::Sub ? step_of(as<VarRef>(d->args[1])) : r.steps.end();
  return largest != r.steps.end() && largest->op == Op::Max && structurally_equal(largest->value, d->args[0]);
}

// x / sum becomes x * (1 / sum) where that cannot overflow.
Expr with_inverses(const Rows& r, const Expr& e) {
  return rewrite(e, [&](const Expr& x) -> Expr {
    const Apply* k = as<Apply>(x);
    if (!k || k->op != Op::Div || !is_one_at_least(r, k->args[1])) return {};
    return k->args[0] * (make_float(x->dtype, 1) / k->args[1]);
  });
}

// What is costly and the same for a whole row is computed in a step of its own.
void name_invariants(Rows& r) {
  const Var lane = r.columns.back().var;
  const std::vector<Axis> pieces(r.columns.begin(), r.columns.end() - 1);
  for (size_t i = 0; i < r.steps.size(); i++) {
    if (!along_row(r.steps[i])) continue;
    std::vector<RowStep> named;
    std::function<Expr(const Expr&)> split = [&](const Expr& e) -> Expr {
      if (const Cast* c = as<Cast>(e)) return cast(e->dtype, split(c->value), c->saturate);
      if (const Select* c = as<Select>(e)) return select(split(c->condition), split(c->yes), split(c->no));
      const Apply* k = as<Apply>(e);
      if (!k) return e;
      if (!uses_var(e, lane) && !uses_any(e, pieces) && is_float(e->dtype) && !is_narrow_float(e->dtype) &&
          (is_costly(e) || k->op == Op::Div)) {
        for (const RowStep& s : named)
          if (structurally_equal(s.value, e)) return Expr(s.name);
        const Var v = make_var(k->op == Op::Div ? "inverse" : std::string(info(k->op).name), e->dtype);
        named.push_back({RowStep::Kind::Scalar, e, Op::Add, {}, v, nullptr});
        return Expr(v);
      }
      Exprs args;
      for (const Expr& a : k->args) args.push_back(split(a));
      return apply(k->op, std::move(args));
    };
    r.steps[i].value = split(with_inverses(r, r.steps[i].value));
    const bool behind_kept = i > 0 && r.steps[i - 1].kind == RowStep::Kind::Keep;
    r.steps.insert(r.steps.begin() + std::ptrdiff_t(behind_kept ? i - 1 : i), named.begin(), named.end());
    i += named.size();
  }
}

}  // namespace

std::optional<Scheduled> schedule_rows(const TemplateArgs& a) {
  if (a.options.strict_fp) return {};  // lanes change the order of sums
  auto r = match_rows(a.fn, KeptRows::InResult, RowForm::Strict, a.options.open_axes);
  const Expr end = r ? take_end(*r) : Expr();
  if (!r || !all_vector_forms(*r)) return {};
  name_invariants(*r);
  Scheduled s;
  s.body = Builder(*r, decide(*r, a.plan, !a.options.open_axes.empty()), end).build();
  bind_operands(s, r->c);
  s.family = "rows";
  s.description = "rows of " + to_text(points(r->columns)) + " in vectors, sums over the lanes joined at the end";
  return s;
}

}  // namespace tc
