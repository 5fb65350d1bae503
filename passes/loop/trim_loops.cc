// A tensor whose size is chosen at run time has room for the largest size; a run needs the first elements only. A loop
// whose iterations from some number on compute nothing but others ends there. No tail needs a guard: what a tile
// computes beyond the last element has memory of its own.
//   for (i = 0; i < 8; i++)            ->   n = min(max(count, 0), 48)
//     y[6 * i .. 6 * i + 5, :] = ...        for (i = 0; i < (n + 5) / 6; i++) ...
// Chunks of a parallel loop are as many as before, and those behind the last do nothing.
//
// Preconditions: every store in the loop is to an output that is needed up to a count, at an index along that axis that
// grows with the loop's variable; or to memory that is read in the loop only.
#include "passes/loop/trim_loops.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

using Live = KernelInterface::Live;

/// The product of sizes [first, last).
int64_t product(const Dims& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t k = first; k < last; k++) n = checked_mul(n, dims[k]);
  return n;
}

/// Where a store lies along the counted axis: at least at `at`, in units of which `unit` make an element of the axis.
struct Coordinate {
  Linear at;
  int64_t unit = 1;
};

class Trim {
 public:
  Trim(const Stmt& body, const std::vector<Live>& live) : live_(live), body_(body) {
    walk(body, [&](const Stmt& s) {
      if (const For* f = as<For>(s)) ranges_[f->var.get()] = range_of_loop(*f);
      if (const Let* k = as<Let>(s)) {
        ranges_[k->var.get()] = at_least_zero(k->value, interval(k->value, ranges_));
        lets_[k->var.get()] = k->value;
      }
      if (const Alias* k = as<Alias>(s)) aliases_[k->view.get()] = k;
      return true;
    });
    for (const Live& l : live) {
      if (counts_.count(l.count.get())) continue;
      const Var n = counts_[l.count.get()] = make_var("n");
      ranges_[n.get()] = {0, l.dims[size_t(l.axis)]};
    }
  }

  Stmt run() {
    const Stmt s = statement(body_);
    return s.same_as(body_) ? body_ : with_counts(s, false);
  }

 private:
  /// Reads the counts that `s` needs. `own`: under names of their own, since the chunks of a parallel loop are a function.
  Stmt with_counts(Stmt s, bool own) const {
    std::vector<const BufferDef*> done;
    for (const Live& l : live_) {
      if (std::find(done.begin(), done.end(), l.count.get()) != done.end()) continue;
      done.push_back(l.count.get());
      const Var& n = counts_.at(l.count.get());
      if (!uses_var(s, n)) continue;
      const Var name = own ? make_var(n->name) : n;
      if (own) s = substitute(s, {{n.get(), Expr(name)}});
      s = let(name, max(min(load(l.count, {}), Expr(l.dims[size_t(l.axis)])), Expr(0)), s);
    }
    return s;
  }
  Stmt with_own_counts(const Stmt& s) const { return with_counts(s, true); }

  Stmt statement(const Stmt& s) {
    if (const For* f = as<For>(s)) return loop_of(s, *f);
    if (const Seq* k = as<Seq>(s)) {
      Stmts list;
      bool same = true;
      for (const Stmt& x : k->list) {
        list.push_back(statement(x));
        same = same && list.back().same_as(x);
      }
      return same ? s : seq(std::move(list));
    }
    if (const Let* k = as<Let>(s)) {
      around_.push_back(k->var);
      const Stmt body = statement(k->body);
      around_.pop_back();
      return body.same_as(k->body) ? s : let(k->var, k->value, body);
    }
    if (const Alloc* k = as<Alloc>(s)) {
      const Stmt body = statement(k->body);
      return body.same_as(k->body) ? s : alloc(k->buffer, body);
    }
    if (const Comment* k = as<Comment>(s)) {
      const Stmt body = statement(k->body);
      return body.same_as(k->body) ? s : comment(k->text, body);
    }
    return s;
  }

