// How a loop runs: unroll, vectorize, parallel, bind.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/cuda_limits.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr int64_t kMaxUnroll = 1024;  // iterations of one loop

std::string quoted(const For& f) { return "loop " + f.var->name; }

Stmt of_kind(const For& f, ForKind kind, Expr begin, Stmt body) {
  return loop(f.var, f.extent, std::move(body), kind, std::move(begin));
}

void require_serial(const StepCheck& step, const LoopSite& at) {
  step.require(at.loop->kind == ForKind::Serial,
               quoted(*at.loop) + " is " + std::string(kind_name(at.loop->kind)) + " already", at.stmt);
}

// Registers and the stack belong to one thread, shared memory to one block: what is allocated outside the loop cannot
// be used by the several that it makes.
void require_private(const StepCheck& step, const LoopSite& at, bool blocks) {
  for (const Stmt& s : at.path) {
    const Alloc* a = as<Alloc>(s);
    if (!a) continue;
    const Scope scope = a->buffer->scope;
    const bool own = scope == Scope::Register || scope == Scope::Stack || (blocks && scope == Scope::Shared);
    bool used = false;
    for (const Access& x : accesses_of(at.loop->body).list) used = used || x.buffer == a->buffer;
    step.require(!own || !used, "\"" + a->buffer->name + "\" outside is " + scope_name(scope) + " memory", at.stmt);
  }
}

// Loops of blocks stand right inside each other, those of threads too: what stood between them would run once for every
// index of the inner one.
void require_adjacent(const StepCheck& step, const LoopSite& at, bool (*same)(ForKind)) {
  auto any = [&](const std::vector<const For*>& loops) {
    return std::any_of(loops.begin(), loops.end(), [&](const For* f) { return same(f->kind); });
  };
  const For* above = at.path.empty() ? nullptr : as<For>(at.path.back());
  const For* below = as<For>(at.loop->body);
  step.require(!any(at.outer) || (above && same(above->kind)),
               "it does not stand right inside the loop of its kind around", at.stmt);
  step.require(!any(loops_in(at.loop->body)) || (below && same(below->kind)),
               "the loop of its kind inside does not stand right inside", at.stmt);
}

template <class F>
const For* find_kind(const std::vector<const For*>& loops, F wanted) {
  const auto it = std::find_if(loops.begin(), loops.end(), [&](const For* f) { return wanted(f->kind); });
  return it == loops.end() ? nullptr : *it;
}

int64_t limit_of(ForKind k) {
  if (k == ForKind::BlockX) return kMaxGridX;
  if (is_block(k)) return kMaxGridYz;
  return k == ForKind::ThreadZ ? kMaxThreadsZ : kMaxBlockThreads;
}

// Does a loop store what has no upper bound? A launch has as many blocks as the sizes of a run need.
bool stores_open(const Stmt& s) {
  bool open = false;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x))
      for (const Dim& d : k->buffer->shape) open = open || is_open(d.value);
    return !open;
  });
  return open;
}

}  // namespace

// The compiler repeats the body: TC_UNROLL in C.
//   for i in 0 .. +4: B   ->   unroll i in 0 .. +4: B
// Refused: an extent that is no constant up to 1024.
void Schedule::unroll(const Var& v) {
  StepCheck step(*this, "unroll", {{v}});
  const LoopSite at = step.find(v);
  require_serial(step, at);
  const auto n = as_const_int(at.loop->extent);
  step.require(n && *n <= kMaxUnroll, "the extent is no constant up to " + to_text(kMaxUnroll), at.stmt);
  step.done(replace_stmt(body_, at.stmt.get(), of_kind(*at.loop, ForKind::Unroll, at.loop->begin, at.loop->body)));
}

// The iterations are lanes of vectors.
//   for i in 0 .. +64: B   ->   vector i in 0 .. +64: B
// The body stays scalar here: lower_lanes (C) and vectorize_loops (CUDA) give it its form.
// Refused: iterations that depend on each other or carry a reduction; a loop that contains another loop which is no
// plain one.
void Schedule::vectorize(const Var& v) {
  StepCheck step(*this, "vectorize", {{v}});
  const LoopSite at = step.find(v);
  require_serial(step, at);
  const For* inside =
      find_kind(loops_in(at.loop->body), [](ForKind k) { return k != ForKind::Serial && k != ForKind::Unroll; });
  step.require(!inside, inside ? quoted(*inside) + " inside is " + std::string(kind_name(inside->kind)) : "", at.stmt);
  step.require_independent(at);
  step.done(replace_stmt(body_, at.stmt.get(), of_kind(*at.loop, ForKind::Vector, at.loop->begin, at.loop->body)));
}

