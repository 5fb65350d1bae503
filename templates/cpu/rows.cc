// Reductions along rows that lie contiguous in memory, with everything around them: softmax, layer normalisation,
// means.
//
//   for rows:                                 shared among threads
//     m = max(row); s = sum(exp(row - m))     vectors with several accumulators, joined over the lanes at the end
//     row' = exp(row - m) / s                 vectors again; the row is still in the first-level cache
//
// Stages over whole rows (templates/rows.h) are written in place into what reads them, unless they are costly and read twice: these are
// stored to the row of the result, and read back. What has one value per row is a scalar.
#include "templates/rows.h"

#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/lanes.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

using Point = std::vector<std::pair<Var, Expr>>;

bool all_vector_forms(const Rows& r) {
  const Var lane = r.columns[0].var;
  if (r.columns[0].extent.value < 8) return false;
  for (const RowStep& s : r.steps)
    if (along_row(s) ? !has_vector_form(s.value, lane) : uses_var(s.value, lane)) return false;
  return true;
}

class Builder {
 public:
  explicit Builder(const Rows& r) : r_(r), lane_(r.columns[0].var), n_(r.columns[0].extent.value) {}

  Stmt build() {
    const int64_t work = points(r_.c.axes) * n_ * int64_t(r_.steps.size());
    for (const Axis& a : r_.c.axes) at_.push_back({a.var, Expr(a.var)});
    Stmt body = steps(0);
    for (size_t i = r_.c.axes.size(); i-- > 1;) body = loop(r_.c.axes[i].var, r_.c.axes[i].extent, body);
    if (r_.c.axes.empty()) return body;
    return outermost(body, work >= kParallelThreshold);
  }

 private:
  // Rows in at most 32 equal parts where that is possible.
  Stmt outermost(const Stmt& body, bool parallel) {
    const Axis& a = r_.c.axes[0];
    if (!parallel) return loop(a.var, a.extent, body);
    int64_t parts = 32;
    while (a.extent.value % parts != 0) parts--;
    if (parts < 4) return loop(a.var, a.extent, body, ForKind::Parallel);
    const int64_t each = a.extent.value / parts;
    const Var part = make_var("part");
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
        const bool next = i + 1 < r_.steps.size() && r_.steps[i + 1].kind == RowStep::Kind::Reduce;
        if (next) return reduce(r_.steps[i + 1], &s, i + 2);
        return seq({row(s), steps(i + 1)});
      }
      case RowStep::Kind::Reduce: return reduce(s, nullptr, i + 1);
    }
    return {};
  }

  Stmt row(const RowStep& s) {
    const Expr& index = s.kind == RowStep::Kind::Keep ? r_.kept_index : r_.c.out_index;
    return over_lanes("v", n_, [&](const Expr& offset, const Expr& count) {
      return store_lanes(r_.c.out, index, s.value, point(offset, count));
    });
  }

  // One value of a row; `keep` is stored on the way.
  Stmt reduce(const RowStep& s, const RowStep* keep, size_t next) {
    const int64_t ways = n_ % (kMaxLanes * 4) == 0 && n_ >= 256 ? 4 : n_ % (kMaxLanes * 2) == 0 ? 2 : 1;
    const Expr identity = s.op == Op::Add   ? make_float(DType::F32, 0)
                          : s.op == Op::Max ? lowest(DType::F32)
                                            : highest(DType::F32);
    const Buffer acc = make_buffer("acc", DType::F32, {Dim(kMaxLanes * ways)}, Scope::Register);
    auto cell = [&](const Expr& u) { return Exprs{ramp(u * lanes())}; };
    auto ways_loop = [&](const std::function<Stmt(const Expr& u)>& f) {
      if (ways == 1) return f(Expr(0));
      const Var u = make_var("u");
      return loop(u, ways, f(Expr(u)), ForKind::Unroll);
    };
    const Stmt start = ways_loop([&](const Expr& u) { return store(acc, cell(u), broadcast(identity)); });
    const Var v = make_var("v");
    const Stmt body = ways_loop([&](const Expr& u) {
      const Expr base = (Expr(v) * Expr(ways) + u) * lanes();
      const Stmt kept = keep ? store_lanes(r_.c.out, r_.kept_index, keep->value, point(base)) : Stmt();
      return seq({kept, store(acc, cell(u), broadcast(vector_form(s.value, point(base))), s.op)});
    });
    const Stmt main = loop(v, ways == 1 ? Expr(n_) / lanes() : Expr(n_ / ways) / lanes(), body);
    return alloc(acc, seq({start, main, finish(s, keep, acc, ways, next)}));
  }

  // The lanes joined, what is left of the row, and the steps that use the value.
  Stmt finish(const RowStep& s, const RowStep* keep, const Buffer& acc, int64_t ways, size_t next) {
    Expr all;
    for (int64_t u = 0; u < ways; u++) {
      const Expr part = load(acc, {ramp(u == 0 ? Expr(0) : Expr(u) * lanes())});
      all = all ? apply(s.op, {all, part}) : part;
    }
    const Op over = s.op == Op::Add ? Op::ReduceAdd : s.op == Op::Max ? Op::ReduceMax : Op::ReduceMin;
    Expr value = apply(over, {all});
    const auto init = as_const_number(s.init);
    const bool neutral = init && (s.op == Op::Add   ? *init == 0
                                  : s.op == Op::Max ? *init == -INFINITY
                                                    : *init == INFINITY);
    if (!neutral) value = apply(s.op, {scalar_form(s.init, at_), value});
    if (n_ % kMaxLanes == 0) return let(s.name, value, steps(next));
    const Buffer total = make_buffer("total", DType::F32, {}, Scope::Register);
    const Var column = make_var(lane_->name);
    Point at = at_;
    at.push_back({lane_, Expr(column)});
    const Expr done = Expr(n_) / lanes() * lanes();
    const Stmt kept = keep ? store_lanes(r_.c.out, r_.kept_index, keep->value, point(done, Expr(n_) - done)) : Stmt();
    const Stmt one = store(total, {}, scalar_form(s.value, at), s.op);
    return alloc(total, seq({kept, store(total, {}, value), loop(column, Expr(n_) - done, one, ForKind::Serial, done),
                             let(s.name, load(total, {}), steps(next))}));
  }

  const Rows& r_;
  const Var lane_;
  const int64_t n_;
  Point at_;
};

}  // namespace

std::optional<Scheduled> schedule_rows(const TemplateArgs& a) {
  if (a.options.strict_fp) return {};  // lanes change the order of sums
  const auto r = match_rows(a.fn, KeptRows::InResult, RowForm::Strict);
  if (!r || !all_vector_forms(*r)) return {};
  Scheduled s;
  s.body = Builder(*r).build();
  bind_operands(s, r->c);
  s.family = "rows";
  s.words = "rows of " + to_text(r->columns[0].extent.value) + " in vectors, sums over the lanes joined at the end";
  return s;
}

}  // namespace tc
