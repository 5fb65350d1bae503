// The last block of a launch reaches beyond what a run needs. Sizes that have an upper bound have memory for that; of one without,
// an image is one element of many, and memory for a block of them is a waste.
//   block.x b in 0 .. +369008640:                        block.x b in 0 .. +369008640:
//     thread.x t in 0 .. +256:                             thread.x t in 0 .. +256:
//       y[b * 256 + t] = sum(k) x[b * 256 + t, k]   ->       if (b * 256 + t < n)
//                                                              y[b * 256 + t] = sum(k) x[b * 256 + t, k]
//
// Where threads wait for each other all of them go on, and only what would be told of is not looked at:
//   at = test(index[b * 16 + t], 99)      ->      at = test(b * 16 + t < n ? index[b * 16 + t] : 0, 99)
//
// Preconditions, for each launch: no thread waits for others, or exchanges anything with them; every store of a thread is to an
// output that is needed up to a count which the host knows, and that no other launch of the kernel reads, or to memory of its own.
#include "passes/loop/guard_threads.h"

#include <algorithm>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/analysis/nest.h"
#include "passes/loop/launches.h"
#include "passes/loop/live_stores.h"

namespace tc {
namespace {

using Live = KernelInterface::Live;

constexpr size_t kMostConditions = 4;

bool waits(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    const Intrin* k = as<Intrin>(x);
    found = found || as<Barrier>(x) || (k && instruction(*k).collective != Collective::No);
    return !found;
  });
  return found;
}

class GuardThreads {
 public:
  GuardThreads(const Stmt& body, const std::vector<Live>& live) : stores_(body, live) {
    each_launch(body, [&](const Stmt& s) {
      launches_.push_back(s);
      return s;
    });
  }

  Stmt launch(const Stmt& s) {
    launch_ = s;
    return inside(s);
  }

 private:
  /// The loops of blocks and threads stay outermost.
  Stmt inside(const Stmt& s) {
    if (const Alloc* k = as<Alloc>(s); k && has_device_loops(s)) return alloc(k->buffer, inside(k->body));
    if (const Comment* k = as<Comment>(s)) return comment(k->text, inside(k->body));
    if (const For* f = as<For>(s); f && is_gpu(f->kind)) {
      threads_.push_back(f->var);
      const Stmt inner = inside(f->body);
      threads_.pop_back();
      return loop(f->var, f->extent, inner, f->kind, f->begin);
    }
    const auto is_needed = threads_.empty() ? std::nullopt : needed(s);
    return is_needed ? if_then(*is_needed, s) : s;
  }
  std::optional<Expr> needed(const Stmt& s) const {
    const auto is_local = [](const Buffer& b) { return b->scope == Scope::Register || b->scope == Scope::Stack; };
    std::vector<Expr> conditions;
    const bool ok = stores_.all(s, {}, is_local, [&](const Live& l, const LiveCoordinate& c) {
      if (is_read_elsewhere(launches_, launch_, l.memory)) return false;
      const auto piece = l.on_host ? stores_.piece(c, [&](const Expr& e) { return is_of_thread(e); }) : std::nullopt;
      if (!piece || !piece->moves) return false;
      const Expr here = piece->first < l.end * Expr(piece->unit);
      if (std::none_of(conditions.begin(), conditions.end(),
                       [&](const Expr& e) { return structurally_equal(e, here); }))
        conditions.push_back(here);
      return conditions.size() <= kMostConditions;
    });
    if (!ok || conditions.empty()) return std::nullopt;
    Expr any = conditions[0];
    for (size_t k = 1; k < conditions.size(); k++) any = any || conditions[k];
    return any;
  }

  /// Is it the same in all that a thread does?
  bool is_of_thread(const Expr& e) const {
    bool only = true;
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      only = only && !as<Load>(x) && (!v || std::find(threads_.begin(), threads_.end(), v->var) != threads_.end());
      return only;
    });
    return only;
  }

  LiveStores stores_;
  Stmts launches_;
  Stmt launch_;               // that is looked at
  std::vector<Var> threads_;  // loops around the statement
};

/// May the last of its blocks, of which there are as many as a run needs, hold rows that do not count?
bool may_reach_beyond(const Stmt& launch, const GridSizes& grids) {
  bool rounded = false;
  walk(launch, [&](const Stmt& x) {
    const For* f = as<For>(x);
    const auto size = f ? grids.find(f->var.get()) : grids.end();
    if (size != grids.end())
      walk(size->second, [&](const Expr& e) {
        const Apply* a = as<Apply>(e);
        rounded = rounded || (a && a->op == Op::Div);
        return !rounded;
      });
    return !rounded;
  });
  return rounded;
}

/// Does nothing but blocks and loops of constant extents say which element it is? Rows of a block are rows of its results; what a loop
/// over another size, or memory, leads to may be counted by something else.
bool is_of_the_row(const Load& l, const Stmt& launch) {
  VarMap names;
  std::set<const VarDef*> others;  // looked up only
  walk(launch, [&](const Stmt& x) {
    if (const Let* k = as<Let>(x)) names[k->var.get()] = substitute(k->value, names);
    if (const For* f = as<For>(x); f && !is_gpu(f->kind))
      if (const auto n = as_const_int(f->extent); !n || is_open(*n)) others.insert(f->var.get());
    return true;
  });
  bool own = true;
  walk(substitute(l.index[0], names), [&](const Expr& e) {
    const VarRef* v = as<VarRef>(e);
    return own = own && !as<Load>(e) && !(v && others.contains(v->var.get()));
  });
  return own;
}

/// Is this element one that counts? Null: all of them, or it is not known. The open axis of what a kernel reads is its first.
Expr counts(const Load& l, const Stmt& launch, const std::vector<Live>& live) {
  if (l.buffer->scope != Scope::Global || l.index.empty() || l.index.size() != l.buffer->shape.size()) return {};
  const OpenNumber elements = open_number(l.buffer->shape[0].value);
  if (elements.times == 0 || elements.rest != 0 || !is_of_the_row(l, launch)) return {};
  for (const Live& k : live) {
    const OpenNumber largest = open_number(k.dims[size_t(k.axis)]);
    if (k.on_host && largest.times > 0 && largest.rest == 0 && elements.times % largest.times == 0)
      return l.index[0] < k.end * Expr(elements.times / largest.times);
  }
  return {};
}

Stmt guard_tests(const Stmt& launch, const std::vector<Live>& live) {
  const auto guarded = [&](const Expr& index) {
    return rewrite(index, [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      const Expr here = l ? counts(*l, launch, live) : Expr();
      return here ? select(here, e, zero(e->dtype)) : Expr();
    });
  };
  return rewrite(launch, [&](const Expr& e) -> Expr {
    const Apply* a = as<Apply>(e);
    if (!a || a->op != Op::Index) return {};
    Exprs args = a->args;
    args[0] = guarded(args[0]);
    return args[0].same_as(a->args[0]) ? Expr() : apply(Op::Index, args);
  });
}

}  // namespace

Stmt guard_threads(const Stmt& body, const std::vector<Live>& live, const GridSizes& grids) {
  const auto open = [](const Live& l) { return is_open(l.dims[size_t(l.axis)]); };
  if (std::none_of(live.begin(), live.end(), open)) return body;
  GuardThreads guard(body, live);
  return each_launch(body, [&](const Stmt& s) {
    if (!waits(s)) return guard.launch(s);
    return may_reach_beyond(s, grids) ? guard_tests(s, live) : s;
  });
}

}  // namespace tc
