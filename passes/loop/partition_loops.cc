// partition_loops: cuts a loop in parts in which its conditions are decided.
//   for t in 0 .. +7:                             for t in 0 .. +6:
//     for i in 0 .. +min(16, 100 - t * 16):  ->     for i in 0 .. +16:
//       y[t * 16 + i] = ...                           y[t * 16 + i] = ...
//                                                 for i in 0 .. +4:
//                                                   y[i + 96] = ...
// What is compared must depend on the loop's variable alone: c * v + k against 0. Parallel, vector and GPU loops stay
// whole: their number of iterations is the schedule's; so do loops with barriers, whose iterations overlap on purpose.
// Leaves simplified statements.
#include "passes/loop/partition_loops.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

constexpr size_t kMaxParts = 4;  // of one loop
constexpr int kMaxBody = 300;    // expressions of a body that is copied
constexpr int kMaxCopies = 16;   // of an innermost body, by nested cuts

struct Bounds {
  int64_t begin, end;
};

// f = c * v + k, a line in the loop's variable.
struct Slope {
  int64_t c, k;
  /// The v from which on "f < 0" differs from before.
  int64_t negative() const { return c > 0 ? -floor_div_int(k, c) : floor_div_int(k, -c) + 1; }
  /// The v from which on "f <= 0" differs from before.
  int64_t not_positive() const { return c > 0 ? floor_div_int(-k, c) + 1 : -floor_div_int(-k, -c); }
};

std::optional<Slope> slope(const Linear& l, const Var& v) {
  if (l.terms.size() != 1) return std::nullopt;
  auto* r = as<VarRef>(l.terms[0].atom);
  Slope s{l.terms[0].coefficient, l.constant};
  if (!r || r->var != v || s.c == INT64_MIN || s.k == INT64_MIN) return std::nullopt;
  return s;
}

Linear difference(const Expr& a, const Expr& b) {
  Linear d = linear_form(a);
  d.add(linear_form(b), -1);
  return d;
}

bool is_index(const Expr& e) { return e->dtype == DType::I64 && !e->vector; }

// The cuts that decide every comparison, minimum and maximum in `root`.
void cuts_of(const Expr& root, const Var& v, Bounds b, std::vector<int64_t>& cuts) {
  auto inside = [&](int64_t cut) { return cut > b.begin && cut < b.end; };
  auto add = [&](int64_t cut) {
    if (inside(cut)) cuts.push_back(cut);
  };
  walk(root, [&](const Expr& e) {
    auto* a = as<Apply>(e);
    if (!a || a->args.size() != 2 || !is_index(a->args[0]) || !is_index(a->args[1])) return true;
    auto f = slope(difference(a->args[0], a->args[1]), v);
    if (!f) return true;
    int64_t negative = f->negative(), not_positive = f->not_positive();
    if (a->op == Op::Lt || a->op == Op::Ge) add(negative);
    if (a->op == Op::Le || a->op == Op::Gt) add(not_positive);
    if (a->op == Op::Eq || a->op == Op::Ne) add(negative), add(not_positive);
    // Where both sides are equal either one may be taken: one cut, and none if that decides at an end.
    if ((a->op == Op::Min || a->op == Op::Max) && inside(negative)) add(not_positive);
    return true;
  });
}

int size_of(const Stmt& s) {
  int n = 0;
  walk(s, {}, [&](const Expr&) { return ++n <= kMaxBody; });
  return n;
}

bool has_barrier(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    found |= as<Barrier>(x) != nullptr;
    return !found;
  });
  return found;
}

class Partitioner {
 public:
  explicit Partitioner(int copies) : copies_(copies) {}

  Stmt stmt(const Stmt& s, const Ranges& ranges) {
    if (!s) return s;
    return visit(
        s, [&](const Store&) { return s; }, [&](const For& k) { return for_(s, k, ranges); },
        [&](const While& k) {
          Stmt body = stmt(k.body, ranges);
          return body.same_as(k.body) ? s : while_loop(k.condition, body);
        },
        [&](const If& k) {
          Stmt then = stmt(k.then, ranges), otherwise = stmt(k.otherwise, ranges);
          return then.same_as(k.then) && otherwise.same_as(k.otherwise) ? s : if_then(k.condition, then, otherwise);
        },
        [&](const Let& k) {
          Stmt body = stmt(k.body, ranges);
          return body.same_as(k.body) ? s : let(k.var, k.value, body);
        },
        [&](const Alloc& k) {
          Stmt body = stmt(k.body, ranges);
          return body.same_as(k.body) ? s : alloc(k.buffer, body);
        },
        [&](const Alias& k) {
          Stmt body = stmt(k.body, ranges);
          return body.same_as(k.body) ? s : alias(k.view, k.base, k.offset, body);
        },
        [&](const Seq& k) { return rewrite_each(k, s, [&](const Stmt& x) { return stmt(x, ranges); }); },
        [&](const Barrier&) { return s; }, [&](const Prefetch&) { return s; }, [&](const Intrin&) { return s; },
        [&](const Launch&) { return s; },
        [&](const Comment& k) {
          Stmt body = stmt(k.body, ranges);
          return body.same_as(k.body) ? s : comment(k.text, body);
        });
  }

 private:
  Stmt for_(const Stmt& s, const For& k, const Ranges& ranges) {
    auto begin = as_const_int(k.begin), extent = as_const_int(k.extent);
    bool may_cut = (k.kind == ForKind::Serial || k.kind == ForKind::Unroll) && begin && extent && !has_barrier(k.body);
    std::vector<int64_t> cuts;
    if (may_cut) {
      walk(k.body, {}, [&](const Expr& e) {
        cuts_of(e, k.var, {*begin, *begin + *extent}, cuts);
        return false;  // cuts_of goes down itself
      });
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (cuts.empty() || size_of(k.body) > kMaxBody || cuts.size() >= kMaxParts ||
        copies_ * int(cuts.size() + 1) > kMaxCopies)
      return whole(s, k, ranges);
    Stmts parts;
    Partitioner inner(copies_ * int(cuts.size() + 1));
    cuts.push_back(*begin + *extent);
    int64_t from = *begin;
    for (int64_t to : cuts) {
      Stmt part = simplify(loop(k.var, to - from, k.body, k.kind, from), ranges);
      if (auto* f = as<For>(part); f && f->var == k.var)
        parts.push_back(inner.whole(part, *f, ranges));
      else
        parts.push_back(inner.stmt(part, ranges));
      from = to;
    }
    return seq(std::move(parts));
  }

  Stmt whole(const Stmt& s, const For& k, const Ranges& ranges) {
    Ranges inside = ranges;
    inside[k.var.get()] = loop_range(k, ranges);
    Stmt body = stmt(k.body, inside);
    return body.same_as(k.body) ? s : loop(k.var, k.extent, body, k.kind, k.begin);
  }

  int copies_;  // how often this statement has been copied
};

}  // namespace

Stmt partition_loops(const Stmt& s, const Ranges& ranges) { return Partitioner(1).stmt(simplify(s, ranges), ranges); }

}  // namespace tc
