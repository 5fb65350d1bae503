// Copies of a part of a buffer near its use: cache_read, cache_write.
#include <algorithm>
#include <functional>

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/analysis/read_guard.h"
#include "passes/schedule/compute_at.h"
#include "support/text.h"

namespace tc {
namespace {

struct Axes {
  std::vector<Var> vars;
  Exprs at;
};
Axes axes_of(const Region& r) {
  Axes a;
  for (size_t d = 0; d < r.size.size(); d++) {
    a.vars.push_back(make_var("c" + to_text(int64_t(d))));
    a.at.push_back(Expr(a.vars.back()));
  }
  return a;
}

// Where an element of a buffer may be read at all; null: everywhere.
using ReadableAt = std::function<Expr(const Exprs& index)>;

Stmt guarded(const Region& r, const Buffer& b, const Exprs& at, const ReadableAt& readable, const Stmt& s) {
  const Expr in = both(readable ? readable(index_in(r, at)) : Expr(), inside(r, b, at));
  return in ? if_then(in, s) : s;
}

// tile[c] = b[begin + c], or the way back.
Stmt copy_nest(const Region& r, const Buffer& b, const Buffer& tile, bool back, const ReadableAt& readable = {}) {
  const Axes a = axes_of(r);
  const Exprs there = index_in(r, a.at);
  Stmt s = guarded(r, b, a.at, readable, back ? store(b, there, load(tile, a.at)) : store(tile, a.at, load(b, there)));
  for (size_t d = a.vars.size(); d-- > 0;) s = loop(a.vars[d], r.size[d], s);
  return s;
}

// What a tile holds copies of: tile[i] = source[begin + i], where the source has an element there.
struct Origin {
  Buffer source;
  Exprs begin;  // over variables that are visible where the tile is read
};

// Of a tile that is filled by one copy, which leaves elements out; nullopt for others.
std::optional<Origin> origin_of(const Stmt& body, const Buffer& tile, const LoopSite& site) {
  std::vector<const Store*> stores;
  const Store* copy = nullptr;  // behind a condition
  bool known = true;
  walk(body, [&](const Stmt& s) {
    if (const Store* k = as<Store>(s); k && k->buffer == tile) stores.push_back(k);
    const If* condition = as<If>(s);
    if (const Store* k = condition ? as<Store>(condition->then) : nullptr; k && k->buffer == tile) copy = k;
    if (const Intrin* k = as<Intrin>(s)) known = known && std::count(k->buffers.begin(), k->buffers.end(), tile) == 0;
    return known;
  });
  const Load* from = copy ? as<Load>(copy->value) : nullptr;
  if (!known || stores.size() != 1 || !from || copy->reduce || from->index.size() != copy->index.size()) return {};
  const Ranges visible = inside_of(site);
  std::vector<Var> hidden;
  for (const Var& v : accesses_of(body).bound)
    if (!visible.contains(v.get())) hidden.push_back(v);
  Origin o{from->buffer, {}};
  for (size_t d = 0; d < from->index.size(); d++) {
    o.begin.push_back(simplify(from->index[d] - copy->index[d]));
    if (uses_any(o.begin.back(), hidden)) return {};
  }
  return o;
}

// Where the elements `at` of a tile were copied to it, as far as that is in doubt.
Expr was_copied(const Stmt& body, Buffer tile, Exprs at, const LoopSite& site) {
  constexpr int kDeepest = 8;  // tiles of tiles
  Expr all;
  for (int depth = 0; depth < kDeepest; depth++) {
    const auto o = origin_of(body, tile, site);
    if (!o) break;
    for (size_t d = 0; d < at.size(); d++) {
      const Range begin = interval(o->begin[d], inside_of(site));
      const int64_t end = o->source->shape[d].value;
      at[d] = simplify(o->begin[d] + at[d]);
      if (begin.min < 0) all = both(all, at[d] >= Expr(0));
      if (begin.max > end - tile->shape[d].value) all = both(all, at[d] < Expr(end));
    }
    tile = o->source;
  }
  return all;
}

// All threads of the block together: thread t copies elements t, t + threads, t + 2 * threads ... of the tile.
Stmt shared_copy(const Region& r, const Buffer& b, const Buffer& tile, const std::vector<const For*>& threads,
                 const ReadableAt& readable) {
  Expr id = 0;
  int64_t all = 1;
  for (const ForKind k : {ForKind::ThreadZ, ForKind::ThreadY, ForKind::ThreadX})
    for (const For* f : threads)
      if (f->kind == k) id = id * f->extent + Expr(f->var), all *= *as_const_int(f->extent);
  int64_t total = 1;
  for (const int64_t n : r.size) total *= n;
  const Var step = make_var("copy");
  const Expr element = Expr(step) * Expr(all) + id;
  Exprs at(r.size.size());
  Expr rest = element;
  // The outermost dimension with more than one index takes what is left; those around it have none.
  size_t first = 0;
  while (first + 1 < r.size.size() && r.size[first] == 1) at[first++] = 0;
  for (size_t d = r.size.size(); d-- > first;) {
    const Expr n = std::max<int64_t>(1, r.size[d]);
    at[d] = d == first ? rest : floor_mod(rest, n);
    rest = floor_div(rest, n);
  }
  Stmt s = guarded(r, b, at, readable, store(tile, at, load(b, index_in(r, at))));
  if (total % all != 0) s = if_then(element < Expr(total), s);
  return loop(step, (total + all - 1) / all, s);
}

// Does it read what is there, whatever stood around it?
bool reads_inside(const Expr& condition, const LoopSite& site) {
  Ranges ranges = site.ranges;
  ranges[site.loop->var.get()] = loop_range(*site.loop, site.ranges);
  bool inside = true;
  walk(condition, [&](const Expr& e) {
    const Load* l = as<Load>(e);
    for (size_t d = 0; l && d < l->index.size(); d++) {
      const Range r = interval(l->index[d], ranges);
      inside = inside && r.min >= 0 && r.max < l->buffer->shape.at(d).value;
    }
    return inside;
  });
  return inside;
}

// The condition that stands in front of all reads of `b`, where one depends on a size of the run, or on other data: nobody says that
// there is memory behind it.
Expr guard_of(const StepCheck& step, const LoopSite& site, const Accesses& all, const Buffer& b,
              const std::vector<Var>& inner) {
  const ReadGuard guard = read_guard(site.loop->body, b);
  bool stays = guard.known;
  if (guard.known && bool(guard.condition)) {
    stays = !uses_any(guard.condition, inner);
    for (const Access& x : all.list) stays = stays && !(x.write && uses_buffer(guard.condition, x.buffer));
    stays = stays && reads_inside(guard.condition, site);
    walk(site.loop->body, [&](const Stmt& s) {  // what begins behind the copy
      const Alloc* a = as<Alloc>(s);
      const Alias* v = as<Alias>(s);
      stays = stays && !(a && uses_buffer(guard.condition, a->buffer)) && !(v && uses_buffer(guard.condition, v->view));
      return stays;
    });
  }
  step.require(stays, "\"" + b->name + "\" is read behind a condition that data decides, and would be without it",
               site.stmt);
  return guard.condition;
}

bool is_barrier(const Stmt& s) { return as<Barrier>(s) != nullptr; }

// barrier; copy; barrier; use. The first barrier is for places that are passed `again`, when others may still read the tile.
// A body that begins with shared copies before a barrier takes one more there, unless they read the new tile.
Stmt behind_barrier(const Buffer& tile, const Stmt& copy, const Stmt& use, bool again) {
  const Seq* list = as<Seq>(use);
  const int barriers = again ? 2 : 1;
  if (list && (!again || is_barrier(list->list[0])) &&
      std::count_if(list->list.begin(), list->list.end(), is_barrier) == barriers) {
    Stmts all = list->list;
    const auto last = std::find_if(all.begin() + (again ? 1 : 0), all.end(), is_barrier);
    if (!touches(accesses_of(seq(Stmts(all.begin(), last))), tile, true, false)) {
      all.insert(last, copy);
      return seq(all);
    }
  }
  return seq({again ? barrier(Scope::Shared) : Stmt(), copy, barrier(Scope::Shared), use});
}

// Do the threads of a block come by here more than once?
bool is_passed_again(const LoopSite& site) {
  if (!is_thread(site.loop->kind)) return true;  // a loop inside of theirs
  return std::any_of(site.path.begin(), site.path.end(), [&](const Stmt& s) {
    const For* f = as<For>(s);
    return as<While>(s) || (f && f != site.loop && !is_gpu(f->kind) && !is_const(f->extent, 1));
  });
}

// The variables around a place that are not the same for all threads of a block.
std::vector<Var> varying_around(const LoopSite& site) {
  std::vector<Var> list;
  for (const Stmt& s : site.path) {
    if (const For* f = as<For>(s); f && is_thread(f->kind)) list.push_back(f->var);
    if (const Let* k = as<Let>(s); k && (uses_any(k->value, list) || !reads_nothing(k->value))) list.push_back(k->var);
  }
  return list;
}

// Refuses a place that some threads of the block may pass by.
void require_uniform(const StepCheck& step, const LoopSite& site, const std::vector<Var>& varying) {
  const auto require = [&](const Expr& e) {
    step.require(!uses_any(e, varying) && reads_nothing(e), "not all threads of the block come by here", site.stmt);
  };
  for (const Stmt& s : site.path) {
    if (const If* k = as<If>(s)) require(k->condition);
    if (const For* k = as<For>(s); k && !is_gpu(k->kind)) require(k->begin), require(k->extent);
    step.require(!as<While>(s), "not all threads of the block come by here", site.stmt);
  }
  require(site.loop->begin), require(site.loop->extent);
}

}  // namespace

// The part of `b` that one iteration reads is copied to a tile first. Returns the tile.
//   for i: for j in 0 .. +4: y[i, j] = x[i * 4 + j]
//   for i: { alloc t[4]; for c0 in 0 .. +4: t[c0] = x[i * 4 + c0]; for j in 0 .. +4: y[i, j] = t[j] }
// A Shared tile holds what all threads of the block read; they copy it together, with a barrier before and after (one
// pair for several tiles of the loop). In the innermost loop of threads they do so once, before anything else.
// Refused: a buffer that the loop writes or does not read; reads in vectors; GPU loops inside the loop; a Shared tile
// outside threads, of what every thread has for itself, or where not all threads come by; reads behind different conditions that data
// decides, or behind one that the loop changes; other scopes than registers, stack and (CPU) workspace.
Buffer Schedule::cache_read(const Buffer& b, const Var& v, Scope scope) {
  StepCheck step(*this, "cache_read", {{b}, {v}, {scope_name(scope)}});
  const LoopSite site = step.find(v);
  step.require_insertion_point(site, scope == Scope::Shared ? Scope::Register : scope);
  const Accesses all = accesses_of(site.stmt, site.ranges);
  step.require(all.opaque.empty(), "there is " + all.opaque, site.stmt);
  step.require(touches(all, b, true, false), "loop " + v->name + " does not read \"" + b->name + "\"", site.stmt);
  step.require(!touches(all, b, false, true), "loop " + v->name + " writes \"" + b->name + "\"", site.stmt);
  std::vector<Var> inner = without(all.bound, v);
  std::vector<const For*> threads;
  for (const For* f : site.outer)
    if (is_thread(f->kind)) threads.push_back(f);
  const bool by_thread = is_thread(site.loop->kind);  // at its begin, which it passes once
  if (scope == Scope::Shared) {
    if (by_thread) threads.push_back(site.loop), inner.push_back(v);
    step.require(b->scope != Scope::Register && b->scope != Scope::Stack,
                 "every thread has its own \"" + b->name + "\"", site.stmt);
    step.require(!threads.empty(), "a shared tile needs loops of threads around", site.stmt);
    const std::vector<Var> varying = varying_around(site);
    require_uniform(step, site, varying);
    inner.insert(inner.end(), varying.begin(), varying.end());
  }
  const auto region = region_of(all.list, b, inner, inside_of(site));
  step.require(region.has_value(), "\"" + b->name + "\" is read in vectors", site.stmt);

  const Expr guard = guard_of(step, site, all, b, inner);
  const ReadableAt readable = [&](const Exprs& index) { return both(guard, was_copied(body_, b, index, site)); };
  const Buffer tile = make_buffer(b->name + "_tile", b->dtype, to_shape(region->size), scope);
  const Stmt use = redirect(site.loop->body, b, tile, region->begin);
  if (scope != Scope::Shared) {
    const Stmt body = alloc(tile, seq({copy_nest(*region, b, tile, false, readable), use}));
    step.done(replace_stmt(body_, site.stmt.get(), tidy(with_body(*site.loop, body), site.ranges)), {{tile}});
    return tile;
  }
  const Stmt copy = shared_copy(*region, b, tile, threads, readable);
  const Stmt body = behind_barrier(tile, copy, use, is_passed_again(site));
  Stmt all_of = replace_stmt(body_, site.stmt.get(), tidy(with_body(*site.loop, body), site.ranges));
  const LoopSite outermost = *find_loop(all_of, threads[0]->var);
  all_of = replace_stmt(all_of, outermost.stmt.get(), alloc(tile, outermost.stmt));
  step.done(all_of, {{tile}});
  return tile;
}

// The part of `b` that one iteration writes is built in a tile and copied out at the end; copied in first, if the
// iteration begins with something else than filling it. Returns the tile.
//   for i: for j in 0 .. +4: y[i * 4 + j] = x[j]
//   for i: { alloc t[4]; for j in 0 .. +4: t[j] = x[j]; for c0 in 0 .. +4: y[i * 4 + c0] = t[c0] }
// Refused: a buffer that the loop does not write; a part that one iteration does not fill completely; vectors; GPU
// loops inside the loop; other scopes than registers, stack and (CPU) workspace.
Buffer Schedule::cache_write(const Buffer& b, const Var& v, Scope scope) {
  StepCheck step(*this, "cache_write", {{b}, {v}, {scope_name(scope)}});
  const LoopSite site = step.find(v);
  step.require_insertion_point(site, scope);
  const Accesses all = accesses_of(site.stmt, site.ranges);
  step.require(all.opaque.empty(), "there is " + all.opaque, site.stmt);
  step.require(!all.has_barrier, "there is a barrier", site.stmt);
  step.require(touches(all, b, false, true), "loop " + v->name + " does not write \"" + b->name + "\"", site.stmt);
  const auto region = region_of(all.list, b, without(all.bound, v), inside_of(site));
  step.require(region.has_value(), "\"" + b->name + "\" is used in vectors", site.stmt);
  step.require(fills(site.loop->body, b, *region, false, inside_of(site)),
               "an iteration of " + v->name + " does not fill its part of \"" + b->name + "\" completely", site.stmt);
  // What the first statement that uses the buffer does.
  bool fills_first = false;
  for (const Stmt& s : siblings_of(site.loop->body)) {
    const Accesses here = accesses_of(s);
    if (!touches(here, b, true, true)) continue;
    fills_first = !touches(here, b, true, false) && fills(s, b, *region, true, inside_of(site));
    break;
  }
  const Buffer tile = make_buffer(b->name + "_tile", b->dtype, to_shape(region->size), scope);
  const Stmt in = fills_first ? Stmt() : copy_nest(*region, b, tile, false);
  const Stmt body =
      alloc(tile, seq({in, redirect(site.loop->body, b, tile, region->begin), copy_nest(*region, b, tile, true)}));
  step.done(replace_stmt(body_, site.stmt.get(), tidy(with_body(*site.loop, body), site.ranges)), {{tile}});
  return tile;
}

}  // namespace tc
