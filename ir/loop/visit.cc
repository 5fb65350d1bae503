#include "ir/loop/visit.h"

#include "ir/loop/build.h"

namespace tc {
namespace {

using ExprFn = std::function<Expr(const Expr&)>;
using StmtFn = std::function<Stmt(const Stmt&)>;
using BufferFn = std::function<Buffer(const Buffer&)>;

template <class K>
Expr with(const Expr& e, K kind) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{e->dtype, e->vector, std::move(kind)}));
}
template <class K>
Expr with(const Expr& e, bool vector, K kind) {
  return Expr(std::make_shared<const ExprNode>(ExprNode{e->dtype, vector, std::move(kind)}));
}
template <class K>
Stmt with(K kind) {
  return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(kind)}));
}

// One rewriting walk. Shared expression nodes are rewritten once, so a DAG stays a DAG.
class Rewriter {
 public:
  Rewriter(const ExprFn& fe, const StmtFn& fs, const BufferFn& fb) : fe_(fe), fs_(fs), fb_(fb) {}

  Expr expr(const Expr& e) {
    if (!e) return e;
    const bool memoise = !as<IntImm>(e) && !as<FloatImm>(e) && !as<VarRef>(e) && !as<Lanes>(e);
    if (memoise)
      if (const auto it = memo_.find(e.get()); it != memo_.end()) return it->second.second;
    Expr r = children(e);
    if (fe_)
      if (Expr f = fe_(r)) r = f;
    if (memoise) memo_[e.get()] = {e, r};  // keeps the key alive
    return r;
  }

  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    Stmt r = children(s);
    if (fs_)
      if (Stmt f = fs_(r)) r = f;
    return r;
  }

 private:
  Buffer buffer(const Buffer& b) { return fb_ ? fb_(b) : b; }

  bool exprs(const Exprs& in, Exprs& out) {
    bool changed = false;
    for (const Expr& e : in) {
      out.push_back(expr(e));
      changed |= !out.back().same_as(e);
    }
    return changed;
  }

  Expr children(const Expr& e) {
    return visit(
        e, [&](const IntImm&) { return e; }, [&](const FloatImm&) { return e; }, [&](const VarRef&) { return e; },
        [&](const Lanes&) { return e; },
        [&](const Apply& k) {
          Exprs args;
          return exprs(k.args, args) ? apply(k.op, std::move(args)) : e;
        },
        [&](const Select& k) {
          const Expr c = expr(k.condition), y = expr(k.yes), n = expr(k.no);
          return c.same_as(k.condition) && y.same_as(k.yes) && n.same_as(k.no) ? e : select(c, y, n);
        },
        [&](const Cast& k) {
          const Expr v = expr(k.value);
          return v.same_as(k.value) ? e : cast(e->dtype, v, k.saturate);
        },
        [&](const Bitcast& k) {
          const Expr v = expr(k.value);
          return v.same_as(k.value) ? e : bitcast(e->dtype, v);
        },
        [&](const Load& k) {
          Exprs index;
          const bool changed = exprs(k.index, index);
          const Buffer b = buffer(k.buffer);
          return changed || b != k.buffer ? load(b, std::move(index)) : e;
        },
        [&](const Ramp& k) {
          const Expr v = expr(k.base);
          return v.same_as(k.base) ? e : ramp(v);
        },
        [&](const Broadcast& k) {
          const Expr v = expr(k.value);
          return v.same_as(k.value) ? e : broadcast(v);
        },
        [&](const Partial& k) {
          const Expr v = expr(k.value), n = expr(k.count);
          return v.same_as(k.value) && n.same_as(k.count) ? e : partial(v, n);
        });
  }

  Stmt children(const Stmt& s) {
    return visit(s, [&](const auto& k) { return rebuilt(k, s); });
  }

  // `s`, which is `k`, with what its parts have become; null: nothing is left of it.
  Stmt rebuilt(const Store& k, const Stmt& s) {
    Exprs index;
    bool changed = exprs(k.index, index);
    const Expr v = expr(k.value), n = expr(k.count);
    const Buffer b = buffer(k.buffer);
    changed |= !v.same_as(k.value) || !n.same_as(k.count) || b != k.buffer;
    return changed ? with(Store{b, std::move(index), v, k.reduce, n}) : s;
  }
  Stmt rebuilt(const For& k, const Stmt& s) {
    const Expr b = expr(k.begin), n = expr(k.extent);
    const Stmt body = stmt(k.body);
    if (!body) return Stmt();
    return b.same_as(k.begin) && n.same_as(k.extent) && body.same_as(k.body) ? s : with(For{k.var, b, n, k.kind, body});
  }
  Stmt rebuilt(const While& k, const Stmt& s) {
    const Expr c = expr(k.condition);
    const Stmt body = stmt(k.body);
    return c.same_as(k.condition) && body.same_as(k.body) ? s : with(While{c, body});
  }
  Stmt rebuilt(const If& k, const Stmt& s) {
    const Expr c = expr(k.condition);
    const Stmt t = stmt(k.then), o = stmt(k.otherwise);
    if (!t && !o) return Stmt();
    if (const auto v = as_const_int(c)) return *v != 0 ? t : o;
    return c.same_as(k.condition) && t.same_as(k.then) && o.same_as(k.otherwise) ? s : with(If{c, t, o});
  }
  Stmt rebuilt(const Let& k, const Stmt& s) {
    const Expr v = expr(k.value);
    const Stmt body = stmt(k.body);
    if (!body) return Stmt();
    return v.same_as(k.value) && body.same_as(k.body) ? s : with(Let{k.var, v, body});
  }
  Stmt rebuilt(const Alloc& k, const Stmt& s) {
    const Stmt body = stmt(k.body);
    const Buffer b = buffer(k.buffer);
    if (!body) return Stmt();
    return body.same_as(k.body) && b == k.buffer ? s : with(Alloc{b, body});
  }
  Stmt rebuilt(const Alias& k, const Stmt& s) {
    const Stmt body = stmt(k.body);
    const Expr offset = expr(k.offset);
    const Buffer v = buffer(k.view), b = buffer(k.base);
    if (!body) return Stmt();
    const bool same = body.same_as(k.body) && offset.same_as(k.offset) && v == k.view && b == k.base;
    return same ? s : with(Alias{v, b, offset, body});
  }
  Stmt rebuilt(const Seq& k, const Stmt& s) {
    return rewrite_each(k, s, [&](const Stmt& x) { return stmt(x); });
  }
  Stmt rebuilt(const Barrier&, const Stmt& s) { return s; }
  Stmt rebuilt(const Prefetch& k, const Stmt& s) {
    Exprs index;
    const bool changed = exprs(k.index, index);
    const Buffer b = buffer(k.buffer);
    return changed || b != k.buffer ? with(Prefetch{b, std::move(index), k.level}) : s;
  }
  Stmt rebuilt(const Intrin& k, const Stmt& s) {
    Exprs args;
    bool changed = exprs(k.args, args);
    std::vector<Buffer> buffers;
    for (const Buffer& b : k.buffers) {
      buffers.push_back(buffer(b));
      changed |= buffers.back() != b;
    }
    return changed ? with(Intrin{k.name, std::move(args), std::move(buffers)}) : s;
  }
  Stmt rebuilt(const Launch& k, const Stmt& s) {
    Launch l{k.kernel, {}, {}, {}, {}};
    bool changed = exprs(k.grid, l.grid);
    changed |= exprs(k.block, l.block);
    changed |= exprs(k.args, l.args);
    for (const Buffer& b : k.buffers) {
      l.buffers.push_back(buffer(b));
      changed |= l.buffers.back() != b;
    }
    return changed ? with(std::move(l)) : s;
  }
  Stmt rebuilt(const Comment& k, const Stmt& s) {
    const Stmt body = stmt(k.body);
    return body.same_as(k.body) ? s : with(Comment{k.text, body});
  }

  const ExprFn& fe_;
  const StmtFn& fs_;
  const BufferFn& fb_;
  std::map<const ExprNode*, std::pair<Expr, Expr>> memo_;
};

