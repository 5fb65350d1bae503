// The proof that iterations do not meet: the difference of two index expressions is
//   sum(c_k * d_k) + slack,    d_k the difference of a term that both have, slack an interval for the rest.
// Sorted by |c_k|, every term with |c_k| > sum of the later |c_j| * max|d_j| + |slack| must have d_k = 0 where the sum
// is 0: the digits of a number in mixed radix. A loop whose variable follows from such terms (itself, or x / n and x %
// n) touches a cell in one iteration only.
#include "passes/schedule/dependence.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/print.h"
#include "ir/loop/simplifier.h"
#include "ir/loop/visit.h"
#include "passes/schedule/nest.h"

namespace tc {
namespace {

class Collector {
 public:
  explicit Collector(Ranges outer) : ranges_(std::move(outer)) {}

  void stmt(const Stmt& s) {
    if (!s) return;
    visit(
        s,
        [&](const Store& k) {
          loads(k.index), loads({k.value});
          if (k.count) loads({k.count});
          add(k.buffer, k.index, true, k.reduce);
        },
        [&](const For& k) {
          loads({k.begin, k.extent});
          const Ranges before = ranges_;
          ranges_[k.var.get()] = loop_range(k, before);
          out.bound.push_back(k.var);
          stmt(k.body);
          ranges_ = before;
        },
        [&](const While& k) { loads({k.condition}), stmt(k.body); },
        [&](const If& k) {
          loads({k.condition});
          under(k.condition, true, k.then);
          under(k.condition, false, k.otherwise);
        },
        [&](const Let& k) {
          loads({k.value});
          const Ranges before = ranges_;
          out.bound.push_back(k.var);
          if (!is_float(k.value->dtype) && !k.value->vector) {
            lets_[k.var.get()] = substitute(k.value, lets_);
            ranges_[k.var.get()] = interval(k.value, before);
          }
          stmt(k.body);
          ranges_ = before;
        },
        [&](const Alloc& k) {
          local_.insert(k.buffer.get());
          stmt(k.body);
        },
        [&](const Alias& k) { unknown("a view into another buffer"), stmt(k.body); },
        [&](const Seq& k) {
          for (const Stmt& x : k.list) stmt(x);
        },
        [&](const Barrier&) { out.has_barrier = true; }, [&](const Prefetch&) {},
        [&](const Intrin&) { unknown("an instruction"); }, [&](const Launch&) { unknown("a launch"); },
        [&](const Comment& k) { stmt(k.body); });
  }

  Accesses out;

 private:
  void unknown(const char* what) {
    if (out.opaque.empty()) out.opaque = what;
  }

  void under(const Expr& condition, bool holds, const Stmt& s) {
    if (!s) return;
    const Ranges before = ranges_;
    assume(ranges_, substitute(condition, lets_), holds);
    stmt(s);
    ranges_ = before;
  }

  void add(const Buffer& b, const Exprs& index, bool write, std::optional<Op> reduce) {
    if (local_.count(b.get()) != 0) return;
    Access a{b, {}, write, reduce, ranges_};
    for (const Expr& i : index) a.index.push_back(substitute(i, lets_));
    out.list.push_back(std::move(a));
  }

  void loads(const Exprs& list) {
    for (const Expr& e : list)
      walk(e, [&](const Expr& x) {
        if (const Load* l = as<Load>(x)) add(l->buffer, l->index, false, {});
        return true;
      });
  }

  Ranges ranges_;
  VarMap lets_;
  std::set<const BufferDef*> local_;  // looked up only
};

using Wide = __int128;

// Of what is not bounded: more than any sum of offsets.
Wide width(const Range& r) { return bounded(r) ? Wide(r.max) - r.min : Wide(1) << 100; }
Wide magnitude(int64_t v) { return v < 0 ? -Wide(v) : Wide(v); }

// Two instances of a nest: which terms have the same value in both when the accesses meet.
class Meeting {
 public:
  Meeting(const Access& a, const Access& b, const std::set<const VarDef*>& varies,
          const std::set<const BufferDef*>& written)
      : a_(a), b_(b), varies_(varies), written_(written) {
    const size_t rank = a.index.size();
    for (size_t d = 0; d < rank; d++) equate(a.index[d], b.index[d]);
    if (rank < 2 || !is_static(a.buffer->shape)) return;
    // Row-major offsets of the last dimensions together: the parts of a divided index meet again.
    Expr x = a.index[rank - 1], y = b.index[rank - 1];
    int64_t stride = 1;
    for (size_t d = rank - 1; d-- > 0;) {
      if (__builtin_mul_overflow(stride, a.buffer->shape[d + 1].value, &stride)) return;
      x = a.index[d] * Expr(stride) + x, y = b.index[d] * Expr(stride) + y;
      equate(x, y);
    }
  }

