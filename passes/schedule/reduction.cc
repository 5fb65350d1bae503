// Reductions: rfactor, bind_reduction and decompose_reduction.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/cuda_limits.h"
#include "ir/loop/intrin.h"
#include "ir/loop/linear.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

bool index_uses(const Store& k, const Var& v) {
  return std::any_of(k.index.begin(), k.index.end(), [&](const Expr& i) { return uses_var(i, v); });
}

// The outermost loop around `site`, right above it but for conditions, over which the store's index does not run.
Stmt reduction_nest(const LoopSite& site, const Store& k) {
  Stmt top = site.stmt;
  for (size_t i = site.path.size(); i-- > 0;) {
    const Stmt& s = site.path[i];
    const If* c = as<If>(s);
    if (c && !c->otherwise && reads_nothing(c->condition)) continue;
    const For* f = as<For>(s);
    if (!f || index_uses(k, f->var) || f->kind != ForKind::Serial) break;
    top = s;
  }
  return top;
}

/// Accumulators that get an element for every iteration of the loops around them: acc[...] -> acc[i, j, ..., ...].
class WideAccumulators {
 public:
  WideAccumulators(const std::vector<Buffer>& accs, const std::vector<const For*>& loops, const Shape& extents,
                   Scope scope)
      : loops_(loops) {
    for (const Buffer& a : accs) {
      Shape shape = extents;
      shape.insert(shape.end(), a->shape.begin(), a->shape.end());
      order_.push_back(wide_[a.get()] = make_buffer(a->name, a->dtype, shape, scope));
    }
  }
  Stmt widen(const Stmt& s) const {
    auto on_expr = [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      const auto it = l ? wide_.find(l->buffer.get()) : wide_.end();
      return it == wide_.end() ? Expr() : load(it->second, index(l->index));
    };
    auto on_stmt = [&](const Stmt& x) -> Stmt {
      const Store* k = as<Store>(x);
      const auto it = k ? wide_.find(k->buffer.get()) : wide_.end();
      return it == wide_.end() ? Stmt() : store(it->second, index(k->index), k->value, k->reduce, k->count);
    };
    return rewrite(s, on_expr, on_stmt);
  }
  Stmt allocate(Stmt body) const {
    for (size_t i = order_.size(); i-- > 0;) body = alloc(order_[i], body);
    return body;
  }

 private:
  Exprs index(const Exprs& old) const {
    Exprs all;
    for (const For* f : loops_) all.push_back(Expr(f->var));
    all.insert(all.end(), old.begin(), old.end());
    return all;
  }
  std::vector<const For*> loops_;
  std::map<const BufferDef*, Buffer> wide_;  // looked up only
  std::vector<Buffer> order_;
};

// Accumulators of a loop whose extent is no constant.
constexpr int64_t kMaxTile = 1 << 20;

// The store of a loop that joins the value of every iteration into a cell that is the same for all of them; refuses others.
Stmt joining_store(const StepCheck& step, const LoopSite& site) {
  const For& f = *site.loop;
  const auto extent = as_const_int(f.extent);
  step.require(extent && *extent >= 1 && is_const(f.begin, 0), "the bounds of the loop are no constants", site.stmt);
  step.require(f.kind == ForKind::Serial, "loop " + f.var->name + " is " + std::string(kind_name(f.kind)), site.stmt);
  Stmt at = site.stmt;
  while (as<For>(at) || (as<If>(at) && !as<If>(at)->otherwise)) at = as<For>(at) ? as<For>(at)->body : as<If>(at)->then;
  const Store* k = as<Store>(at);
  step.require(k && k->reduce, "the loop is not the loop of one joining store", site.stmt);
  step.require(!k->value->vector && !k->count, "the store is one of vectors", site.stmt);
  step.require(!index_uses(*k, f.var), "\"" + k->buffer->name + "\" has a cell for every iteration already", site.stmt);
  step.require(!uses_buffer(k->value, k->buffer), "the value depends on the result", site.stmt);
  step.require(bool(identity_of(*k->reduce, k->buffer->dtype)), "the operation is not known to be associative",
               site.stmt);
  step.require(may_reorder({k->buffer, k->reduce, ""}, step.strict_fp()),
               "strict floating point keeps the order of the sum", site.stmt);
  return at;
}