  Stmt loop_of(const Stmt& s, const For& f) {
    if (f.kind == ForKind::Parallel) return chunks_of(s, f);
    if (f.kind != ForKind::Serial) return s;
    bool exact = false;
    const auto end = end_of(f, exact);
    around_.push_back(f.var);
    const Stmt body = end && exact ? Stmt(f.body) : statement(f.body);
    around_.pop_back();
    if (!end) return body.same_as(f.body) ? s : loop(f.var, f.extent, body, f.kind, f.begin);
    const Expr whole = simplify(f.begin + f.extent, ranges_);
    const bool below = as_const_int(whole) && interval(*end, ranges_).max <= *as_const_int(whole);
    return loop(f.var, (below ? *end : min(whole, *end)) - f.begin, body, f.kind, f.begin);
  }

  /// As many chunks as before: those that nobody needs do nothing.
  Stmt chunks_of(const Stmt& s, const For& f) {
    const auto needed = needed_chunk(f);
    around_.push_back(f.var);
    const Stmt body = statement(f.body);
    around_.pop_back();
    if (!needed && body.same_as(f.body)) return s;
    return loop(f.var, f.extent, with_own_counts(needed ? if_then(*needed, body) : body), f.kind, f.begin);
  }

  Range range_of_loop(const For& f) const {
    const Range r = loop_range(f, ranges_);
    const Range begin = interval(f.begin, ranges_);
    return bounded(r) ? r : Range{begin.min, INT64_MAX};
  }

  /// What the number of lanes is part of has no bounds, but it is no negative number if its parts are none.
  Range at_least_zero(const Expr& e, const Range& r) const {
    return r.min == INT64_MIN && never_negative(e) ? Range{0, r.max} : r;
  }
  bool never_negative(const Expr& e) const {
    if (as<Lanes>(e)) return true;
    if (const Apply* a = as<Apply>(e)) {
      const bool keeps = a->op == Op::Add || a->op == Op::Mul || a->op == Op::FloorDiv || a->op == Op::Min ||
                         a->op == Op::Max || a->op == Op::FloorMod;
      return keeps && std::all_of(a->args.begin(), a->args.end(), [&](const Expr& x) { return never_negative(x); });
    }
    return interval(e, ranges_).min >= 0;
  }
  /// The least that a sum can be.
  int64_t least(const Linear& l) const {
    int64_t sum = l.constant;
    for (const Linear::Term& t : l.terms) {
      const Range r = at_least_zero(t.atom, interval(t.atom, ranges_));
      if (t.coefficient < 0 || r.min == INT64_MIN) return INT64_MIN;
      sum = checked_add(sum, checked_mul(t.coefficient, r.min));
    }
    return sum;
  }

  /// Shows every store of the loop to an output that is needed in part; false if there is another that forbids trimming, or
  /// where `each` gives up.
  bool each_store(const For& f, const std::function<bool(const Live&, const Coordinate&)>& each) const {
    bool ok = true;
    walk(f.body, [&](const Stmt& s) {
      if (const Store* k = as<Store>(s)) ok = ok && store_of(f, k->buffer, k->index, each);
      if (const Intrin* k = as<Intrin>(s)) {
        const IntrinCall call = parse(*k);
        for (size_t i = 0; i < call.operands.size(); i++)
          if (writes_operand(*k, i)) ok = ok && store_of(f, call.operands[i].buffer, call.operands[i].index, each);
      }
      if (const Alias* k = as<Alias>(s)) ok = ok && (is_output(k->base) || is_local(f, k->base));
      if (as<Launch>(s) || as<Barrier>(s)) ok = false;
      return ok;
    });
    return ok;
  }

  /// The number of the first iteration that is not needed; nothing if that is not known. `exact`: an iteration is one element
  /// of the axis, so that loops inside have nothing to trim.
  std::optional<Expr> end_of(const For& f, bool& exact) const {
    if (as_const_int(f.extent).value_or(2) < 2) return std::nullopt;
    std::optional<Expr> most;
    exact = true;
    const bool ok = each_store(f, [&](const Live& l, const Coordinate& c) {
      const auto here = end(f, l, c, exact);
      if (here) most = !most || structurally_equal(*most, *here) ? *here : max(*most, *here);
      return here.has_value();
    });
    return ok ? most : std::nullopt;
  }