  bool impossible() const { return impossible_; }
  bool forces(const Var& v) {
    const auto here = a_.ranges.find(v.get()), there = b_.ranges.find(v.get());
    if (here != a_.ranges.end() && there != b_.ranges.end() && width(join(here->second, there->second)) == 0)
      return true;
    close();
    return has(Expr(v));
  }

 private:
  struct Term {
    Expr atom;
    int64_t coefficient;
    Wide width;
  };

  // Same value in both instances, whatever they are.
  bool is_fixed(const Expr& e) const {
    bool fixed = true;
    walk(e, [&](const Expr& x) {
      if (const VarRef* r = as<VarRef>(x)) fixed = fixed && varies_.count(r->var.get()) == 0;
      if (const Load* l = as<Load>(x)) fixed = fixed && written_.count(l->buffer.get()) == 0;
      return fixed;
    });
    return fixed;
  }
  static bool has_load(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      found = found || bool(as<Load>(x));
      return !found;
    });
    return found;
  }

  void equate(const Expr& x, const Expr& y) {
    if (x->vector || y->vector) return;
    const Linear l = linear_form(simplify(x, a_.ranges));
    Linear r = linear_form(simplify(y, b_.ranges));
    std::vector<Term> terms;
    Range slack{0, 0};
    if (__builtin_sub_overflow(l.constant, r.constant, &slack.min)) return;
    slack.max = slack.min;
    for (const Linear::Term& t : l.terms) {
      const auto other = std::find_if(r.terms.begin(), r.terms.end(), [&](const Linear::Term& o) {
        return o.coefficient == t.coefficient && same_atom(o.atom, t.atom);
      });
      const Range here = interval(t.atom, a_.ranges);
      if (other == r.terms.end()) {
        slack = slack + here * Range{t.coefficient, t.coefficient};
        continue;
      }
      const Range there = interval(other->atom, b_.ranges);
      r.terms.erase(other);
      if (!is_fixed(t.atom)) terms.push_back({t.atom, t.coefficient, width(join(here, there))});
    }
    for (const Linear::Term& t : r.terms)
      slack = slack + interval(t.atom, b_.ranges) * Range{t.coefficient, t.coefficient} * Range{-1, -1};
    if (bounded(slack)) force(terms, slack);
  }

  // How far the term may move the sum; what is not bounded counts as infinite.
  static Wide reach(const Term& t) {
    return t.width > (Wide(1) << 50) ? kInfinite : t.width * magnitude(t.coefficient);
  }