// What is known of the variables of a chain and around it.
Ranges ranges_at(const LoopSite& site, const Chain& chain) {
  Ranges ranges = site.ranges;
  for (const For* f : chain.loops) ranges[f->var.get()] = loop_range(*f, ranges);
  return ranges;
}

/// Where the sum of a loop begins and ends: the accumulator, and what stands between it and the loops of the GPU.
struct SumSite {
  size_t alloc = 0;           // of the accumulator, in the path of the loop
  size_t begins = 0;          // what becomes the code of a thread, there
  const Seq* list = nullptr;  // start values, sum, results
  size_t sum = 0;             // which of them
};

SumSite sum_site(const StepCheck& step, const LoopSite& site, const Buffer& acc) {
  SumSite at;
  const std::vector<Stmt>& path = site.path;
  const auto holds = [&](const Stmt& s) { return as<Alloc>(s) && as<Alloc>(s)->buffer == acc; };
  at.alloc = size_t(std::find_if(path.begin(), path.end(), holds) - path.begin());
  step.require(at.alloc + 1 < path.size(), "\"" + acc->name + "\" is no accumulator around the loop", site.stmt);
  at.list = as<Seq>(path[at.alloc + 1]);
  step.require(at.list, "the sum has neither a start nor an end", path[at.alloc]);
  const Stmt& sum = at.alloc + 2 < path.size() ? path[at.alloc + 2] : site.stmt;
  while (!at.list->list[at.sum].same_as(sum)) at.sum++;
  for (size_t i = at.alloc + 2; i < path.size(); i++) {
    const For* f = as<For>(path[i]);
    const If* c = as<If>(path[i]);
    step.require(f || (c && !c->otherwise), "the sum is more than one nest", path[at.alloc]);
    step.require(!f || f->kind == ForKind::Serial || f->kind == ForKind::Unroll,
                 f ? "loop " + f->var->name + " is " + std::string(kind_name(f->kind)) : "", path[at.alloc]);
  }
  const auto runs_once_more = [](const Stmt& s) {
    const For* f = as<For>(s);
    const Alloc* a = as<Alloc>(s);
    return (f && !is_gpu(f->kind) && f->kind != ForKind::Parallel) || as<Let>(s) ||
           (a && (a->buffer->scope == Scope::Register || a->buffer->scope == Scope::Stack));
  };
  at.begins = at.alloc;
  while (at.begins > 0 && runs_once_more(path[at.begins - 1])) at.begins--;
  const For* around = at.begins > 0 ? as<For>(path[at.begins - 1]) : nullptr;
  const bool gpu = std::any_of(site.outer.begin(), site.outer.end(), [](const For* f) { return is_gpu(f->kind); });
  step.require(!gpu || (around && is_gpu(around->kind)),
               "what stands around the sum in the loops of the GPU is more than loops", path[at.begins]);
  return at;
}

// As many threads as the loop has iterations, a power of two, beside those that there are.
void require_threads(const StepCheck& step, const LoopSite& site) {
  const int64_t n = *as_const_int(site.loop->extent);
  int64_t all = n;
  for (const For* f : site.outer) {
    step.require(f->kind != ForKind::ThreadX, "loop " + f->var->name + " is thread.x too", site.stmt);
    if (is_thread(f->kind)) all *= *as_const_int(f->extent);
  }
  step.require((n & (n - 1)) == 0 && n > 1, "the number of iterations is no power of two", site.stmt);
  step.require(n <= kWarp || all == n, "more threads than a warp's share a sum, and the block has other ones",
               site.stmt);
  step.require(all <= kMaxBlockThreads && all % kWarp == 0,
               "a block would have " + to_text(all) + " threads, which are no whole warps, or too many", site.stmt);
}

