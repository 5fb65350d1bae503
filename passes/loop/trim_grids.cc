// A launch covers tensors of the largest sizes. Where the host knows how many elements a run needs, blocks behind the last
// of these are not launched; what the last block computes beyond it has memory of its own.
//   block.y b in 0 .. +81:                               launch of (n * 144 + 15) / 16 blocks, from 1 to 81
//     row = b * 16 + ...
//     y[floor_div(row, 144) * 2304 + ...] = ...    ->
//
// A block is needed up to the last that may store in front of the end. A store lies at least at
//   times * floor((of * b + plus) / by)
// along the axis, which grows with the block's number b.
//
// Preconditions, for each axis of a grid: every store of the launch is to an output that is needed up to a count, at such a
// place, or to memory of a block or a thread; no other launch of the kernel reads that output.
#include "passes/loop/trim_grids.h"

#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/launches.h"
#include "passes/loop/live_stores.h"

namespace tc {
namespace {

constexpr int64_t kNoCap = INT64_MAX;

/// At least min(cap, times * floor((of * b + plus) / by)); times, of and by are positive.
struct Steps {
  int64_t times = 1, of = 1, plus = 0, by = 1, cap = kNoCap;
};

int64_t ceil_div_int(int64_t a, int64_t b) { return -floor_div_int(-a, b); }

class LowerBound {
 public:
  LowerBound(const Var& b, const Ranges& ranges) : b_(b), ranges_(ranges) {}

  /// Nothing: not known to grow with b.
  std::optional<Steps> of(const Linear& l) const {
    std::optional<Steps> most;  // the term that grows fastest
    int64_t rest = l.constant;
    for (const Linear::Term& t : l.terms) {
      auto s = t.coefficient > 0 ? of_atom(t.atom) : std::nullopt;
      if (!s) {
        const Range r = interval(t.atom, ranges_);
        const int64_t end = t.coefficient > 0 ? r.min : r.max;
        if (!bounded({end, end})) return std::nullopt;
        rest = checked_add(rest, checked_mul(t.coefficient, end));
        continue;
      }
      multiply(*s, t.coefficient);
      if (!most) {
        most = s;
      } else if (most->by == 1 && s->by == 1 && most->cap == kNoCap && s->cap == kNoCap) {
        most = Steps{1, checked_add(most->of, s->of), checked_add(most->plus, s->plus), 1};
      } else {
        if (double(s->times) * double(s->of) / double(s->by) >
            double(most->times) * double(most->of) / double(most->by))
          std::swap(*most, *s);
        rest = checked_add(rest, std::min(s->cap, checked_mul(s->times, floor_div_int(s->plus, s->by))));
      }
    }
    if (!most) return most;
    most->plus = checked_add(most->plus, checked_mul(floor_div_int(rest, most->times), most->by));
    if (most->cap != kNoCap) most->cap = checked_add(most->cap, rest);
    return most;
  }

 private:
  /// Where nothing is divided, `times` is 1.
  static void multiply(Steps& s, int64_t n) {
    if (s.by == 1) {
      s.of = checked_mul(s.of, n);
      s.plus = checked_mul(s.plus, n);
    } else {
      s.times = checked_mul(s.times, n);
    }
    if (s.cap != kNoCap) s.cap = checked_mul(s.cap, n);
  }

  std::optional<Steps> of_atom(const Expr& e) const {
    if (const VarRef* v = as<VarRef>(e)) return v->var == b_ ? std::optional(Steps{}) : std::nullopt;
    const Apply* a = as<Apply>(e);
    if (!a || a->args.size() != 2) return std::nullopt;
    const auto c = as_const_int(a->args[1]);
    if (!c) return std::nullopt;
    auto s = of(linear_form(a->args[0]));
    if (!s) return s;
    if (a->op == Op::Min) {
      s->cap = std::min(s->cap, *c);
      return s;
    }
    if (a->op == Op::Max) return s;
    if (a->op != Op::FloorDiv || *c <= 0) return std::nullopt;
    if (s->cap != kNoCap) s->cap = floor_div_int(s->cap, *c);
    if (*c % s->times == 0)
      s->by = checked_mul(s->by, *c / s->times), s->times = 1;
    else if (s->times % *c == 0)
      s->times /= *c;
    else
      return std::nullopt;
    return s;
  }

