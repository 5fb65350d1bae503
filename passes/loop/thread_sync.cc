// thread_sync: barriers where threads of a block wait for each other (CUDA).
//
//   thread.x t in 0 .. +256:                          thread.x t in 0 .. +256:
//     for step in 0 .. +8:                              for step in 0 .. +8:
//       tile[t] = x[step, t]                  ->          tile[t] = x[step, t]
//       acc += tile[255 - t]                              barrier
//                                                         acc += tile[255 - t]
//                                                         barrier
//
// The code of a thread is walked in order with the accesses since the last barrier; bodies of loops twice, since one
// iteration follows what the one before did. Where an access conflicts with one of those, a barrier goes in front of
// it, or in front of the condition or loop around it that not all threads share. What cannot be proved apart
// (thread_independence.h) conflicts.
#include "passes/loop/thread_sync.h"

#include <algorithm>
#include <utility>

#include "ir/loop/build.h"
#include "ir/loop/instruction.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/analysis/thread_independence.h"
#include "passes/loop/launches.h"
#include "support/text.h"

namespace tc {
namespace {

using BufferSet = std::set<const BufferDef*>;  // looked up only

// What is both stored and read.
BufferSet changing_in(const Stmt& s) {
  BufferSet stored, read, both;
  walk(
      s,
      [&](const Stmt& x) {
        if (const Store* k = as<Store>(x)) {
          stored.insert(k->buffer.get());
          if (k->reduce) read.insert(k->buffer.get());
        }
        if (const Intrin* k = as<Intrin>(x))
          for (size_t i = 0; i < k->buffers.size(); i++) {
            if (writes_operand(*k, i)) stored.insert(k->buffers[i].get());
            if (reads_operand(*k, i)) read.insert(k->buffers[i].get());
          }
        return true;
      },
      [&](const Expr& e) {
        if (const Load* l = as<Load>(e)) read.insert(l->buffer.get());
        return true;
      });
  for (const BufferDef* b : stored)
    if (read.count(b) != 0) both.insert(b);
  return both;
}

BufferSet stored_in(const Stmt& s) {
  BufferSet stored;
  walk(s, [&](const Stmt& x) {
    if (const Store* k = as<Store>(x)) stored.insert(k->buffer.get());
    if (const Intrin* k = as<Intrin>(x))
      for (size_t i = 0; i < k->buffers.size(); i++)
        if (writes_operand(*k, i)) stored.insert(k->buffers[i].get());
    return true;
  });
  return stored;
}

class Synchronizer {
 public:
  explicit Synchronizer(const Stmt& nest) : changing_(changing_in(nest)) { nest_.changing = stored_in(nest); }

  // Block loops, shared memory and thread loops; then the code of a thread.
  Stmt nest(const Stmt& s) {
    if (const For* f = as<For>(s); f && is_gpu(f->kind)) {
      const auto n = as_const_int(f->extent);
      if (n) nest_.ranges[f->var.get()] = {0, *n - 1};
      if (is_thread(f->kind) && n != 1) {
        nest_.threads.push_back(f->var);
        nest_.varying.insert(f->var.get());
      }
      return loop(f->var, f->extent, nest(f->body), f->kind, f->begin);
    }
    if (const Alloc* a = as<Alloc>(s)) return alloc(a->buffer, nest(a->body));
    if (const Let* l = as<Let>(s); l && nest_.threads.empty()) {
      lets_[l->var.get()] = inlined(l->value);
      return let(l->var, l->value, nest(l->body));
    }
    return nest_.threads.empty() ? s : stmt(s);
  }

 private:
  using Accesses = std::vector<ThreadAccess>;
  // What a condition says.
  struct Known {
    Ranges ranges;
    std::vector<std::pair<Expr, int64_t>> fixed;
  };

  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    if (const Seq* k = as<Seq>(s)) {
      Stmts list;
      for (const Stmt& x : k->list) list.push_back(stmt(x));
      return seq(std::move(list));
    }
    if (const Alloc* k = as<Alloc>(s)) return alloc(k->buffer, stmt(k->body));
    if (const Comment* k = as<Comment>(s)) return comment(k->text, stmt(k->body));
    if (const Let* k = as<Let>(s)) {
      const bool wait = access(accesses_of(k->value));
      bind(*k);
      return behind(wait, let(k->var, k->value, stmt(k->body)));
    }
    if (const For* k = as<For>(s); k && is_uniform(k->begin) && is_uniform(k->extent)) return serial(*k);
    if (const While* k = as<While>(s); k && is_uniform(k->condition)) {
      const Stmt once = iteration(k->body, nullptr);
      return while_loop(k->condition, iteration(once, nullptr));
    }
    if (const If* k = as<If>(s); k && is_uniform(k->condition)) {
      const bool wait = access(accesses_of(k->condition));
      const Accesses before = pending_;
      const Stmt then = stmt(k->then);
      const Accesses after_then = std::exchange(pending_, before);
      const Stmt otherwise = stmt(k->otherwise);
      for (const ThreadAccess& a : after_then) remember(a);
      return behind(wait, if_then(k->condition, then, otherwise));
    }
    if (const Barrier* k = as<Barrier>(s)) {
      if (k->scope != Scope::Warp) pending_.clear();
      return s;
    }
    return leaf(s);
  }

