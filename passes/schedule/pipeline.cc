// Software pipelining: the tile of a later iteration is loaded while this one computes.
//
//   for k: { alloc t[n]; load t from k; use t }
//   alloc t[2, n]; load t[0] from 0; for k: { if k + 1 < end: load t[(k + 1) % 2] from k + 1; use t[k % 2] }
//
// Shared tiles, which are allocated outside the loops of threads and loaded between two barriers, keep one barrier per
// iteration: behind it the tiles of this iteration are there, and nobody reads any more those that are loaded next.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr int64_t kMostStages = 64;  // tiles that a kernel can hold are fewer

struct Loading {
  LoopSite site;
  Stmts loads;  // one per tile, all of them at the beginning of the loop's body
  Stmts use;    // the rest
  bool shared = false;
};

bool fills_only(const Stmt& s, const Buffer& b) {
  const Accesses a = accesses_of(s);
  return touches(a, b, false, true) && !touches(a, b, true, false);
}

// The innermost loop with a statement of its own that fills the tile.
LoopSite find_loading_loop(const StepCheck& step, const Buffer& tile) {
  const For* found = nullptr;
  for (const For* f : loops_in(step.body())) {
    bool reads = false, loads = false;
    for (const Stmt& s : siblings_of(f->body)) {
      loads = loads || fills_only(s, tile);
      reads = reads || touches(accesses_of(s), tile, true, false);
    }
    if (loads && reads) found = f;
  }
  step.require(found, "no loop loads and uses \"" + tile->name + "\"", step.body());
  return step.find(found->var);
}

bool is_among(const std::vector<Buffer>& list, const Buffer& b) {
  return std::find(list.begin(), list.end(), b) != list.end();
}

Loading take_apart(const StepCheck& step, const std::vector<Buffer>& tiles) {
  Loading l{find_loading_loop(step, tiles[0]), {}, {}, tiles[0]->scope == Scope::Shared};
  const For& f = *l.site.loop;
  const Stmt& where = l.site.stmt;
  step.require(f.kind == ForKind::Serial, "loop " + f.var->name + " is " + std::string(kind_name(f.kind)), where);
  Stmt body = f.body;
  if (!l.shared) {
    const Alloc* a = as<Alloc>(body);
    step.require(a && a->buffer == tiles[0] && tiles.size() == 1, "the tile is not allocated by the loop's body",
                 where);
    body = a->body;
  }
  const Seq* q = as<Seq>(body);
  step.require(q, "the loop does not load the tile first", where);
  const Stmts& list = q->list;
  size_t next = 0;
  if (l.shared) step.require(as<Barrier>(list[next++]), "the load does not stand between barriers", where);
  while (l.loads.size() < tiles.size() && next < list.size() &&
         std::any_of(tiles.begin(), tiles.end(), [&](const Buffer& t) { return fills_only(list[next], t); }))
    l.loads.push_back(list[next++]);
  step.require(l.loads.size() == tiles.size(), "the loop does not load the tiles first", where);
  if (l.shared)
    step.require(next < list.size() && as<Barrier>(list[next++]),
                 "something else is loaded between the barriers, or there is no barrier behind", where);
  l.use.assign(list.begin() + std::ptrdiff_t(next), list.end());
  return l;
}

// Loads and uses do not depend on each other but through the tiles.
void require_separate(const StepCheck& step, const Loading& l, const std::vector<Buffer>& tiles) {
  const Stmt& where = l.site.stmt;
  const Accesses loads = accesses_of(seq(l.loads)), uses = accesses_of(seq(l.use));
  step.require(loads.opaque.empty() && uses.opaque.empty(), "there is " + loads.opaque + uses.opaque, where);
  step.require(!uses.has_barrier && !loads.has_barrier, "there is another barrier", where);
  for (const Buffer& t : tiles) {
    step.require(t->strides.empty(), "\"" + t->name + "\" has strides", where);
    step.require(t->scope == tiles[0]->scope, "the tiles are in different memory", where);
    step.require(touches(loads, t, false, true), "\"" + t->name + "\" is not loaded first", where);
    step.require(!touches(loads, t, true, false), "a load reads \"" + t->name + "\"", where);
    step.require(!touches(uses, t, false, true), "\"" + t->name + "\" is changed after it was loaded", where);
  }
  for (const Access& a : loads.list) {
    const bool tile = is_among(tiles, a.buffer);
    step.require(!a.write || tile, "a load fills \"" + a.buffer->name + "\" too", where);
    step.require(tile || !touches(uses, a.buffer, false, true),
                 "the loop writes \"" + a.buffer->name + "\", which it loads", where);
  }
}

