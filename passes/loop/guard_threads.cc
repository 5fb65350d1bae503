// The last block of a launch reaches beyond what a run needs. Sizes that have an upper bound have memory for that; of one without,
// an image is one element of many, and memory for a block of them is a waste.
//   block.x b in 0 .. +369008640:                        block.x b in 0 .. +369008640:
//     thread.x t in 0 .. +256:                             thread.x t in 0 .. +256:
//       y[b * 256 + t] = sum(k) x[b * 256 + t, k]   ->       if (b * 256 + t < n)
//                                                              y[b * 256 + t] = sum(k) x[b * 256 + t, k]
//
// Preconditions, for each launch: no thread waits for others, or exchanges anything with them; every store of a thread is to an
// output that is needed up to a count which the host knows, and that no other launch of the kernel reads, or to memory of its own.
#include "passes/loop/guard_threads.h"

#include <algorithm>

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

}  // namespace

Stmt guard_threads(const Stmt& body, const std::vector<Live>& live) {
  const auto open = [](const Live& l) { return is_open(l.dims[size_t(l.axis)]); };
  if (std::none_of(live.begin(), live.end(), open)) return body;
  GuardThreads guard(body, live);
  return each_launch(body, [&](const Stmt& s) { return waits(s) ? s : guard.launch(s); });
}

}  // namespace tc
