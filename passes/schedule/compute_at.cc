// Where values are computed: compute_inline, compute_at.
#include "passes/schedule/compute_at.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

// A temporary, the statement that fills it, and those behind it.
struct Producer {
  Stmt alloc;
  Stmt nest;
  Stmts later;
};

Producer find_producer(const StepCheck& step, const Buffer& b) {
  Producer p;
  const Alloc* a = find_alloc(step.body(), b, &p.alloc);
  step.require(a, "\"" + b->name + "\" is no temporary of these loops", step.body());
  for (const Stmt& s : siblings_of(a->body)) {
    const Accesses all = accesses_of(s);
    step.require(all.opaque.empty(), "there is " + all.opaque, s);
    const bool writes = touches(all, b, false, true), reads = touches(all, b, true, false);
    if (p.nest) p.later.push_back(s);
    step.require(!writes || !p.nest, "\"" + b->name + "\" is filled in several places", step.body());
    step.require(!reads || (p.nest && !writes), "\"" + b->name + "\" is read where it is filled, or before", s);
    if (writes) p.nest = s;
  }
  step.require(bool(p.nest), "nothing fills \"" + b->name + "\"", step.body());
  for (const Access& x : accesses_of(p.nest).list) {
    Stmt scope;
    if (x.buffer == b || !find_alloc(a->body, x.buffer, &scope)) continue;
    step.require(!touches(accesses_of(replace_stmt(a->body, scope.get(), {})), b, true, false),
                 "\"" + x.buffer->name + "\" does not exist where \"" + b->name + "\" is read", scope);
  }
  return p;
}

// The statement `nest` may run later, inside any of `later`.
void require_same_operands(const StepCheck& step, const Buffer& b, const Stmt& nest, const Stmts& later) {
  const Accesses mine = accesses_of(nest);
  for (const Access& a : mine.list)
    step.require(!a.write || a.buffer == b, "the loops of \"" + b->name + "\" fill \"" + a.buffer->name + "\" too",
                 nest);
  for (const Stmt& s : later) {
    const Accesses other = accesses_of(s);
    for (const Access& a : mine.list)
      step.require(a.buffer == b || !touches(other, a.buffer, false, true),
                   "\"" + a.buffer->name + "\", which \"" + b->name + "\" reads, is overwritten later", s);
  }
}

Stmt without_alloc(const Stmt& body, const Buffer& b) {
  Stmt where;
  const Alloc* a = find_alloc(body, b, &where);
  return a ? replace_stmt(body, where.get(), a->body) : body;
}

}  // namespace

// The nest's own loops and memory may stand in the loop of `site`.
void require_fits(const StepCheck& step, const LoopSite& site, const Stmt& nest) {
  bool gpu = is_gpu(site.loop->kind);
  for (const For* f : site.outer) gpu = gpu || is_gpu(f->kind);
  walk(nest, [&](const Stmt& s) {
    const For* f = as<For>(s);
    step.require(!f || (!is_gpu(f->kind) && f->kind != ForKind::Parallel),
                 f ? "loop " + f->var->name + " is " + std::string(kind_name(f->kind)) : "", nest);
    const Alloc* a = as<Alloc>(s);
    step.require(!a || !gpu || a->buffer->scope == Scope::Register || a->buffer->scope == Scope::Stack,
                 a ? "\"" + a->buffer->name + "\" is " + scope_name(a->buffer->scope) + " memory" : "", nest);
    return true;
  });
}

bool contains(const Stmt& s, const StmtNode* what) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    found = found || x.get() == what;
    return !found;
  });
  return found;
}

// Loops over the region around the point of `n`, in the nest's own order; stores go to `to`.
Stmt compute_region(const PlainNest& n, const Buffer& b, const Region& r,
                    const std::function<Stmt(const Stmt&)>& point) {
  std::vector<Var> vars;
  Exprs at;
  for (const Var& v : n.vars) {
    vars.push_back(make_var(v->name));
    at.push_back(Expr(vars.back()));
  }
  Stmt s = point(point_at(n, index_in(r, at)));
  if (const Expr in = inside(r, b, at)) s = if_then(in, s);
  for (size_t i = n.loops.size(); i-- > 0;) {
    const size_t d = size_t(std::find(n.vars.begin(), n.vars.end(), n.loops[i]->var) - n.vars.begin());
    s = loop(vars[d], r.size[d], s);
  }
  return s;
}

