// Sums along one axis in which every result is the one before it joined with a value: CumSum, CumProd.
//
//   for rows, 4 at a time:                            the axis lies innermost: one row's sums wait for each other,
//     sum[r] = first[r], y[r, 0] = sum[r]             those of several do not
//     for i in 1 .. n:
//       sum[r] = sum[r] + next[r, i], y[r, i] = sum[r]
//
//   for outer axes:                                   others lie inside: vectors along the last of them
//     y[0, v] = first[v]
//     for i in 1 .. n:
//       y[i, v] = y[i - 1, v] + next[i, v]
//
// The definition has the axis in front and moves it to its place afterwards; here results are written where they belong. Each
// sum is taken in the definition's order.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/template.h"
#include "templates/match/prefix.h"

namespace tc {
namespace {

constexpr int64_t kRows = 4, kShortestVector = 8;

class Builder {
 public:
  explicit Builder(const PrefixRows& p) : p_(p) {}

  // The loops around `body`, of which threads share the outermost.
  static Stmt around(const std::vector<Axis>& axes, Stmt body, bool parallel) {
    for (size_t d = axes.size(); d-- > 0;)
      body = loop(axes[d].var, axes[d].extent, body, d == 0 && parallel ? ForKind::Parallel : ForKind::Serial);
    return body;
  }

  Stmt vectors(const std::vector<Axis>& axes, const Axis& lane, bool parallel) const {
    auto row = [&](const Expr& value, const Expr& step) {
      return loop(lane.var, lane.extent, store(p_.c.out, {at(p_.out_index, step)}, value), ForKind::Vector);
    };
    const Var step = make_var(p_.step->name);
    const Expr before = load(p_.c.out, {at(p_.out_index, Expr(step) - Expr(1))});
    const Stmt next = row(apply(p_.op, {before, at(p_.next, step)}), step);
    return around(axes, seq({row(at(p_.first, 0), 0), from_second(step, next)}), parallel);
  }

  // So many sequences along `tile` at a time.
  Stmt registers(const std::vector<Axis>& axes, const Axis& tile, int64_t height, bool parallel) const {
    const int64_t whole = tile.extent.value / height, rest = tile.extent.value % height;
    const Var o = make_var(tile.var->name + "_o");
    const ForKind kind = parallel && axes.empty() ? ForKind::Parallel : ForKind::Serial;
    const Stmt full =
        whole == 1 ? sums(tile.var, height, 0) : loop(o, whole, sums(tile.var, height, Expr(o) * Expr(height)), kind);
    const Stmt last = rest > 0 ? sums(tile.var, rest, Expr(whole * height)) : Stmt();
    return around(axes, seq({full, last}), parallel);
  }

  // The sums of sequences base .. base + height - 1 along `tile`; of the only one where there is no such axis.
  Stmt sums(const Var& tile, int64_t height, const Expr& base) const {
    const Buffer sum = make_buffer("sum", p_.sum->dtype, height == 1 ? Shape{} : Shape{Dim(height)}, Scope::Register);
    auto each = [&](const Expr& value, const Expr& step, std::optional<Op> join) {
      const Var r = make_var("r");
      const Exprs mine = height == 1 ? Exprs{} : Exprs{Expr(r)};
      const Expr sequence = height == 1 ? base : base + Expr(r);
      auto here = [&](const Expr& e) {
        const Expr point = tile ? substitute(e, {{tile.get(), sequence}}) : e;
        return at(point, step);
      };
      const Expr stored = with_reduced(p_.stored, p_.sum, load(sum, mine));
      const Stmt s = seq({store(sum, mine, here(value), join), store(p_.c.out, {here(p_.out_index)}, stored)});
      return height == 1 ? s : loop(r, height, s, ForKind::Unroll);
    };
    const Var step = make_var(p_.step->name);
    return alloc(sum, seq({each(p_.first, 0, {}), from_second(step, each(p_.next, step, p_.op))}));
  }

 private:
  Expr at(const Expr& e, const Expr& step) const { return simplify(substitute(e, {{p_.step.get(), step}})); }
  Stmt from_second(const Var& step, const Stmt& body) const {
    return loop(step, p_.steps - 1, body, ForKind::Serial, 1);
  }

  const PrefixRows& p_;
};

}  // namespace

std::optional<Scheduled> schedule_prefix_sums(const TemplateArgs& a) {
  const auto p = match_prefix_rows(a.fn, a.options.open_axes.empty());
  if (!p) return {};
  std::vector<Axis> axes = p->outer;
  axes.insert(axes.end(), p->inner.begin(), p->inner.end());
  const int64_t sequences = points(axes);
  const bool lanes = !p->inner.empty() && axes.back().extent.value >= kShortestVector;
  if (lanes && !as<Load>(p->stored)) return {};  // the results are no sums
  const bool pays = sequences * p->steps >= kParallelThreshold;
  Scheduled s;
  const Builder loops(*p);
  const Axis innermost = axes.empty() ? Axis{nullptr, Dim(1)} : axes.back();
  if (!axes.empty()) axes.pop_back();
  const int64_t n = innermost.extent.value, height = p->inner.empty() ? std::min(kRows, n) : n;
  const int64_t outermost = !axes.empty() ? axes[0].extent.value : lanes ? 1 : n / height;
  const bool parallel = a.plan.flag("parallel", pays, outermost > 1, "there is nothing to share");
  s.body = lanes           ? loops.vectors(axes, innermost, parallel)
           : innermost.var ? loops.registers(axes, innermost, height, parallel)
                           : loops.sums(nullptr, 1, 0);
  s.description = lanes ? "vectors across the sums"
                        : to_text(height) + (height == 1 ? " sum" : " sums at a time") + " in registers";
  bind_operands(s, p->c);
  s.family = "prefix_sums";
  return s;
}

}  // namespace tc