// Start values that are joined once, though every thread has a sum of its own; stores to nothing else.
Stmt starts_of_threads(const StepCheck& step, const Stmts& starts, const Store& sum, const Var& thread) {
  const Expr identity = identity_of(*sum.reduce, sum.buffer->dtype);
  const auto n = as_const_number(identity);
  return rewrite(seq(starts), {}, [&](const Stmt& s) -> Stmt {
    step.require(!as<If>(s) && !as<While>(s), "a sum may have no start", s);
    const Store* k = as<Store>(s);
    if (!k) return {};
    step.require(k->buffer == sum.buffer && !k->reduce, "more than the sum is stored before it", s);
    const auto start = as_const_number(k->value);
    if (start && n && *start == *n) return {};
    return store(k->buffer, k->index, select(eq(Expr(thread), 0), k->value, identity));
  });
}

// Every accumulator joined over the threads.
Stmt join_threads(const Buffer& acc, Op op, int64_t threads) {
  if (acc->shape.empty()) return allreduce(acc, op, threads);
  std::vector<Var> vars;
  Exprs at;
  for (size_t d = 0; d < acc->shape.size(); d++) {
    vars.push_back(make_var("c" + to_text(int64_t(d))));
    at.push_back(Expr(vars.back()));
  }
  const Buffer one = make_buffer(acc->name + "_all", acc->dtype, {}, Scope::Register);
  Stmt s = alloc(one, seq({store(one, {}, load(acc, at)), allreduce(one, op, threads), store(acc, at, load(one, {}))}));
  for (size_t d = vars.size(); d-- > 0;) s = loop(vars[d], acc->shape[d], s, ForKind::Unroll);
  return s;
}

}  // namespace

// A reduction keeps a partial result per iteration of a loop, which are joined at the end; the loop carries nothing any
// more. Returns the buffer of partial results.
//   for k_o: for k_i in 0 .. +4: acc += x[k_o * 4 + k_i]
//   alloc part[4]; for p: part[p] = 0; for k_o: for k_i: part[k_i] += x[k_o * 4 + k_i]; for p: acc += part[p]
// Refused: anything but one joining store inside the loops of the reduction; an operation that is not associative; sums
// and products of floats under strict_fp; an extent that is no constant.
Buffer Schedule::rfactor(const Var& v, Scope scope) {
  StepCheck step(*this, "rfactor", {{v}, {scope_name(scope)}});
  const LoopSite site = step.find(v);
  step.require_scope(site, scope);
  const Stmt at = joining_store(step, site);
  const Store* k = as<Store>(at);
  const int64_t extent = *as_const_int(site.loop->extent);
  const Expr identity = identity_of(*k->reduce, k->buffer->dtype);
  const Stmt top = reduction_nest(site, *k);
  walk(top, [&](const Stmt& s) {
    const If* c = as<If>(s);
    const For* f = as<For>(s);
    step.require(!c || reads_nothing(c->condition), "a condition reads memory", top);
    step.require(!f || (reads_nothing(f->begin) && reads_nothing(f->extent)), "the bounds of a loop read memory", top);
    step.require(!f || f->kind == ForKind::Serial || f->kind == ForKind::Unroll,
                 f ? "loop " + f->var->name + " is " + std::string(kind_name(f->kind)) : "", top);
    return true;
  });
  for (const For* f : loops_in(top))
    step.require(!index_uses(*k, f->var), "loop " + f->var->name + " is no loop of the reduction", top);
  // Partial results are joined even if no iteration runs.
  const Ranges around = find_loop(body_, as<For>(top)->var)->ranges;
  for (size_t d = 0; d < k->index.size(); d++) {
    const Range at = interval(k->index[d], around);
    step.require(at.min >= 0 && at.max < k->buffer->shape[d].value,
                 "the cell may lie outside of \"" + k->buffer->name + "\"", top);
  }
  const Buffer part = make_buffer(k->buffer->name + "_part", k->buffer->dtype, {Dim(extent)}, scope);
  const Var first = make_var("p"), last = make_var("p");
  const Stmt start = loop(first, extent, store(part, {first}, identity));
  const Stmt sums = replace_stmt(top, at.get(), store(part, {v}, k->value, k->reduce));
  const Stmt join = loop(last, extent, store(k->buffer, k->index, load(part, {last}), k->reduce));
  step.done(replace_stmt(body_, top.get(), alloc(part, seq({start, sums, join}))), {{part}});
  return part;
}