  Stmt serial(const For& f) {
    nest_.ranges[f.var.get()] = loop_range(f, nest_.ranges);
    Stmt body = iteration(f.body, f.var);
    if (!is_const(f.extent, 1)) body = iteration(body, f.var);
    return loop(f.var, f.extent, body, f.kind, f.begin);
  }

  // One iteration of a loop; what it leaves behind is of another iteration.
  Stmt iteration(const Stmt& body, const Var& v) {
    const Stmt s = stmt(body);
    VarMap other;
    auto rename = [&](const Var& x) {
      const Var fresh = make_var(x->name, x->dtype);
      if (const auto r = nest_.ranges.find(x.get()); r != nest_.ranges.end()) nest_.ranges[fresh.get()] = r->second;
      if (nest_.varying.count(x.get()) != 0) nest_.varying.insert(fresh.get());
      other[x.get()] = Expr(fresh);
      kept_.push_back(fresh);
    };
    if (v) rename(v);
    walk(body, [&](const Stmt& x) {
      if (const Let* l = as<Let>(x)) rename(l->var);
      return true;
    });
    for (ThreadAccess& a : pending_)
      for (Expr& e : a.index) e = substitute(e, other);
    return s;
  }

  // A statement that is made as a whole, whichever threads make it.
  Stmt leaf(const Stmt& s) {
    Accesses list;
    collect(s, Known{}, list);
    const bool compound = as<If>(s) || as<For>(s) || as<While>(s);
    for (size_t i = 0; compound && i < list.size(); i++)
      for (size_t j = 0; j <= i; j++)
        if (list[i].buffer->scope == Scope::Shared && conflict(list[i], list[j]))
          throw InternalError("buffer \"" + printable(list[i].buffer->name) +
                              "\" needs a barrier under a condition that not all threads share");
    return behind(access(list), s);
  }

  // In order of execution; inner loops' variables differ from access to access.
  void collect(const Stmt& s, const Known& known, Accesses& list) {
    if (!s) return;
    auto read = [&](const Expr& e) {
      for (ThreadAccess a : accesses_of(e)) list.push_back(with(std::move(a), known));
    };
    if (const Store* k = as<Store>(s)) {
      for (const Expr& e : k->index) read(e);
      read(k->value);
      if (is_shared(k->buffer)) list.push_back(with({k->buffer, inlined(k->index), true}, known));
    } else if (const Intrin* k = as<Intrin>(s)) {
      for (const Expr& e : k->args) read(e);
      operands(*k, known, list);
    } else if (const Seq* k = as<Seq>(s)) {
      for (const Stmt& x : k->list) collect(x, known, list);
    } else if (const Let* k = as<Let>(s)) {
      read(k->value);
      bind(*k);
      collect(k->body, known, list);
    } else if (const If* k = as<If>(s)) {
      read(k->condition);
      Known inside = known;
      learn(inlined(k->condition), inside);
      collect(k->then, inside, list);
      collect(k->otherwise, known, list);
    } else if (const For* k = as<For>(s)) {
      read(k->begin);
      read(k->extent);
      const For plain{k->var, inlined(k->begin), inlined(k->extent), k->kind, {}};
      nest_.ranges[k->var.get()] = loop_range(plain, nest_.ranges);
      nest_.varying.insert(k->var.get());
      collect(k->body, known, list);
    } else if (const While* k = as<While>(s)) {
      read(k->condition);
      collect(k->body, known, list);
    } else if (const Alloc* k = as<Alloc>(s)) {
      collect(k->body, known, list);
    } else if (const Alias* k = as<Alias>(s)) {
      throw InternalError("barriers are placed before buffers are flat: view " + printable(k->view->name));
    } else if (const Comment* k = as<Comment>(s)) {
      collect(k->body, known, list);
    } else if (as<Barrier>(s)) {
      throw InternalError("a barrier under a condition that not all threads share");
    }
  }

  // Reads come before writes. What threads make together may be made by any of them.
  void operands(const Intrin& k, const Known& known, Accesses& list) {
    const Instruction& row = instruction(k);
    const IntrinCall call = parse(k);
    for (size_t i = call.operands.size(); i-- > 0;) {
      const IntrinOperand& o = call.operands[i];
      if (!is_shared(o.buffer)) continue;
      ThreadAccess a{o.buffer, inlined(o.index), false};
      const int64_t count = row.operand(i).reach / std::max<int64_t>(1, info(o.buffer->dtype).bytes);
      if (!a.index.empty() && count > 1) a.index.back() = a.index.back() + any_of(count);
      if (row.operand(i).rows > 1) {
        check(a.index.size() > 1, "rows of a tile");
        Expr& r = a.index[a.index.size() - 2];
        r = r + any_of(row.operand(i).rows);
      }
      if (row.collective != Collective::No) {
        VarMap any;
        for (const Var& t : nest_.threads) any[t.get()] = any_of(nest_.ranges[t.get()].max + 1);
        for (Expr& e : a.index) e = substitute(e, any);
      }
      a = with(std::move(a), known);
      if (reads_operand(k, i)) list.push_back(a);
      a.write = true;
      if (writes_operand(k, i)) list.push_back(std::move(a));
    }
  }

