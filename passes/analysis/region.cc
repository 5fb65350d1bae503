#include "passes/analysis/region.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/simplifier.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

// An index as a sum that is fixed and a rest within bounds.
struct Split {
  Linear fixed;
  Range rest;
};

Split split_index(const Expr& e, const Ranges& ranges, const std::vector<Var>& inner) {
  Linear l = linear_form(simplify(e, ranges)), rest;
  rest.constant = l.constant;
  Split s;
  for (const Linear::Term& t : l.terms) {
    if (reads_nothing(t.atom) && !uses_any(t.atom, inner))
      s.fixed.add(t.atom, t.coefficient);
    else
      rest.add(t.atom, t.coefficient);
  }
  s.rest = interval(rest, ranges);
  return s;
}

// One dimension of a region; the whole dimension where nothing better is known.
void add_dimension(Region& r, size_t d, const std::vector<const Access*>& list, int64_t n,
                   const std::vector<Var>& inner, const Ranges& outer) {
  bool known = !list.empty();
  Split all{};
  for (size_t i = 0; i < list.size() && known; i++) {
    const Split s = split_index(list[i]->index[d], list[i]->ranges, inner);
    known = bounded(s.rest);
    if (i == 0) {
      all = s;
      continue;
    }
    Linear difference = s.fixed;
    difference.add(all.fixed, -1);
    known = known && difference.is_constant();
    if (known) all.rest = join(all.rest, s.rest + Range{difference.constant, difference.constant});
  }
  int64_t begin = 0, end = n;
  if (known && all.fixed.is_constant()) {  // numbers: cut at the buffer's ends
    begin = std::clamp<int64_t>(all.rest.min + all.fixed.constant, 0, n);
    end = std::clamp<int64_t>(all.rest.max + all.fixed.constant + 1, begin, n);
  } else if (known && all.rest.max - all.rest.min + 1 < n) {
    all.fixed.constant += all.rest.min;
    const int64_t size = all.rest.max - all.rest.min + 1;
    const Range at = interval(all.fixed, outer);
    r.begin.push_back(to_expr(all.fixed)), r.size.push_back(size);
    r.in.push_back(bounded(at) && at.min >= 0 && at.max + size <= n);
    return;
  }
  r.begin.push_back(begin), r.size.push_back(end - begin), r.in.push_back(true);
}

// A store and what stands around it.
struct StoreSite {
  const Store* store;
  std::vector<const For*> loops;
  Exprs conditions;
  bool known;  // nothing else stands around it
};

class StoreSites {
 public:
  explicit StoreSites(const Buffer& b) : b_(b) {}
  void stmt(const Stmt& s) {
    if (!s) return;
    if (const Store* k = as<Store>(s))
      if (k->buffer == b_) found.push_back({k, loops_, conditions_, unknown_ == 0});
    if (const For* k = as<For>(s)) {
      loops_.push_back(k);
      stmt(k->body);
      loops_.pop_back();
    }
    if (const If* k = as<If>(s)) {
      conditions_.push_back(k->condition);
      stmt(k->then);
      conditions_.back() = logical_not(k->condition);
      stmt(k->otherwise);
      conditions_.pop_back();
    }
    if (const Seq* k = as<Seq>(s))
      for (const Stmt& x : k->list) stmt(x);
    if (const Alloc* k = as<Alloc>(s)) stmt(k->body);
    if (const Comment* k = as<Comment>(s)) stmt(k->body);
    unknown_++;
    if (const Let* k = as<Let>(s)) stmt(k->body);
    if (const While* k = as<While>(s)) stmt(k->body);
    if (const Alias* k = as<Alias>(s)) stmt(k->body);
    unknown_--;
  }
  std::vector<StoreSite> found;

 private:
  const Buffer& b_;
  std::vector<const For*> loops_;
  Exprs conditions_;
  int unknown_ = 0;
};

// sum(c_k * v_k) counts 0 .. size - 1, or further, without gaps: c = 1, n_1, n_1 * n_2, ...; `used` takes the loops.
bool counts_through(const Expr& index, const Expr& begin, int64_t size, const std::vector<const For*>& loops,
                    std::vector<const For*>& used) {
  Linear l = linear_form(simplify(index));
  l.add(linear_form(begin), -1);
  if (l.constant != 0) return false;
  std::stable_sort(l.terms.begin(), l.terms.end(),
                   [](const auto& a, const auto& b) { return a.coefficient < b.coefficient; });
  int64_t next = 1;
  for (const Linear::Term& t : l.terms) {
    const VarRef* v = as<VarRef>(t.atom);
    const auto f = std::find_if(loops.begin(), loops.end(), [&](const For* x) { return v && x->var == v->var; });
    if (f == loops.end() || std::find(used.begin(), used.end(), *f) != used.end()) return false;
    const auto n = as_const_int((*f)->extent);
    if (t.coefficient != next || !n || *n < 1 || !is_const((*f)->begin, 0)) return false;
    used.push_back(*f);
    if (__builtin_mul_overflow(next, *n, &next)) return false;
  }
  return next >= size;
}