std::vector<Var> without(std::vector<Var> list, const Var& v) {
  list.erase(std::remove(list.begin(), list.end(), v), list.end());
  return list;
}

Ranges inside_of(const LoopSite& site) {
  Ranges r = site.ranges;
  r[site.loop->var.get()] = loop_range(*site.loop, site.ranges);
  return r;
}

// A temporary that one formula fills is replaced by that formula where it is read.
//   for i: t[i] = x[i] * 2; for j: y[j] = t[j + 1] + 1   ->   for j: y[j] = x[j + 1] * 2 + 1
// Refused: an output; a buffer that a reduction fills or whose loops were changed; operands that are overwritten before
// it is read.
void Schedule::compute_inline(const Buffer& b) {
  StepCheck step(*this, "compute_inline", {{b}});
  const Producer p = find_producer(step, b);
  const auto nest = plain_nest(p.nest, b);
  const Store* k = nest ? as<Store>(nest->point) : nullptr;
  step.require(k && !k->reduce && !k->count, "\"" + b->name + "\" is not filled by one formula in plain loops", p.nest);
  require_same_operands(step, b, p.nest, p.later);
  auto formula = [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    if (!l || l->buffer != b) return {};
    VarMap at;
    for (size_t d = 0; d < l->index.size(); d++) at[nest->vars[d].get()] = l->index[d];
    return substitute(k->value, at);
  };
  for (const Stmt& s : p.later)
    walk(
        s, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          step.require(!as<Load>(e) || as<Load>(e)->buffer != b || !e->vector, "it is read in vectors", s);
          return true;
        });
  step.done(rewrite(without_alloc(replace_stmt(body_, p.nest.get(), {}), b), formula));
}

// A temporary is computed inside a loop of its reader, only the part that one iteration needs. Returns the part's
// buffer.
//   for i: t[i] = f(i); for j: for k in 0 .. +3: y[j] += t[j * 2 + k]
//   for j: { alloc t[3]; for i in 0 .. +3: t[i] = f(j * 2 + i); for k in 0 .. +3: y[j] += t[k] }
// Where the part may reach over the ends of the temporary, an `if` stands around its formula.
// Refused: an output; loops that were changed; reads outside the loop; operands that are overwritten in between; a
// loop outside those of threads, other scopes than registers, stack and (CPU) workspace.
Buffer Schedule::compute_at(const Buffer& b, const Var& v, Scope scope) {
  StepCheck step(*this, "compute_at", {{b}, {v}, {scope_name(scope)}});
  const Producer p = find_producer(step, b);
  const auto nest = plain_nest(p.nest, b);
  step.require(nest.has_value(), "the loops of \"" + b->name + "\" are not plain any more", p.nest);
  const LoopSite site = step.find(v);
  step.require_insertion_point(site, scope);
  require_fits(step, site, p.nest);
  step.require(std::any_of(p.later.begin(), p.later.end(), [&](const Stmt& s) { return contains(s, site.stmt.get()); }),
               "loop " + v->name + " does not stand behind the loops of \"" + b->name + "\"", site.stmt);
  require_same_operands(step, b, p.nest, p.later);
  const Accesses all = accesses_of(site.stmt, site.ranges);
  step.require(touches(all, b, true, false), "loop " + v->name + " does not read \"" + b->name + "\"", site.stmt);
  step.require(!touches(accesses_of(replace_stmt(as<Alloc>(p.alloc)->body, site.stmt.get(), {})), b, true, false) &&
                   reads_nothing(site.loop->begin) && reads_nothing(site.loop->extent),
               "\"" + b->name + "\" is read outside loop " + v->name + " too", body_);
  const auto region = region_of(all.list, b, without(all.bound, v), inside_of(site));
  step.require(region.has_value(), "\"" + b->name + "\" is read in vectors", site.stmt);

  const Buffer t = make_buffer(b->name, b->dtype, to_shape(region->size), scope);
  const Stmt part = compute_region(*nest, b, *region, [&](const Stmt& s) { return redirect(s, b, t, region->begin); });
  const Stmt body = alloc(t, seq({part, redirect(site.loop->body, b, t, region->begin)}));
  Stmt all_of = replace_stmt(body_, site.stmt.get(), tidy(with_body(*site.loop, body), site.ranges));
  all_of = without_alloc(replace_stmt(all_of, p.nest.get(), {}), b);
  step.rename_result(b, t);
  step.done(all_of, {{t}});
  return t;
}

}  // namespace tc