// The iterations are shared among threads of the CPU.
//   for i: B   ->   parallel i: B
// Refused: an extent that is no constant; iterations that depend on each other or carry a reduction; a parallel or GPU loop
// around or inside; registers or stack of outside used inside.
void Schedule::parallel(const Var& v) {
  StepCheck step(*this, "parallel", {{v}});
  const LoopSite at = step.find(v);
  require_serial(step, at);
  step.require(as_const_int(at.loop->extent).has_value(), "the extent is no constant", at.stmt);
  auto other = [](ForKind k) { return k == ForKind::Parallel || is_gpu(k); };
  const For* around = find_kind(at.outer, other);
  const For* inside = find_kind(loops_in(at.loop->body), other);
  const For* clash = around ? around : inside;
  step.require(!clash, clash ? quoted(*clash) + " is " + std::string(kind_name(clash->kind)) : "", at.stmt);
  step.require_independent(at);
  require_private(step, at, false);
  step.done(replace_stmt(body_, at.stmt.get(), of_kind(*at.loop, ForKind::Parallel, at.loop->begin, at.loop->body)));
}

// The iterations are blocks of a grid or threads of a block.
//   for i in 2 .. +256: B(i)   ->   thread.x i in 0 .. +256: B(i + 2)
// Refused: a kind that is none of BlockX .. ThreadZ; iterations that depend on each other or carry a reduction; an
// extent that is no constant, below 1 or above the limit of CUDA; another loop of the same kind around or inside;
// blocks inside threads; blocks, or threads, that do not stand right inside each other; a parallel loop around or inside; a
// loop of vectors around; registers, stack or, for blocks, shared memory of outside used inside; workspace inside.
void Schedule::bind(const Var& v, ForKind kind) {
  StepCheck step(*this, "bind", {{v}, {std::string(kind_name(kind))}});
  const LoopSite at = step.find(v);
  step.require(is_gpu(kind), "not a kind of a GPU", at.stmt);
  require_serial(step, at);
  const auto n = as_const_int(at.loop->extent);
  step.require(n.has_value(), "the extent is no constant", at.stmt);
  step.require_fixed_bounds(at);
  const bool trimmed = kind == ForKind::BlockX && stores_open(at.stmt);
  step.require(*n >= 1 && (*n <= limit_of(kind) || trimmed), "the extent is not in 1 .. " + to_text(limit_of(kind)),
               at.stmt);
  std::vector<const For*> others = loops_in(at.loop->body);
  const bool any_block_inside = find_kind(others, is_block) != nullptr;
  const For* lanes = find_kind(at.outer, [](ForKind k) { return k == ForKind::Vector; });
  step.require(!lanes, lanes ? quoted(*lanes) + " around is vector" : "", at.stmt);
  others.insert(others.end(), at.outer.begin(), at.outer.end());
  const For* same = find_kind(others, [&](ForKind k) { return k == kind; });
  step.require(!same, same ? quoted(*same) + " is " + std::string(kind_name(kind)) + " too" : "", at.stmt);
  const For* cpu = find_kind(others, [](ForKind k) { return k == ForKind::Parallel; });
  step.require(!cpu, cpu ? quoted(*cpu) + " is " + std::string(kind_name(cpu->kind)) : "", at.stmt);
  step.require(!(is_thread(kind) && any_block_inside), "a loop of blocks stands inside", at.stmt);
  step.require(!(is_block(kind) && find_kind(at.outer, is_thread)), "a loop of threads stands around", at.stmt);
  int64_t threads = is_thread(kind) ? *n : 1;
  for (const For* f : others)
    if (is_thread(f->kind)) threads *= *as_const_int(f->extent);
  step.require(threads <= kMaxBlockThreads || !is_thread(kind),
               "a block would have " + to_text(threads) + " threads, more than " + to_text(kMaxBlockThreads), at.stmt);
  step.require_independent(at);
  require_private(step, at, is_block(kind));
  require_adjacent(step, at, is_block(kind) ? is_block : is_thread);
  walk(at.loop->body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    const bool fits = !a || a->buffer->scope == Scope::Register || a->buffer->scope == Scope::Stack ||
                      (a->buffer->scope == Scope::Shared && is_block(kind));
    step.require(fits, a ? "\"" + a->buffer->name + "\" inside is " + scope_name(a->buffer->scope) + " memory" : "",
                 at.stmt);
    return true;
  });
  const Expr begin = at.loop->begin;
  const Stmt body = is_const(begin, 0) ? at.loop->body : substitute(at.loop->body, {{v.get(), begin + Expr(v)}});
  step.done(replace_stmt(body_, at.stmt.get(), of_kind(*at.loop, kind, 0, body)));
}

}  // namespace tc