// The condition says no more than that a dimension of the index lies in the buffer.
bool asks_for_bounds(const Expr& condition, const Store& k) {
  const Apply* a = as<Apply>(condition);
  if (!a) return false;
  if (a->op == Op::And) return asks_for_bounds(a->args[0], k) && asks_for_bounds(a->args[1], k);
  if (a->op != Op::Lt && a->op != Op::Ge) return false;
  if (a->args[0]->dtype != DType::I64) return false;
  Linear l = linear_form(a->args[0]);
  l.add(linear_form(a->args[1]), -1);
  for (size_t d = 0; d < k.index.size(); d++) {
    Linear bound = linear_form(k.index[d]);
    if (a->op == Op::Lt) bound.constant -= k.buffer->shape[d].value;
    bound.add(l, -1);
    if (bound.is_constant() && bound.constant == 0) return true;
  }
  return false;
}

bool fills_box(const StoreSite& s, const Region& r, const Ranges& outer) {
  if (!s.known) return false;
  std::vector<const For*> used;
  for (size_t d = 0; d < r.size.size(); d++) {
    if (s.store->index[d]->vector ||
        !counts_through(simplify(s.store->index[d], outer), r.begin[d], r.size[d], s.loops, used))
      return false;
  }
  for (const For* f : s.loops)  // loops that do not count must run
    if (std::find(used.begin(), used.end(), f) == used.end() && as_const_int(f->extent).value_or(0) < 1) return false;
  return std::all_of(s.conditions.begin(), s.conditions.end(),
                     [&](const Expr& c) { return asks_for_bounds(c, *s.store); });
}

}  // namespace

std::optional<Region> region_of(const std::vector<Access>& list, const Buffer& b, const std::vector<Var>& inner,
                                const Ranges& outer) {
  if (!is_static(b->shape)) return {};
  std::vector<const Access*> of;
  for (const Access& a : list) {
    if (a.buffer != b) continue;
    for (const Expr& i : a.index)
      if (i->vector) return {};
    of.push_back(&a);
  }
  Region r;
  for (size_t d = 0; d < b->shape.size(); d++) add_dimension(r, d, of, b->shape[d].value, inner, outer);
  return r;
}

Exprs index_in(const Region& r, const Exprs& i) {
  Exprs at;
  for (size_t d = 0; d < i.size(); d++) at.push_back(simplify(r.begin[d] + i[d]));
  return at;
}

Expr inside(const Region& r, const Buffer& b, const Exprs& i) {
  Expr all;
  const Exprs at = index_in(r, i);
  for (size_t d = 0; d < i.size(); d++) {
    if (r.in[d]) continue;
    const Expr in = at[d] >= Expr(0) && at[d] < Expr(b->shape[d].value);
    all = all ? all && in : in;
  }
  return all;
}

bool fills(const Stmt& s, const Buffer& b, const Region& r, bool plain, const Ranges& outer) {
  StoreSites sites(b);
  sites.stmt(s);
  return std::any_of(sites.found.begin(), sites.found.end(),
                     [&](const StoreSite& x) { return !(plain && x.store->reduce) && fills_box(x, r, outer); });
}

std::optional<PlainNest> plain_nest(const Stmt& s, const Buffer& b) {
  PlainNest n{s, std::vector<Var>(b->shape.size()), {}, s};
  while (n.loops.size() < b->shape.size()) {
    const For* f = as<For>(n.point);
    if (!f || f->kind != ForKind::Serial) return {};
    n.loops.push_back(f), n.point = f->body;
  }
  StoreSites sites(b);
  sites.stmt(s);
  if (sites.found.empty()) return {};
  for (const StoreSite& site : sites.found) {
    if (site.loops.size() < n.loops.size()) return {};
    for (size_t d = 0; d < n.vars.size(); d++) {
      const VarRef* v = as<VarRef>(site.store->index[d]);
      if (!v || (n.vars[d] && n.vars[d] != v->var)) return {};
      n.vars[d] = v->var;
    }
  }
  for (size_t d = 0; d < n.vars.size(); d++) {
    const auto f = std::find_if(n.loops.begin(), n.loops.end(), [&](const For* x) { return x->var == n.vars[d]; });
    if (f == n.loops.end() || !is_const((*f)->begin, 0) || !b->shape[d].is_const()) return {};
    if (!is_const((*f)->extent, b->shape[d].value)) return {};
    for (size_t e = 0; e < d; e++)
      if (n.vars[e] == n.vars[d]) return {};
  }
  return n;
}