// The iterations of a loop of a sum become neighbouring threads of a block. Each has accumulators of its own, which are joined
// behind the sum; what is made of the sums is left to the first thread.
//   block.x i: { alloc acc; acc = 0; for k_o: for k_i in 0 .. +32: acc += x[i, k_o * 32 + k_i]; y[i] = acc }
//   block.x i: thread.x k_i in 0 .. +32: { alloc acc; acc = 0; for k_o: acc += x[i, k_o * 32 + k_i]
//                                          allreduce_add(32, acc); if k_i == 0: y[i] = acc }
// Refused: anything but one joining store of 4 or 8 bytes, whose accumulator stands around start values, the nest of the sum
// and results; operations other than sums, products, minimum and maximum; sums and products of floats under strict_fp;
// numbers of threads that are no power of two or fill no whole warps; thread.x around, and other threads where more than a
// warp's share a sum; conditions around the sum; barriers inside; results that the sum reads.
void Schedule::bind_reduction(const Var& v) {
  StepCheck step(*this, "bind_reduction", {{v}});
  const LoopSite site = step.find(v);
  const Stmt at = joining_store(step, site);
  const Store& k = *as<Store>(at);
  const Op op = *k.reduce;
  const int64_t bytes = info(k.buffer->dtype).bytes;
  step.require((op == Op::Add || op == Op::Mul || op == Op::Max || op == Op::Min) && (bytes == 4 || bytes == 8),
               "threads join sums, products, minima and maxima of 4 or 8 bytes", site.stmt);
  require_threads(step, site);
  const SumSite sum = sum_site(step, site, k.buffer);
  const Stmt where = site.path[sum.alloc], code = sum.begins < sum.alloc ? site.path[sum.begins] : where;
  for (const For* f : loops_in(where))
    step.require(!is_gpu(f->kind) && f->kind != ForKind::Parallel,
                 "loop " + f->var->name + " is " + std::string(kind_name(f->kind)), where);
  const auto split = sum.list->list.begin() + std::ptrdiff_t(sum.sum);
  const Stmts starts(sum.list->list.begin(), split), results(split + 1, sum.list->list.end());
  const Accesses inside = accesses_of(code), before = accesses_of(seq(starts)), summed = accesses_of(*split),
                 made = accesses_of(seq(results));
  step.require(inside.opaque.empty() && !inside.has_barrier, "there is a barrier or an instruction", code);
  for (const Access& a : made.list)
    step.require(!a.write || a.buffer == k.buffer ||
                     (!touches(summed, a.buffer, true, false) && !touches(before, a.buffer, true, false)),
                 "the sum reads \"" + a.buffer->name + "\", which is made of it", where);

  const Stmt result = if_then(eq(Expr(v), 0), seq(results));
  const Stmt body = seq({starts_of_threads(step, starts, k, v), replace_stmt(*split, site.stmt.get(), site.loop->body),
                         join_threads(k.buffer, op, *as_const_int(site.loop->extent)), result});
  const Stmt thread = replace_stmt(code, where.get(), alloc(k.buffer, body));
  step.done(replace_stmt(body_, code.get(), loop(v, site.loop->extent, thread, ForKind::ThreadX)));
}

