#include "passes/loop/live_stores.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/expand_intrin.h"
#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

/// The product of sizes [first, last).
int64_t product(const Dims& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t k = first; k < last; k++) n = checked_mul(n, dims[k]);
  return n;
}

bool is_output(const Buffer& b) { return b->scope == Scope::Global; }

bool never_negative(const Expr& e, const Ranges& ranges) {
  if (as<Lanes>(e)) return true;
  if (const Apply* a = as<Apply>(e)) {
    const bool keeps = a->op == Op::Add || a->op == Op::Mul || a->op == Op::FloorDiv || a->op == Op::Min ||
                       a->op == Op::Max || a->op == Op::FloorMod;
    return keeps &&
           std::all_of(a->args.begin(), a->args.end(), [&](const Expr& x) { return never_negative(x, ranges); });
  }
  return interval(e, ranges).min >= 0;
}

/// What the number of lanes is part of has no bounds, but it is no negative number if its parts are none.
Range at_least_zero(const Expr& e, const Ranges& ranges) {
  const Range r = interval(e, ranges);
  return r.min == INT64_MIN && never_negative(e, ranges) ? Range{0, r.max} : r;
}

/// The statements that an instruction stands for, if they are a known number of elements; else null.
Stmt assignments(const Intrin& k) {
  if (!meaning_as<Assignments>(k)) return {};
  const Stmt made = expand_intrin(k);
  bool known = true;
  walk(
      made, [](const Stmt&) { return true; }, [&](const Expr& e) { return known = known && !as<Lanes>(e); });
  return known ? made : Stmt();
}

}  // namespace

std::optional<int64_t> elements_of_vectors(const Expr& extent) {
  const Apply* a = as<Apply>(extent);
  if (!a || (a->op != Op::FloorDiv && a->op != Op::Div) || !as<Lanes>(a->args[1])) return std::nullopt;
  return as_const_int(a->args[0]);
}

const VarDef* vector_number(const Expr& e) {
  const Apply* a = as<Apply>(e);
  if (!a || a->op != Op::Mul) return nullptr;
  const bool first = as<Lanes>(a->args[0]);
  const VarRef* v = as<VarRef>(a->args[first ? 1 : 0]);
  return v && as<Lanes>(a->args[first ? 0 : 1]) ? v->var.get() : nullptr;
}

LiveStores::LiveStores(const Stmt& body, const std::vector<Live>& live) : live_(live) { look_at(body); }

void LiveStores::look_at(const Stmt& body) {
  walk(body, [&](const Stmt& s) {
    if (const For* f = as<For>(s)) {
      ranges[f->var.get()] = range_of_loop(*f);
      if (const auto elements = elements_of_vectors(f->extent)) vectors_[f->var.get()] = *elements;
    }
    if (const Let* k = as<Let>(s)) {
      ranges[k->var.get()] = at_least_zero(k->value, ranges);
      lets_[k->var.get()] = k->value;
    }
    if (const Alias* k = as<Alias>(s)) aliases_[k->view.get()] = k;
    if (const Intrin* k = as<Intrin>(s))
      if (const Stmt made = assignments(*k)) {
        assigned_[k] = made;
        look_at(made);
      }
    return true;
  });
}

Range LiveStores::range_of_loop(const For& f) const {
  const Range r = loop_range(f, ranges);
  const Range begin = interval(f.begin, ranges);
  return bounded(r) ? r : Range{begin.min, INT64_MAX};
}

// Vectors end at the last of their elements.
Range LiveStores::range_of(const Linear& l) const {
  Range sum{l.constant, l.constant};
  for (const Linear::Term& t : l.terms) {
    const VarDef* v = vector_number(t.atom);
    const auto it = v ? vectors_.find(v) : vectors_.end();
    const Range r = it == vectors_.end() ? interval(t.atom, ranges) : Range{0, it->second - 1};
    sum = sum + r * Range{t.coefficient, t.coefficient};
  }
  return sum;
}

int64_t LiveStores::least(const Linear& l) const {
  int64_t sum = l.constant;
  for (const Linear::Term& t : l.terms) {
    const Range r = at_least_zero(t.atom, ranges);
    const bool falls = t.coefficient < 0;  // from the end: 8 - j
    if (r.min == INT64_MIN || (falls && (r.max == INT64_MAX || vector_number(t.atom)))) return INT64_MIN;
    sum = checked_add(sum, checked_mul(t.coefficient, falls ? r.max : r.min));
  }
  return sum;
}