void walk_children(const Expr& e, const std::function<void(const Expr&)>& f) {
  visit(
      e, [](const IntImm&) {}, [](const FloatImm&) {}, [](const VarRef&) {}, [](const Lanes&) {},
      [&](const Apply& k) {
        for (const Expr& a : k.args) f(a);
      },
      [&](const Select& k) { f(k.condition), f(k.yes), f(k.no); }, [&](const Cast& k) { f(k.value); },
      [&](const Bitcast& k) { f(k.value); },
      [&](const Load& k) {
        for (const Expr& i : k.index) f(i);
      },
      [&](const Ramp& k) { f(k.base); }, [&](const Broadcast& k) { f(k.value); },
      [&](const Partial& k) { f(k.value), f(k.count); });
}

const BufferFn kSameBuffer;

}  // namespace

Stmt rewrite_each(const Seq& k, const Stmt& s, const std::function<Stmt(const Stmt&)>& f) {
  Stmts list;
  bool changed = false;
  for (const Stmt& x : k.list) {
    list.push_back(f(x));
    changed |= !list.back().same_as(x);
  }
  return changed ? seq(std::move(list)) : s;
}

Expr rewrite(const Expr& e, const ExprFn& f) {
  const StmtFn none;
  return Rewriter(f, none, kSameBuffer).expr(e);
}
Stmt rewrite(const Stmt& s, const ExprFn& fe, const StmtFn& fs) { return Rewriter(fe, fs, kSameBuffer).stmt(s); }