  void force(std::vector<Term>& terms, const Range& slack) {
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Term& p, const Term& q) { return magnitude(p.coefficient) > magnitude(q.coefficient); });
    Wide all = 0;
    for (const Term& t : terms) all = std::min(kInfinite, all + reach(t));
    if (Wide(slack.min) > all || Wide(slack.max) < -all) impossible_ = true;
    const Wide off = std::max(magnitude(slack.min), magnitude(slack.max));
    for (size_t k = 0; k < terms.size(); k++) {
      Wide rest = off;
      for (size_t j = k + 1; j < terms.size(); j++) rest = std::min(kInfinite, rest + reach(terms[j]));
      if (magnitude(terms[k].coefficient) <= rest) return;
      if (!has_load(terms[k].atom)) learn(terms[k].atom);
    }
  }

  bool has(const Expr& atom) const {
    return std::any_of(known_.begin(), known_.end(), [&](const Expr& e) { return same_atom(e, atom); });
  }
  void learn(const Expr& atom) {
    if (!has(atom)) known_.push_back(atom);
  }

  // x / n and x % n together are x.
  void close() {
    for (size_t sweep = 0; sweep <= known_.size(); sweep++)  // known_ grows on the way
      for (size_t j = 0; j < known_.size(); j++) {
        const Expr atom = known_[j];
        const Apply* low = as<Apply>(atom);
        const auto n = low && low->op == Op::FloorMod ? as_const_int(low->args[1]) : std::nullopt;
        if (!n || *n <= 0) continue;
        const Linear x = linear_form(low->args[0]);
        if (!is_known(floor_div_linear(x, *n, a_.ranges))) continue;
        if (x.single())
          learn(x.single());
        else
          equate(low->args[0], low->args[0]);
      }
  }

  bool is_known(const Linear& l) const {
    return std::all_of(l.terms.begin(), l.terms.end(),
                       [&](const Linear::Term& t) { return has(t.atom) || (is_fixed(t.atom) && !has_load(t.atom)); });
  }

  static constexpr Wide kInfinite = Wide(1) << 120;
  const Access &a_, &b_;
  const std::set<const VarDef*>& varies_;
  const std::set<const BufferDef*>& written_;
  Exprs known_;
  bool impossible_ = false;
};

std::string words(const Access& a) {
  std::string s = a.buffer->name + "[";
  for (size_t d = 0; d < a.index.size(); d++) s += (d > 0 ? ", " : "") + to_text(a.index[d]);
  s += "]";
  if (a.reduce) return "joins into " + s;
  return (a.write ? "writes " : "reads ") + s;
}

}  // namespace

Accesses accesses_of(const Stmt& s, const Ranges& outer) {
  Collector c(outer);
  c.stmt(s);
  return std::move(c.out);
}

std::vector<Conflict> conflicts(const Stmt& root, const Var& v, const Ranges& outer) {
  const auto site = find_loop(root, v);
  if (site && as_const_int(site->loop->extent).value_or(2) <= 1) return {};  // there is no other iteration
  const Accesses all = accesses_of(root, outer);
  if (!all.opaque.empty()) return {{nullptr, {}, "contains " + all.opaque}};
  if (all.has_barrier) return {{nullptr, {}, "contains a barrier"}};
  std::set<const VarDef*> varies;
  std::set<const BufferDef*> written;
  for (const Var& b : all.bound) varies.insert(b.get());
  for (const Access& a : all.list)
    if (a.write) written.insert(a.buffer.get());
  std::vector<Conflict> found;
  for (size_t i = 0; i < all.list.size(); i++)
    for (size_t j = i; j < all.list.size(); j++) {
      const Access &a = all.list[i], &b = all.list[j];
      if (a.buffer != b.buffer || (!a.write && !b.write)) continue;
      Meeting m(a, b, varies, written);
      if (m.impossible() || m.forces(v)) continue;
      Conflict c{a.buffer, {}, ""};
      if (a.reduce && a.reduce == b.reduce) c.reduce = a.reduce;
      c.text = words(a) + (i == j ? "" : " and " + words(b));
      if (i == j && !a.reduce) c.text += " more than once";
      found.push_back(std::move(c));
    }
  return found;
}

Expr identity_of(Op op, DType t) {
  switch (op) {
    case Op::Add:
    case Op::Or:
    case Op::BitOr:
    case Op::BitXor:
      return zero(t);
    case Op::Mul:
      return make_const(t, 1);
    case Op::Max:
      return lowest(t);
    case Op::Min:
      return highest(t);
    case Op::And:
      return make_int(t, t == DType::Bool ? 1 : -1);
    case Op::BitAnd:
      return make_int(t, -1);
    default:
      return {};
  }
}

bool may_reorder(const Conflict& c, bool strict_fp) {
  if (!c.reduce || !c.buffer) return false;
  switch (*c.reduce) {
    case Op::Add:
    case Op::Mul:
      return !strict_fp || !is_float(c.buffer->dtype);
    case Op::Min:
    case Op::Max:
    case Op::And:
    case Op::Or:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
      return true;
    default:
      return false;
  }
}

}  // namespace tc