// `s` with the tiles' slots in the rings.
Stmt in_ring(const Stmt& s, const std::vector<Buffer>& tiles, const std::vector<Buffer>& rings, const Expr& slot) {
  auto ring_of = [&](const Buffer& b) {
    const auto it = std::find(tiles.begin(), tiles.end(), b);
    return it == tiles.end() ? Buffer() : rings[size_t(it - tiles.begin())];
  };
  auto index = [&](const Exprs& old) {
    Exprs all = {slot};
    all.insert(all.end(), old.begin(), old.end());
    return all;
  };
  auto on_expr = [&](const Expr& e) {
    const Load* x = as<Load>(e);
    const Buffer ring = x ? ring_of(x->buffer) : nullptr;
    return ring ? load(ring, index(x->index)) : Expr();
  };
  auto on_stmt = [&](const Stmt& x) {
    const Store* k = as<Store>(x);
    const Buffer ring = k ? ring_of(k->buffer) : nullptr;
    return ring ? store(ring, index(k->index), k->value, k->reduce, k->count) : Stmt();
  };
  return rewrite(s, on_expr, on_stmt);
}

}  // namespace

// Before and after: the head of this file. `stages` tiles exist, stages - 1 of them are loaded ahead. Returns the
// buffers that take the tiles' places, with a leading dimension.
// Refused: fewer than 2 stages, or more than 64; tiles that are not loaded by the first statements of a plain loop's body and then only
// read; what is loaded being written in the loop; for Shared tiles anything else between the barriers, other barriers
// in the loop, and uses behind it. Several tiles at once only if they are Shared.
std::vector<Buffer> Schedule::pipeline(const std::vector<Buffer>& tiles, int64_t stages) {
  StepOperand::List list;
  for (const Buffer& t : tiles) list.push_back({t});
  StepCheck step(*this, "pipeline", {{list}, {stages}});
  step.require_argument(1, stages >= 2, "there are fewer than 2 stages", body_);
  step.require_argument(1, stages <= kMostStages, "there are more than " + to_text(kMostStages) + " stages", body_);
  step.require(!tiles.empty(), "no tile is given", body_);
  for (const Buffer& t : tiles) step.require(find_alloc(body_, t), "\"" + t->name + "\" is not allocated here", body_);
  const Loading l = take_apart(step, tiles);
  step.require_fixed_bounds(l.site);
  require_separate(step, l, tiles);
  const For& f = *l.site.loop;
  std::vector<Buffer> rings;
  std::vector<StepOperand> results;
  for (const Buffer& t : tiles) {
    const Accesses elsewhere = accesses_of(replace_stmt(find_alloc(body_, t)->body, l.site.stmt.get(), {}));
    step.require(!l.shared || !touches(elsewhere, t, true, true), "\"" + t->name + "\" is used outside the loop too",
                 body_);
    Shape shape = {Dim(stages)};
    shape.insert(shape.end(), t->shape.begin(), t->shape.end());
    rings.push_back(make_buffer(t->name, t->dtype, shape, t->scope));
    results.push_back({rings.back()});
  }

  const Expr iteration = Expr(f.var) - f.begin, ahead = stages - 1;
  auto load_at = [&](const Expr& at, const Expr& slot) {
    return in_ring(substitute(fresh_copy(seq(l.loads)), {{f.var.get(), at}}), tiles, rings, slot);
  };
  Stmts all;
  // Who comes by again must not overwrite what others still read.
  const bool again =
      std::any_of(l.site.outer.begin(), l.site.outer.end(), [](const For* g) { return !is_gpu(g->kind); });
  if (l.shared && again) all.push_back(barrier(Scope::Shared));
  for (int64_t p = 0; p < stages - 1; p++) all.push_back(if_then(Expr(p) < f.extent, load_at(f.begin + Expr(p), p)));
  const Stmt next =
      if_then(iteration + ahead < f.extent, load_at(Expr(f.var) + ahead, floor_mod(iteration + ahead, Expr(stages))));
  const Stmt use = in_ring(seq(l.use), tiles, rings, floor_mod(iteration, Expr(stages)));
  all.push_back(with_body(f, seq({l.shared ? barrier(Scope::Shared) : Stmt(), next, use})));
  Stmt loops = tidy(seq(all), l.site.ranges);
  if (!l.shared) loops = alloc(rings[0], loops);
  Stmt body = replace_stmt(body_, l.site.stmt.get(), loops);
  for (size_t i = 0; l.shared && i < tiles.size(); i++) {
    Stmt holder;
    const Stmt inner = find_alloc(body, tiles[i], &holder)->body;
    body = replace_stmt(body, holder.get(), alloc(rings[i], inner));
  }
  step.done(body, results);
  return rings;
}

}  // namespace tc