// The start of the accumulators, the reduction and the stores of results become nests of their own, from loop `v` on;
// accumulators get an element per iteration. Loops of the reduction then stand right inside the others and can be
// reordered.
//   for i: { alloc acc; acc = 0; for k: acc += x[i, k]; y[i] = acc }
//   alloc acc[i]; for i: acc[i] = 0; for i: for k: acc[i] += x[i, k]; for i: y[i] = acc[i]
// The loops of the nest with the reduction keep their variables.
// Refused: loops that are not right inside each other down to the accumulators; iterations that depend on each other;
// bounds that do not begin at 0, extents of which no largest is known.
std::vector<Var> Schedule::decompose_reduction(const Var& v, Scope scope) {
  StepCheck step(*this, "decompose_reduction", {{v}, {scope_name(scope)}});
  const LoopSite site = step.find(v);
  step.require_scope(site, scope);
  const auto chain = chain_of(site.stmt, nullptr);
  Stmt body = chain->body;
  std::vector<Buffer> accs;
  Exprs conditions = chain->conditions;
  while (true) {
    if (const Alloc* a = as<Alloc>(body)) {
      accs.push_back(a->buffer), body = a->body;
    } else if (const If* k = as<If>(body); k && !k->otherwise && accs.empty()) {
      conditions.push_back(k->condition), body = k->then;
    } else {
      break;
    }
  }
  const Seq* list = as<Seq>(body);
  step.require(!accs.empty() && list, "the loops do not lead to accumulators", site.stmt);
  const Accesses inside = accesses_of(body);
  step.require(inside.opaque.empty(), "there is " + inside.opaque, site.stmt);
  for (const For* f : loops_in(body))
    step.require(!is_gpu(f->kind) && f->kind != ForKind::Parallel,
                 "loop " + f->var->name + " is " + std::string(kind_name(f->kind)), site.stmt);
  Shape extents;
  for (const For* f : chain->loops) {
    step.require(f->kind == ForKind::Serial, "loop " + f->var->name + " is " + std::string(kind_name(f->kind)),
                 site.stmt);
    const auto n = as_const_int(f->extent);
    const int64_t most = n ? *n : interval(f->extent, ranges_at(site, *chain)).max;
    step.require(most <= kMaxTile && is_const(f->begin, 0), "the bounds of loop " + f->var->name + " are no constants",
                 site.stmt);
    extents.push_back(Dim(std::max<int64_t>(most, 0)));
    const auto found = conflicts(site.stmt, f->var, site.ranges);
    step.require(
        found.empty(),
        found.empty() ? "" : "iterations of loop " + f->var->name + " depend on each other: it " + found[0].text,
        site.stmt);
  }
  for (const Expr& c : conditions)
    step.require(reads_nothing(c), "a condition between the loops reads memory", site.stmt);

  const WideAccumulators wide(accs, chain->loops, extents, scope);
  Stmts nests;
  std::vector<Var> made;
  bool kept = false;
  for (const Stmt& s : list->list) {
    Stmt nest = wide.widen(s);
    for (size_t i = conditions.size(); i-- > 0;) nest = if_then(conditions[i], nest);
    for (size_t i = chain->loops.size(); i-- > 0;) nest = with_body(*chain->loops[i], nest);
    const bool keep = !kept && !loops_in(s).empty();
    kept = kept || keep;
    nests.push_back(keep ? nest : fresh_copy(nest));
    made.push_back(as<For>(nests.back())->var);
  }
  Stmt all = seq(nests);
  std::vector<StepOperand> results;
  for (const Var& w : made) results.push_back({w});
  step.done(replace_stmt(body_, site.stmt.get(), wide.allocate(all)), std::move(results));
  return made;
}

}  // namespace tc