  const Var& b_;
  const Ranges& ranges_;
};

class TrimGrids {
 public:
  TrimGrids(const Stmt& body, const std::vector<KernelInterface::Live>& live) : stores_(body, live) {
    each_launch(body, [&](const Stmt& s) {
      launches_.push_back(s);
      return s;
    });
  }

  GridSizes run() const {
    GridSizes sizes;
    for (const Stmt& s : launches_)
      walk(s, [&](const Stmt& x) {
        const For* f = as<For>(x);
        if (!f || !is_block(f->kind)) return true;
        if (const auto size = size_of(s, *f)) sizes[f->var.get()] = *size;
        return true;
      });
    return sizes;
  }

 private:
  std::optional<Expr> size_of(const Stmt& launch, const For& f) const {
    const auto extent = as_const_int(f.extent);
    if (!extent || *extent < 2) return std::nullopt;
    Exprs ends;
    const auto of_block = [](const Buffer& b) { return b->scope != Scope::Global && b->scope != Scope::Workspace; };
    const bool ok = stores_.all(launch, {}, of_block, [&](const KernelInterface::Live& l, const LiveCoordinate& c) {
      if (!l.on_host || is_read_elsewhere(launches_, launch, l.memory)) return false;
      const auto here = end_of(f.var, *extent, l, c);
      if (here && std::none_of(ends.begin(), ends.end(), [&](const Expr& e) { return structurally_equal(e, *here); }))
        ends.push_back(*here);
      return here.has_value();
    });
    if (!ok || ends.empty()) return std::nullopt;
    Expr size = ends[0];
    for (size_t k = 1; k < ends.size(); k++) size = max(size, ends[k]);
    return max(min(size, Expr(*extent)), Expr(int64_t(1)));
  }

  /// The first block that a store does not need: of * b + plus >= by * (elements that are needed) / times, rounded up.
  std::optional<Expr> end_of(const Var& block, int64_t extent, const KernelInterface::Live& l,
                             const LiveCoordinate& c) const {
    const auto s = LowerBound(block, stores_.ranges).of(c.at);
    if (!s) return std::nullopt;
    const int64_t group = std::gcd(s->times, c.unit), part = s->times / group;  // so many elements a step
    if (part != 1 && group != c.unit) return std::nullopt;
    const int64_t by = checked_mul(s->by, c.unit / group), common = std::gcd(by, s->of);
    const int64_t times = by / common, of = s->of / common, plus = floor_div_int(s->plus, common) - (of - 1);
    // Stores that a cap keeps in front of the end come from blocks that are needed anyway, if these are all.
    const int64_t largest = l.dims[size_t(l.axis)];
    const auto blocks = [&](int64_t n) { return floor_div_int(checked_mul(times, ceil_div_int(n, part)) - plus, of); };
    const int64_t all = blocks(largest);
    if (blocks(1) >= extent) return std::nullopt;
    if (s->cap < checked_mul(c.unit, largest) && (all < extent || s->cap < checked_mul(c.unit, largest - 1)))
      return std::nullopt;
    Expr n = l.end;
    if (part != 1) n = apply(Op::Div, {n + Expr(part - 1), Expr(part)});
    Linear needed;
    needed.add(n, times);
    needed.constant = -plus;
    const Expr e = to_expr(needed);
    return of == 1 ? e : apply(Op::Div, {e, Expr(of)});
  }

  LiveStores stores_;
  Stmts launches_;
};

}  // namespace

GridSizes trim_grids(const Stmt& body, const std::vector<KernelInterface::Live>& live) {
  return live.empty() ? GridSizes() : TrimGrids(body, live).run();
}

}  // namespace tc
