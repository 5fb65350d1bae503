// hoist_invariants: loops from the innermost outwards
//   for k in 0 .. +64:                          let quot = 1.0f / scale[m]
//     y[m, k] = x[m, k] * (1.0f / scale[m])  -> for k in 0 .. +64:
//                                                 y[m, k] = x[m, k] * quot
// Moves float expressions and loads, and index arithmetic with divisions; affine indices are left to the compiler,
// which moves them by itself, and so are indices of unrolled loops alone, which are constants. GPU loops keep their bodies. Run common_subexpr and simplify afterwards.
#include "passes/loop/hoist_invariants.h"

#include <set>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/expr_numbers.h"

namespace tc {
namespace {

// What changes from iteration to iteration.
struct Changes {
  std::set<const VarDef*> vars;
  std::set<const BufferDef*> buffers;
  bool all_memory = false;
};

Changes changes_in(const For& f) {
  Changes c;
  c.vars.insert(f.var.get());
  walk(f.body, [&](const Stmt& s) {
    if (auto* k = as<For>(s)) c.vars.insert(k->var.get());
    if (auto* k = as<Let>(s)) c.vars.insert(k->var.get());
    if (auto* k = as<Store>(s)) c.buffers.insert(k->buffer.get());
    if (auto* k = as<Alloc>(s)) c.buffers.insert(k->buffer.get());
    c.all_memory |= as<Barrier>(s) || as<Intrin>(s) || as<Launch>(s) || as<Alias>(s);
    return true;
  });
  return c;
}

class Hoister {
 public:
  Hoister(const For& f, bool runs, const std::set<const VarDef*>& unrolled)
      : changes_(changes_in(f)), runs_(runs), unrolled_(unrolled) {}

  // Rewrites what is evaluated in every iteration; loops and branches inside are not looked into.
  Stmt iteration(const Stmt& s) {
    if (!s) return s;
    auto same = [&](const auto&) { return s; };
    return visit(
        s,
        [&](const Store& k) {
          Exprs index;
          bool changed = false;
          for (const Expr& e : k.index) {
            index.push_back(expr(e, runs_));
            changed |= !index.back().same_as(e);
          }
          Expr value = expr(k.value, runs_);
          changed |= !value.same_as(k.value);
          return changed ? store(k.buffer, std::move(index), value, k.reduce, k.count) : s;
        },
        [&](const Let& k) {
          Expr value = named(k) ? moved(k.value, k.var->name) : expr(k.value, runs_);
          // The whole value has moved: its name inside becomes the one in front.
          if (as<VarRef>(value) && !value.same_as(k.value))
            return iteration(substitute(k.body, {{k.var.get(), value}}));
          Stmt body = iteration(k.body);
          return value.same_as(k.value) && body.same_as(k.body) ? s : let(k.var, value, body);
        },
        [&](const Seq& k) { return rewrite_each(k, s, [&](const Stmt& x) { return iteration(x); }); },
        [&](const Alloc& k) {
          Stmt body = iteration(k.body);
          return body.same_as(k.body) ? s : alloc(k.buffer, body);
        },
        [&](const Comment& k) {
          Stmt body = iteration(k.body);
          return body.same_as(k.body) ? s : comment(k.text, body);
        },
        [&](const For& k) { return same(k); }, [&](const While& k) { return same(k); },
        [&](const If& k) { return same(k); }, [&](const Alias& k) { return same(k); },
        [&](const Barrier& k) { return same(k); }, [&](const Prefetch& k) { return same(k); },
        [&](const Intrin& k) { return same(k); }, [&](const Launch& k) { return same(k); });
  }

  Stmt with_lets(Stmt body) const {
    for (size_t i = lets_.size(); i-- > 0;) body = let(lets_[i].first, lets_[i].second, body);
    return body;
  }

 private:
  // What has a name is worth moving, whatever it is.
  bool named(const Let& k) {
    bool safe = runs_ || !numbers_.node(numbers_.number(k.value)).may_fault;
    return !as<VarRef>(k.value) && !as_const_number(k.value) && safe && is_invariant(k.value);
  }

  // `certain`: evaluated in every iteration.
  Expr expr(const Expr& e, bool certain) {
    if (!e) return e;
    const auto& node = numbers_.node(numbers_.number(e));
    bool lazy = std::find(node.lazy.begin(), node.lazy.end(), true) != node.lazy.end();
    if (is_worth_moving(e) && is_invariant(e) && (certain || !node.may_fault)) return moved(e, binding_name(e));
    std::vector<bool> lazy_operands = lazy ? node.lazy : std::vector<bool>();
    Exprs operands = operands_of(e);
    for (size_t i = 0; i < operands.size(); ++i)
      if (!as<Partial>(e)) operands[i] = expr(operands[i], certain && !(lazy && lazy_operands[i]));
    return with_operands(e, operands);
  }

  Expr moved(const Expr& e, const std::string& name) {
    int n = numbers_.number(e);
    if (auto it = bound_.find(n); it != bound_.end()) return it->second;
    Var v = make_var(name, e->dtype);
    lets_.push_back({v, e});
    return bound_[n] = reference(v, e);
  }

  bool is_worth_moving(const Expr& e) const {
    return is_worth_binding(e) && !(as<Cast>(e) && as<VarRef>(as<Cast>(e)->value) && !is_float(e->dtype)) &&
           e->dtype != DType::Bool && !becomes_constant(e);
  }

  bool becomes_constant(const Expr& e) const {
    bool constant = e->dtype == DType::I64, indexed = false;
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      indexed |= v != nullptr;
      constant = constant && !as<Load>(x) && (!v || unrolled_.contains(v->var.get()));
      return constant;
    });
    return constant && indexed;
  }

  bool is_invariant(const Expr& e) {
    int n = numbers_.number(e);
    if (auto it = invariant_.find(n); it != invariant_.end()) return it->second;
    bool r = true;
    if (auto* v = as<VarRef>(e)) r = !changes_.vars.contains(v->var.get());
    if (auto* l = as<Load>(e)) r = !changes_.all_memory && !changes_.buffers.contains(l->buffer.get());
    for (const Expr& x : operands_of(e)) r = r && is_invariant(x);
    return invariant_[n] = r;
  }

  Changes changes_;
  bool runs_;
  const std::set<const VarDef*>& unrolled_;  // variables of unrolled loops: looked up only
  ExprNumbers numbers_;
  std::map<int, bool> invariant_;
  std::map<int, Expr> bound_;
  std::vector<std::pair<Var, Expr>> lets_;
};

Stmt hoist(const Stmt& s) {
  std::set<const VarDef*> unrolled;
  walk(s, [&](const Stmt& x) {
    if (auto* f = as<For>(x); f && f->kind == ForKind::Unroll) unrolled.insert(f->var.get());
    return true;
  });
  return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
    auto* f = as<For>(x);
    // The iterations of a parallel loop run in other functions; their code keeps what it needs.
    if (!f || is_gpu(f->kind) || f->kind == ForKind::Parallel) return {};
    auto trips = range_of(f->extent, {});
    Hoister h(*f, trips && trips->min >= 1, unrolled);
    Stmt body = h.iteration(f->body);
    if (body.same_as(f->body)) return {};
    return h.with_lets(loop(f->var, f->extent, body, f->kind, f->begin));
  });
}

}  // namespace

Stmt hoist_invariants(const Stmt& s) { return hoist(s); }

}  // namespace tc