Stmt point_at(const PlainNest& n, const Exprs& index) {
  VarMap to;
  for (size_t d = 0; d < n.vars.size(); d++) to[n.vars[d].get()] = index[d];
  return substitute(fresh_copy(n.point), to);
}

Stmts siblings_of(const Stmt& s) {
  if (const Alloc* k = as<Alloc>(s)) return siblings_of(k->body);
  if (const Comment* k = as<Comment>(s)) return siblings_of(k->body);
  const Seq* k = as<Seq>(s);
  if (!k) return s ? Stmts{s} : Stmts{};
  Stmts all;
  for (const Stmt& x : k->list) {
    const Stmts more = siblings_of(x);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

const Alloc* find_alloc(const Stmt& s, const Buffer& b, Stmt* where) {
  const Alloc* found = nullptr;
  walk(s, [&](const Stmt& x) {
    if (const Alloc* a = as<Alloc>(x); a && a->buffer == b) {
      found = a;
      if (where) *where = x;
    }
    return !found;
  });
  return found;
}

bool touches(const Accesses& a, const Buffer& b, bool reads, bool writes) {
  return std::any_of(a.list.begin(), a.list.end(), [&](const Access& x) {
    return x.buffer == b && ((writes && x.write) || (reads && (!x.write || x.reduce)));
  });
}

Stmt redirect(const Stmt& s, const Buffer& from, const Buffer& to, const Exprs& begin) {
  auto moved = [&](const Exprs& index) {
    Exprs at;
    for (size_t d = 0; d < index.size(); d++) at.push_back(simplify(index[d] - begin[d]));
    return at;
  };
  auto on_expr = [&](const Expr& e) {
    const Load* l = as<Load>(e);
    return l && l->buffer == from ? load(to, moved(l->index)) : Expr();
  };
  auto on_stmt = [&](const Stmt& x) {
    const Store* k = as<Store>(x);
    return k && k->buffer == from ? store(to, moved(k->index), k->value, k->reduce, k->count) : Stmt();
  };
  return rewrite(s, on_expr, on_stmt);
}

Stmt tidy(const Stmt& s, const Ranges& ranges) {
  if (!s) return s;
  if (const For* k = as<For>(s)) {
    Ranges more = ranges;
    const Expr begin = simplify(k->begin, ranges), extent = simplify(k->extent, ranges);
    more[k->var.get()] = loop_range(For{k->var, begin, extent, k->kind, {}}, ranges);
    return with_body(For{k->var, begin, extent, k->kind, {}}, tidy(k->body, more));
  }
  if (const If* k = as<If>(s)) {
    const Expr c = simplify(k->condition, ranges);
    Ranges yes = ranges, no = ranges;
    assume(yes, c, true), assume(no, c, false);
    const Stmt then = tidy(k->then, yes), otherwise = tidy(k->otherwise, no);
    if (!then && !otherwise) return {};
    return then ? if_then(c, then, otherwise) : if_then(logical_not(c), otherwise);
  }
  if (const Let* k = as<Let>(s)) {
    Ranges more = ranges;
    assume_name(more, *k);
    const Stmt body = tidy(k->body, more);
    return body ? let(k->var, simplify(k->value, ranges), body) : body;
  }
  if (const Seq* k = as<Seq>(s)) {
    Stmts list;
    for (const Stmt& x : k->list) list.push_back(tidy(x, ranges));
    return seq(std::move(list));
  }
  if (const Alloc* k = as<Alloc>(s)) {
    const Stmt body = tidy(k->body, ranges);
    return body ? alloc(k->buffer, body) : body;
  }
  if (const Comment* k = as<Comment>(s)) {
    const Stmt body = tidy(k->body, ranges);
    return body ? comment(k->text, body) : body;
  }
  if (const Store* k = as<Store>(s)) {
    Exprs index;
    for (const Expr& i : k->index) index.push_back(simplify(i, ranges));
    return store(k->buffer, std::move(index), simplify(k->value, ranges), k->reduce, k->count);
  }
  return s;
}

}  // namespace tc