  /// Whether a chunk is needed, as a condition on its number.
  std::optional<Expr> needed_chunk(const For& f) const {
    std::vector<Expr> conditions;
    const bool ok = each_store(f, [&](const Live& l, const Coordinate& c) {
      Linear first, inside;  // elements of the axis in front of the chunk
      inside.constant = c.at.constant;
      for (const Linear::Term& t : c.at.terms) {
        if (t.coefficient % c.unit == 0 && is_of_chunk(f, t.atom))
          first.add(t.atom, t.coefficient / c.unit);
        else
          inside.add(t.atom, t.coefficient);
      }
      const int64_t rest = least(inside);
      if (first.is_constant() || rest == INT64_MIN) return false;
      first.constant = floor_div_int(rest, c.unit);
      const Expr condition = to_expr(first) < Expr(counts_.at(l.count.get()));
      if (std::none_of(conditions.begin(), conditions.end(),
                       [&](const Expr& e) { return structurally_equal(e, condition); }))
        conditions.push_back(condition);
      return true;
    });
    if (!ok || conditions.empty()) return std::nullopt;
    Expr any = conditions[0];
    for (size_t k = 1; k < conditions.size(); k++) any = any || conditions[k];
    return any;
  }

  /// Does the value depend on the number of the chunk, and on nothing else that changes in the loop?
  static bool is_of_chunk(const For& f, const Expr& e) {
    bool only = true;
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      only = only && !as<Load>(x) && !as<Lanes>(x) && (!v || v->var == f.var);
      return only;
    });
    return only && uses_var(e, f.var);
  }

  static bool is_output(const Buffer& b) { return b->scope == Scope::Global; }

  /// Read and written inside of the loop only.
  bool is_local(const For& f, const Buffer& b) const {
    return !is_output(b) && count_uses(Stmt(f.body), b) == count_uses(body_, b);
  }

  static int count_uses(const Stmt& s, const Buffer& b) {
    int n = 0;
    walk(
        s,
        [&](const Stmt& x) {
          if (const Store* k = as<Store>(x)) n += k->buffer == b;
          if (const Intrin* k = as<Intrin>(x)) n += int(std::count(k->buffers.begin(), k->buffers.end(), b));
          if (const Alias* k = as<Alias>(x)) n += k->base == b;
          return true;
        },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) n += l->buffer == b;
          return true;
        });
    return n;
  }

  bool store_of(const For& f, Buffer b, Exprs index,
                const std::function<bool(const Live&, const Coordinate&)>& each) const {
    for (auto it = aliases_.find(b.get()); it != aliases_.end(); it = aliases_.find(b.get())) {
      const Ramp* r = as<Ramp>(index.at(0));
      index = {it->second->offset + (r ? r->base : index[0])};
      b = it->second->base;
    }
    if (!is_output(b)) return is_local(f, b);
    for (const Live& l : live_) {
      if (std::find(l.memory.begin(), l.memory.end(), b) == l.memory.end()) continue;
      const auto c = coordinate(l, b, index);
      if (c && each(l, *c)) return true;
    }
    return false;
  }

  /// Names of values inside of the loop become these values, which tell how they depend on the loop's variable.
  Expr without_names(Expr e) const {
    VarMap inside = lets_;
    for (const Var& v : around_) inside.erase(v.get());
    for (int depth = 0; depth < 8; depth++) {
      const Expr next = substitute(e, inside);
      if (next.same_as(e)) break;
      e = next;
    }
    return e;
  }

  std::optional<Coordinate> coordinate(const Live& l, const Buffer& b, const Exprs& index) const {
    const size_t axis = size_t(l.axis);
    const auto base = [&](const Expr& e) {
      const Ramp* r = as<Ramp>(e);
      return without_names(r ? r->base : e);
    };
    if (b == l.memory[0] && index.size() == l.dims.size()) {
      return Coordinate{linear_form(base(index[axis])), 1};
    }
    if (index.size() != 1) return std::nullopt;
    const int64_t inner = product(l.dims, axis + 1, l.dims.size()), whole = checked_mul(inner, l.dims[axis]);
    const Linear flat = linear_form(base(index[0]));
    if (product(l.dims, 0, axis) == 1) return Coordinate{flat, inner};
    return middle(flat, inner, whole);
  }

  /// Of a flat index the part that counts elements of the axis, if no part runs over into another.
  std::optional<Coordinate> middle(const Linear& flat, int64_t inner, int64_t whole) const {
    Linear low, at;
    for (const Linear::Term& t : flat.terms) {
      if (t.coefficient < 0) return std::nullopt;
      if (t.coefficient % whole == 0) continue;
      if (t.coefficient % inner == 0 && t.coefficient < whole)
        at.add(t.atom, t.coefficient / inner);
      else if (t.coefficient < inner)
        low.add(t.atom, t.coefficient);
      else
        return std::nullopt;
    }
    if (flat.constant < 0) return std::nullopt;
    at.constant = flat.constant % whole / inner;
    low.constant = flat.constant % inner;
    const Range of_low = interval(low, ranges_), of_at = interval(at, ranges_);
    if (!bounded(of_low) || of_low.min < 0 || of_low.max >= inner) return std::nullopt;
    if (!bounded(of_at) || of_at.min < 0 || of_at.max >= whole / inner) return std::nullopt;
    return Coordinate{at, 1};
  }

  /// From which iteration on a store lies behind what is needed.
  std::optional<Expr> end(const For& f, const Live& l, const Coordinate& c, bool& exact) const {
    Linear needed;  // unit * n - what stands still in the loop
    needed.add(Expr(counts_.at(l.count.get())), c.unit);
    needed.constant -= c.at.constant;
    int64_t step = 0, group = 1;
    Linear inside;
    for (const Linear::Term& t : c.at.terms) {
      const VarRef* v = as<VarRef>(t.atom);
      if (v && v->var == f.var) {
        step = t.coefficient;
      } else if (v && t.coefficient % c.unit == 0 &&
                 std::find(around_.begin(), around_.end(), v->var) != around_.end()) {
        needed.add(t.atom, -t.coefficient);
      } else if (const auto n = divided(t.atom, f.var)) {
        if (step != 0) return std::nullopt;
        step = t.coefficient;
        group = *n;
      } else {
        inside.add(t.atom, t.coefficient);
      }
    }
    const int64_t rest = least(inside);
    if (step <= 0 || rest == INT64_MIN) return std::nullopt;
    // Within one element of the axis there is nothing behind the last.
    if (const auto extent = as_const_int(f.extent); extent && checked_mul(step, *extent / group) <= c.unit)
      return std::nullopt;
    needed.constant -= rest;
    exact = exact && step == c.unit && group == 1;
    const Expr groups = ceil_div(needed, step);
    return group == 1 ? groups : groups * Expr(group);
  }

  /// The n of floor_div(v, n).
  static std::optional<int64_t> divided(const Expr& e, const Var& v) {
    const Apply* a = as<Apply>(e);
    if (!a || a->op != Op::FloorDiv) return std::nullopt;
    const VarRef* r = as<VarRef>(a->args[0]);
    const auto n = as_const_int(a->args[1]);
    return r && r->var == v && n && *n > 0 ? n : std::nullopt;
  }

  /// Rounded up. What divides does so without a division.
  static Expr ceil_div(Linear l, int64_t n) {
    int64_t common = n;  // of n and all coefficients
    for (const Linear::Term& t : l.terms) common = std::gcd(common, t.coefficient);
    for (Linear::Term& t : l.terms) t.coefficient /= common;
    l.constant = -floor_div_int(-l.constant, common);
    n /= common;
    if (n == 1) return to_expr(l);
    Linear up = l;
    up.constant += n - 1;
    const bool may_be_negative = l.terms.size() > 1 || up.constant < 0;
    const Expr e = to_expr(up);
    return floor_div(may_be_negative ? max(e, Expr(0)) : e, Expr(n));
  }

  const std::vector<Live>& live_;
  const Stmt& body_;
  Ranges ranges_;
  VarMap lets_;                                       // the values of names
  std::map<const BufferDef*, const Alias*> aliases_;  // looked up only
  std::map<const BufferDef*, Var> counts_;            // looked up only
  std::vector<Var> around_;
};

}  // namespace

Stmt trim_loops(const Stmt& body, const std::vector<KernelInterface::Live>& live) {
  return live.empty() ? body : Trim(body, live).run();
}

}  // namespace tc