void walk(const Expr& e, const std::function<bool(const Expr&)>& f) {
  if (!e || !f(e)) return;
  walk_children(e, [&](const Expr& c) { walk(c, f); });
}

void walk(const Stmt& s, const std::function<bool(const Stmt&)>& fs, const std::function<bool(const Expr&)>& fe) {
  if (!s || (fs && !fs(s))) return;
  auto expr = [&](const Expr& e) {
    if (fe) walk(e, fe);
  };
  auto exprs = [&](const Exprs& l) {
    for (const Expr& e : l) expr(e);
  };
  auto stmt = [&](const Stmt& c) { walk(c, fs, fe); };
  visit(
      s, [&](const Store& k) { exprs(k.index), expr(k.value), expr(k.count); },
      [&](const For& k) { expr(k.begin), expr(k.extent), stmt(k.body); },
      [&](const While& k) { expr(k.condition), stmt(k.body); },
      [&](const If& k) { expr(k.condition), stmt(k.then), stmt(k.otherwise); },
      [&](const Let& k) { expr(k.value), stmt(k.body); }, [&](const Alloc& k) { stmt(k.body); },
      [&](const Alias& k) { expr(k.offset), stmt(k.body); },
      [&](const Seq& k) {
        for (const Stmt& c : k.list) stmt(c);
      },
      [](const Barrier&) {}, [&](const Prefetch& k) { exprs(k.index); }, [&](const Intrin& k) { exprs(k.args); },
      [&](const Launch& k) { exprs(k.grid), exprs(k.block), exprs(k.args); }, [&](const Comment& k) { stmt(k.body); });
}

namespace {
ExprFn replace_vars(const VarMap& vars) {
  return [&vars](const Expr& e) {
    const VarRef* v = as<VarRef>(e);
    if (!v) return Expr();
    const auto it = vars.find(v->var.get());
    if (it == vars.end()) return Expr();
    const VarRef* to = as<VarRef>(it->second);  // another name for a vector is a vector
    return to && e->vector && !it->second->vector ? with(it->second, true, VarRef{to->var}) : it->second;
  };
}
BufferFn replace_buffers(const BufferMap& buffers) {
  return [&buffers](const Buffer& b) {
    const auto it = buffers.find(b.get());
    return it == buffers.end() ? b : it->second;
  };
}
const ExprFn kNoExprFn;
const StmtFn kNoStmtFn;
}  // namespace

Expr substitute(const Expr& e, const VarMap& vars) { return vars.empty() ? e : rewrite(e, replace_vars(vars)); }
Stmt substitute(const Stmt& s, const VarMap& vars) { return vars.empty() ? s : rewrite(s, replace_vars(vars)); }
Expr substitute_buffers(const Expr& e, const BufferMap& buffers) {
  const BufferFn fb = replace_buffers(buffers);
  return Rewriter(kNoExprFn, kNoStmtFn, fb).expr(e);
}
Stmt substitute_buffers(const Stmt& s, const BufferMap& buffers) {
  const BufferFn fb = replace_buffers(buffers);
  return Rewriter(kNoExprFn, kNoStmtFn, fb).stmt(s);
}