  // Some number below n, another one whenever asked.
  Expr any_of(int64_t n) {
    const Var v = make_var("any");
    nest_.ranges[v.get()] = {0, n - 1};
    nest_.varying.insert(v.get());
    kept_.push_back(v);
    return Expr(v);
  }

  void learn(const Expr& e, Known& known) const {
    const Apply* k = as<Apply>(e);
    if (!k) return;
    if (k->op == Op::And) return learn(k->args[0], known), learn(k->args[1], known);
    const VarRef* v = k->args.size() == 2 ? as<VarRef>(k->args[0]) : nullptr;
    const auto n = k->args.size() == 2 ? as_const_int(k->args[1]) : std::nullopt;
    if (!n) return;
    if (k->op == Op::Eq) known.fixed.push_back({k->args[0], *n});
    if (v && k->op == Op::Eq) known.ranges[v->var.get()] = {*n, *n};
    const auto all = v ? nest_.ranges.find(v->var.get()) : nest_.ranges.end();
    if (all != nest_.ranges.end() && k->op == Op::Lt && *n > all->second.min)
      known.ranges[v->var.get()] = {all->second.min, std::min(all->second.max, *n - 1)};
  }

  // Accesses that an iteration of an inner loop makes may be of different iterations.
  ThreadAccess with(ThreadAccess a, const Known& known) {
    a.ranges = known.ranges;
    a.fixed = known.fixed;
    return a;
  }

  bool conflict(const ThreadAccess& a, const ThreadAccess& b) const {
    // Results are stored once, to an element each.
    const bool order = a.buffer->scope == Scope::Shared ? a.write || b.write : a.write != b.write;
    return a.buffer == b.buffer && order && !only_within_threads(a, b, nest_);
  }

  // True: a barrier has to come first.
  bool access(const Accesses& list) {
    bool wait = false;
    for (const ThreadAccess& a : list)
      wait =
          wait || std::any_of(pending_.begin(), pending_.end(), [&](const ThreadAccess& p) { return conflict(p, a); });
    if (wait) pending_.clear();
    for (const ThreadAccess& a : list) remember(a);
    return wait;
  }
  static Stmt behind(bool wait, const Stmt& s) { return wait ? seq({barrier(Scope::Shared), s}) : s; }

  void remember(const ThreadAccess& a) {
    for (const ThreadAccess& p : pending_) {
      if (p.buffer != a.buffer || p.write != a.write || p.index.size() != a.index.size() || !p.ranges.empty() ||
          !p.fixed.empty())
        continue;
      bool same = true;
      for (size_t i = 0; i < a.index.size(); i++) same = same && structurally_equal(p.index[i], a.index[i]);
      if (same) return;
    }
    pending_.push_back(a);
  }

  // Memory that several threads see, and that changes.
  bool is_shared(const Buffer& b) const {
    return b->scope != Scope::Register && b->scope != Scope::Stack && b->scope != Scope::Warp &&
           changing_.count(b.get()) != 0;
  }

  Accesses accesses_of(const Expr& e) const {
    Accesses list;
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x); l && is_shared(l->buffer)) list.push_back({l->buffer, inlined(l->index), false});
      return true;
    });
    return list;
  }

  bool is_uniform(const Expr& e) const {
    bool uniform = true;
    walk(inlined(e), [&](const Expr& x) {
      if (const VarRef* v = as<VarRef>(x)) uniform = uniform && nest_.varying.count(v->var.get()) == 0;
      if (const Load* l = as<Load>(x))
        uniform = uniform && l->buffer->scope == Scope::Global && changing_.count(l->buffer.get()) == 0;
      return uniform;
    });
    return uniform;
  }

  // What is computed from memory stays a name.
  void bind(const Let& l) {
    const Expr value = inlined(l.value);
    if (reads_nothing(value) && l.var->dtype == DType::I64)
      lets_[l.var.get()] = value;
    else if (!is_uniform(value))
      nest_.varying.insert(l.var.get());
  }
  Expr inlined(const Expr& e) const { return substitute(e, lets_); }
  Exprs inlined(const Exprs& list) const {
    Exprs r;
    for (const Expr& e : list) r.push_back(simplify(inlined(e), nest_.ranges));
    return r;
  }

  BufferSet changing_;
  ThreadNest nest_;
  VarMap lets_;
  Accesses pending_;
  std::vector<Var> kept_;  // keeps the keys of ranges and varying alive
};

}  // namespace

Stmt thread_sync(const Stmt& s) {
  return each_launch(s, [](const Stmt& launch) {
    const For* f = as<For>(launch);
    return as<Alloc>(launch) || (f && is_gpu(f->kind)) ? Synchronizer(launch).nest(launch) : launch;
  });
}

}  // namespace tc
