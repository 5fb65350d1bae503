// Memory: set_scope, storage_align, prefetch.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

bool any(const std::vector<const For*>& loops, bool (*is)(ForKind)) {
  return std::any_of(loops.begin(), loops.end(), [&](const For* f) { return is(f->kind); });
}

// The loops around a statement.
class Around {
 public:
  static std::vector<const For*> of(const Stmt& s, const StmtNode* what) {
    Around a;
    a.stmt(s, what);
    return a.found_;
  }

 private:
  bool stmt(const Stmt& s, const StmtNode* what) {
    if (!s) return false;
    if (s.get() == what) {
      found_ = around_;
      return true;
    }
    if (const For* f = as<For>(s)) {
      around_.push_back(f);
      if (stmt(f->body, what)) return true;
      around_.pop_back();
    }
    if (const Seq* k = as<Seq>(s))
      for (const Stmt& x : k->list)
        if (stmt(x, what)) return true;
    if (const If* k = as<If>(s)) return stmt(k->then, what) || stmt(k->otherwise, what);
    if (const Let* k = as<Let>(s)) return stmt(k->body, what);
    if (const While* k = as<While>(s)) return stmt(k->body, what);
    if (const Alloc* k = as<Alloc>(s)) return stmt(k->body, what);
    if (const Alias* k = as<Alias>(s)) return stmt(k->body, what);
    if (const Comment* k = as<Comment>(s)) return stmt(k->body, what);
    return false;
  }
  std::vector<const For*> around_, found_;
};

int64_t elements_of(const Buffer& b) { return num_elements(static_dims(b->shape)); }

// Instructions and views know how their buffers lie.
void require_plain_uses(const StepCheck& step, const Stmt& s, const Buffer& b) {
  walk(s, [&](const Stmt& x) {
    const Intrin* k = as<Intrin>(x);
    const Alias* a = as<Alias>(x);
    step.require(!k || std::find(k->buffers.begin(), k->buffers.end(), b) == k->buffers.end(), "an instruction uses it",
                 x);
    step.require(!a || a->base != b, "a view into it exists", x);
    return true;
  });
}

}  // namespace

// A temporary moves to another kind of memory. Returns the buffer that takes its place.
//   alloc t: f32[64] workspace   ->   alloc t: f32[64] stack
// Refused: a buffer that is not allocated here; the stack for more than 4 KiB; registers or stack for what several
// threads share; shared memory outside blocks or inside threads; workspace inside GPU loops; global and warp; a
// buffer of instructions or views.
Buffer Schedule::set_scope(const Buffer& b, Scope scope) {
  StepCheck step(*this, "set_scope", {{b}, {scope_name(scope)}});
  Stmt where;
  const Alloc* a = find_alloc(body_, b, &where);
  step.require(a, "\"" + b->name + "\" is not allocated here", body_);
  require_plain_uses(step, a->body, b);
  const std::vector<const For*> around = Around::of(body_, where.get()), inside = loops_in(a->body);
  const bool gpu_around = any(around, is_gpu), shared_by_loops = any(inside, is_gpu);
  const bool by_threads = shared_by_loops || any(inside, [](ForKind k) { return k == ForKind::Parallel; });
  switch (scope) {
    case Scope::Stack:
      step.require(elements_of(b) * info(b->dtype).bytes <= kMostStack, "it has more than 4 KiB", where);
      [[fallthrough]];
    case Scope::Register: step.require(!by_threads, "threads inside share it", where); break;
    case Scope::Workspace: step.require(!gpu_around, "it stands inside GPU loops", where); break;
    case Scope::Shared:
      step.require(any(around, is_block) && !any(around, is_thread) && any(inside, is_thread),
                   "it does not stand between blocks and threads", where);
      break;
    default: step.refuse("a temporary cannot be there", where);
  }
  auto def = std::make_shared<BufferDef>(*b);
  def->scope = scope;
  const Buffer moved = def;
  step.rename_result(b, moved);
  step.done(replace_stmt(body_, where.get(), alloc(moved, substitute_buffers(a->body, {{b.get(), moved}}))), {{moved}});
  return moved;
}

// Rows of a temporary get an unused end, so that the stride of a dimension is `offset` modulo `factor` elements:
// threads that read down a column then hit different banks. Returns the buffer that takes its place.
//   alloc t: f32[32,32], strides 32, 1   ->   strides 33, 1     for storage_align(t, 0, 32, 1)
// Refused: a buffer that is not allocated here; the last dimension; a factor below 1, an offset outside 0 .. factor -
// 1; registers, which have no strides.
Buffer Schedule::storage_align(const Buffer& b, size_t dimension, int64_t factor, int64_t offset) {
  StepCheck step(*this, "storage_align", {{b}, {int64_t(dimension)}, {factor}, {offset}});
  Stmt where;
  const Alloc* a = find_alloc(body_, b, &where);
  step.require(a, "\"" + b->name + "\" is not allocated here", body_);
  require_plain_uses(step, a->body, b);
  step.require_argument(1, dimension + 1 < b->shape.size(), "there is no dimension behind it", where);
  step.require_argument(2, factor >= 1, "the factor is below 1", where);
  step.require_argument(3, offset >= 0 && offset < factor, "the offset is not below the factor", where);
  step.require(b->scope != Scope::Register, "registers have no strides", where);
  auto def = std::make_shared<BufferDef>(*b);
  std::vector<int64_t> strides(b->shape.size(), 1);
  for (size_t d = b->shape.size() - 1; d-- > 0;) {
    strides[d] = b->strides.empty() ? strides[d + 1] * b->shape[d + 1].value : b->strides[d];
    if (!b->strides.empty()) strides[d] = std::max(strides[d], strides[d + 1] * b->shape[d + 1].value);
    if (d == dimension) strides[d] += ((offset - strides[d]) % factor + factor) % factor;
  }
  def->strides = strides;
  const Buffer aligned = def;
  step.rename_result(b, aligned);
  step.done(replace_stmt(body_, where.get(), alloc(aligned, substitute_buffers(a->body, {{b.get(), aligned}}))),
            {{aligned}});
  return aligned;
}