bool LiveStores::all(const Stmt& s, const std::vector<Var>& kept, const std::function<bool(const Buffer&)>& is_local,
                     const Serves& serves) const {
  bool ok = true;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x)) ok = ok && store(k->buffer, k->index, k->count, kept, is_local, serves);
    if (const Intrin* k = as<Intrin>(x)) {
      if (const auto it = assigned_.find(k); it != assigned_.end()) {
        ok = ok && all(it->second, kept, is_local, serves);
        return false;
      }
      const IntrinCall call = parse(*k);
      for (size_t i = 0; i < call.operands.size(); i++)
        if (writes_operand(*k, i))
          ok = ok && store(call.operands[i].buffer, call.operands[i].index, {}, kept, is_local, serves);
    }
    if (const If* k = as<If>(x)) {
      for (const bool holds : {true, false}) {
        const Stmt& branch = holds ? k->then : k->otherwise;
        if (!branch || !ok) continue;
        LiveStores inside = *this;
        assume(inside.ranges, k->condition, holds);
        ok = inside.all(branch, kept, is_local, serves);
      }
      return false;
    }
    if (const Alias* k = as<Alias>(x)) ok = ok && (is_output(k->base) || is_local(k->base));
    if (as<Launch>(x)) ok = false;
    return ok;
  });
  return ok;
}

namespace {

// Rounded down; `n` divides the coefficients.
Linear divided(Linear l, int64_t n) {
  for (Linear::Term& t : l.terms) t.coefficient /= n;
  l.constant = floor_div_int(l.constant, n);
  return l;
}

}  // namespace

std::optional<LivePiece> LiveStores::piece(const LiveCoordinate& c,
                                           const std::function<bool(const Expr&)>& outside) const {
  Linear elements, part, inside;  // outside: whole elements of the axis, and parts of one
  inside.constant = c.at.constant;
  for (const Linear::Term& t : c.at.terms)
    (!outside(t.atom) ? inside : t.coefficient % c.unit == 0 ? elements : part).add(t.atom, t.coefficient);
  const int64_t rest = least(inside);
  if (rest == INT64_MIN) return std::nullopt;
  part.constant = floor_mod_int(rest, c.unit);
  const Range within = interval(part, ranges);
  const bool whole = within.min >= 0 && within.max < c.unit;  // which part it is decides nothing
  Linear first = whole ? divided(elements, c.unit) : elements;
  if (!whole) first.add(part);
  first.constant = whole ? floor_div_int(rest, c.unit) : rest;
  return LivePiece{to_expr(first), whole ? 1 : c.unit, rest, !first.is_constant()};
}

bool LiveStores::store(Buffer b, Exprs index, const Expr& count, const std::vector<Var>& kept,
                       const std::function<bool(const Buffer&)>& is_local, const Serves& serves) const {
  for (auto it = aliases_.find(b.get()); it != aliases_.end(); it = aliases_.find(b.get())) {
    const Ramp* r = as<Ramp>(index.at(0));
    index = {it->second->offset + (r ? r->base : index[0])};
    b = it->second->base;
  }
  if (!is_output(b)) return is_local(b);
  for (const Live& l : live_) {
    if (std::find(l.memory.begin(), l.memory.end(), b) == l.memory.end()) continue;
    const auto c = coordinate(l, b, index, count, kept);
    if (c && serves(l, *c)) return true;
  }
  return false;
}

/// Names become their values, which tell how they depend on a loop's variable.
Expr LiveStores::without_names(Expr e, const std::vector<Var>& kept) const {
  VarMap inside = lets_;
  for (const Var& v : kept) inside.erase(v.get());
  for (int depth = 0; depth < 8; depth++) {
    const Expr next = substitute(e, inside);
    if (next.same_as(e)) break;
    e = next;
  }
  return e;
}

std::optional<LiveCoordinate> LiveStores::coordinate(const Live& l, const Buffer& b, const Exprs& index,
                                                     const Expr& count, const std::vector<Var>& kept) const {
  const size_t axis = size_t(l.axis);
  const auto base = [&](const Expr& e) {
    const Ramp* r = as<Ramp>(e);
    return without_names(r ? r->base : e, kept);
  };
  if (b == l.memory[0] && index.size() == l.dims.size()) {
    return LiveCoordinate{linear_form(base(index[axis])), 1};
  }
  if (index.size() != 1) return std::nullopt;
  const int64_t inner = product(l.dims, axis + 1, l.dims.size()), whole = checked_mul(inner, l.dims[axis]);
  const Linear flat = linear_form(base(index[0]));
  if (product(l.dims, 0, axis) == 1) return LiveCoordinate{flat, inner};
  return middle(flat, inner, whole, count ? without_names(count, kept) : count);
}

/// Of a flat index the part that counts elements of the axis, if no part runs over into another.
std::optional<LiveCoordinate> LiveStores::middle(const Linear& flat, int64_t inner, int64_t whole,
                                                 const Expr& count) const {
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
  // Up to the last that is stored.
  Linear low_end = low, at_end = at;
  if (count) {
    (inner == 1 ? at_end : low_end).add(linear_form(count));
    (inner == 1 ? at_end : low_end).constant--;
  }
  if (range_of(low).min < 0 || range_of(low_end).max >= inner) return std::nullopt;
  if (range_of(at).min < 0 || range_of(at_end).max >= whole / inner) return std::nullopt;
  return LiveCoordinate{at, 1};
}

}  // namespace tc