bool uses_var(const Expr& e, const Var& v) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    if (const VarRef* r = as<VarRef>(x)) found |= r->var == v;
    return !found;
  });
  return found;
}
bool uses_var(const Stmt& s, const Var& v) {
  bool found = false;
  walk(
      s, [&](const Stmt&) { return !found; },
      [&](const Expr& x) {
        if (const VarRef* r = as<VarRef>(x)) found |= r->var == v;
        return !found;
      });
  return found;
}
bool uses_buffer(const Expr& e, const Buffer& b) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    if (const Load* l = as<Load>(x)) found |= l->buffer == b;
    return !found;
  });
  return found;
}

bool structurally_equal(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (!a || !b || a->dtype != b->dtype || a->vector != b->vector || a->kind.index() != b->kind.index()) return false;
  auto all = [](const Exprs& x, const Exprs& y) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); i++)
      if (!structurally_equal(x[i], y[i])) return false;
    return true;
  };
  return visit(
      a, [&](const IntImm& k) { return k.value == as<IntImm>(b)->value; },
      [&](const FloatImm& k) {
        const double x = k.value, y = as<FloatImm>(b)->value;
        return __builtin_memcmp(&x, &y, sizeof x) == 0;  // tells -0.0 from 0.0 and keeps NaN equal to itself
      },
      [&](const VarRef& k) { return k.var == as<VarRef>(b)->var; }, [&](const Lanes&) { return true; },
      [&](const Apply& k) { return k.op == as<Apply>(b)->op && all(k.args, as<Apply>(b)->args); },
      [&](const Select& k) {
        const Select& o = *as<Select>(b);
        return all({k.condition, k.yes, k.no}, {o.condition, o.yes, o.no});
      },
      [&](const Cast& k) {
        return k.saturate == as<Cast>(b)->saturate && structurally_equal(k.value, as<Cast>(b)->value);
      },
      [&](const Bitcast& k) { return structurally_equal(k.value, as<Bitcast>(b)->value); },
      [&](const Load& k) { return k.buffer == as<Load>(b)->buffer && all(k.index, as<Load>(b)->index); },
      [&](const Ramp& k) { return structurally_equal(k.base, as<Ramp>(b)->base); },
      [&](const Broadcast& k) { return structurally_equal(k.value, as<Broadcast>(b)->value); },
      [&](const Partial& k) {
        return all({k.value, k.count}, {as<Partial>(b)->value, as<Partial>(b)->count});
      });
}

std::optional<Affine> affine_in(const Expr& e, const std::vector<Var>& vars) {
  Affine r{std::vector<int64_t>(vars.size(), 0), Expr(0)};
  bool depends = false;
  for (size_t i = 0; i < vars.size(); i++) {
    if (const VarRef* v = as<VarRef>(e); v && v->var == vars[i]) {
      r.coefficients[i] = 1;
      return r;
    }
    depends = depends || uses_var(e, vars[i]);
  }
  if (!depends) {
    r.rest = e;
    return r;
  }
  const Apply* k = as<Apply>(e);
  if (!k) return std::nullopt;
  if (k->op == Op::Neg) {
    auto a = affine_in(k->args[0], vars);
    if (!a) return std::nullopt;
    for (int64_t& c : a->coefficients) c = -c;
    a->rest = -a->rest;
    return a;
  }
  if (k->op != Op::Add && k->op != Op::Sub && k->op != Op::Mul) return std::nullopt;
  auto a = affine_in(k->args[0], vars), b = affine_in(k->args[1], vars);
  if (!a || !b) return std::nullopt;
  if (k->op == Op::Mul) {
    const auto ca = as_const_int(k->args[0]), cb = as_const_int(k->args[1]);
    if (!ca && !cb) return std::nullopt;
    Affine& x = cb ? *a : *b;
    const int64_t c = cb ? *cb : *ca;
    for (int64_t& w : x.coefficients) w *= c;
    x.rest = x.rest * Expr(c);
    return x;
  }
  for (size_t i = 0; i < vars.size(); i++)
    a->coefficients[i] += k->op == Op::Add ? b->coefficients[i] : -b->coefficients[i];
  a->rest = k->op == Op::Add ? a->rest + b->rest : a->rest - b->rest;
  return a;
}

}  // namespace tc