// The dimensions of a temporary change places: dimension d becomes what dimension order[d] was. Returns the buffer that takes
// its place.
//   t[i, k] = b[i, k]; y[i] += t[i, k]   ->   t[k, i] = b[i, k]; y[i] += t[k, i]     for transform_layout(t, 1, 0)
// Refused: a buffer that is not allocated here; what is no order of its dimensions; an aligned one; uses in vectors.
Buffer Schedule::transform_layout(const Buffer& b, const std::vector<int64_t>& order) {
  std::vector<StepOperand> arguments = {{b}};
  for (const int64_t d : order) arguments.push_back({d});
  StepCheck step(*this, "transform_layout", arguments);
  Stmt where;
  const Alloc* a = find_alloc(body_, b, &where);
  step.require(a, "\"" + b->name + "\" is not allocated here", body_);
  require_plain_uses(step, a->body, b);
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool complete = sorted.size() == b->shape.size();
  for (size_t d = 0; complete && d < sorted.size(); d++) complete = sorted[d] == int64_t(d);
  step.require(complete, "this is no order of its " + to_text(int64_t(b->shape.size())) + " dimensions", where);
  step.require(b->strides.empty(), "it is aligned", where);
  auto permuted = [&](const auto& list) {
    auto all = list;
    for (size_t d = 0; d < order.size(); d++) all[d] = list[size_t(order[d])];
    return all;
  };
  auto def = std::make_shared<BufferDef>(*b);
  def->shape = permuted(b->shape);
  const Buffer moved = def;
  const Stmt body = rewrite(
      a->body,
      [&](const Expr& e) {
        const Load* k = as<Load>(e);
        if (!k || k->buffer != b) return Expr();
        step.require(!e->vector, "it is read in vectors", where);
        return load(moved, permuted(k->index));
      },
      [&](const Stmt& s) {
        const Store* k = as<Store>(s);
        if (!k || k->buffer != b) return Stmt();
        step.require(!k->value->vector && !k->count, "it is written in vectors", where);
        return store(moved, permuted(k->index), k->value, k->reduce);
      });
  step.rename_result(b, moved);
  step.done(replace_stmt(body_, where.get(), alloc(moved, body)), {{moved}});
  return moved;
}

// What the loop reads first from `b` is asked for `distance` iterations ahead. Changes no value.
//   for i: y[i] = x[i]   ->   for i: { if i + 8 < n: prefetch x[i + 8]; y[i] = x[i] }
// Refused: a distance below 1; a buffer that the loop does not read at an index that depends on its variable; indices
// that are known inside other loops' lets only.
void Schedule::prefetch(const Buffer& b, const Var& v, int64_t distance) {
  StepCheck step(*this, "prefetch", {{b}, {v}, {distance}});
  const LoopSite site = step.find(v);
  const For& f = *site.loop;
  step.require_argument(2, distance >= 1, "the distance is below 1", site.stmt);
  const Accesses all = accesses_of(site.stmt, site.ranges);
  const auto a = std::find_if(all.list.begin(), all.list.end(), [&](const Access& x) {
    return x.buffer == b && !x.write &&
           std::any_of(x.index.begin(), x.index.end(), [&](const Expr& i) { return uses_var(i, v) && !i->vector; });
  });
  step.require(a != all.list.end(), "the loop does not read \"" + b->name + "\" at a place that depends on it",
               site.stmt);
  VarMap ahead;
  const std::vector<const For*> inner = loops_in(f.body);
  for (const For* g : inner) ahead[g->var.get()] = g->begin;
  ahead[v.get()] = Expr(v) + Expr(distance);
  Exprs index;
  for (const Expr& i : a->index) {
    index.push_back(simplify(substitute(i, ahead)));
    step.require(reads_nothing(index.back()), "the place depends on memory", site.stmt);
    for (const Var& w : all.bound)
      step.require(w == v || !uses_var(index.back(), w), "the place depends on " + w->name, site.stmt);
  }
  Expr in = Expr(v) + Expr(distance) < f.begin + f.extent;
  Ranges ranges = site.ranges;
  const Range all_of = loop_range(f, site.ranges);
  ranges[v.get()] = {all_of.min, std::max(all_of.min, all_of.max - distance)};
  for (size_t d = 0; d < index.size(); d++) {
    const Range at = interval(index[d], ranges);
    const Expr n = Expr(b->shape[d]);
    if (at.min < 0 || at.max >= b->shape[d].value) in = in && index[d] >= Expr(0) && index[d] < n;
  }
  const Stmt ask = if_then(in, tc::prefetch(b, index));
  step.done(replace_stmt(body_, site.stmt.get(), with_body(f, seq({ask, f.body}))));
}

}  // namespace tc
