// lower_narrow_types: makes explicit how types without arithmetic of their own are computed.
//   y[i] = x[i] * f16(0.5) + x[i]      becomes   y[i] = f16(f32(x[i]) * 0.5f + f32(x[i]))
//   acc += x[i]   (acc in bf16)        becomes   acc = bf16(f32(acc) + f32(x[i]))
// Loads widen, explicit Casts and stores round, nothing between them does; that is what the interpreter does, too.
// Small integers wrap after every operation that may leave their range. Lets take the wide type.
#include "passes/loop/narrow_types.h"

#include <map>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

bool is_small_int(DType t) { return is_int(t) && info(t).bits < 8; }
bool is_narrow(DType t) { return is_narrow_float(t) || is_small_int(t); }

class NarrowTypes {
 public:
  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    return visit(
        s, [&](const Store& k) { return store_(s, k); },
        [&](const For& k) {
          Expr begin = expr(k.begin), extent = expr(k.extent);
          Stmt body = stmt(k.body);
          bool same = begin.same_as(k.begin) && extent.same_as(k.extent) && body.same_as(k.body);
          return same ? s : loop(k.var, extent, body, k.kind, begin);
        },
        [&](const While& k) {
          Expr c = expr(k.condition);
          Stmt body = stmt(k.body);
          return c.same_as(k.condition) && body.same_as(k.body) ? s : while_loop(c, body);
        },
        [&](const If& k) {
          Expr c = expr(k.condition);
          Stmt then = stmt(k.then), otherwise = stmt(k.otherwise);
          bool same = c.same_as(k.condition) && then.same_as(k.then) && otherwise.same_as(k.otherwise);
          return same ? s : if_then(c, then, otherwise);
        },
        [&](const Let& k) {
          Expr value = expr(k.value);
          Var v = k.var;
          // The parts of a loop that was cut share their variables, and the expressions that read them.
          if (is_narrow(v->dtype)) {
            Var& wide = wide_vars_[k.var.get()];
            if (!wide) wide = make_var(v->name, computed_type(v->dtype));
            v = wide;
          }
          Stmt body = stmt(k.body);
          return v == k.var && value.same_as(k.value) && body.same_as(k.body) ? s : let(v, value, body);
        },
        [&](const Alloc& k) {
          Stmt body = stmt(k.body);
          return body.same_as(k.body) ? s : alloc(k.buffer, body);
        },
        [&](const Alias& k) {
          Expr offset = expr(k.offset);
          Stmt body = stmt(k.body);
          return offset.same_as(k.offset) && body.same_as(k.body) ? s : alias(k.view, k.base, offset, body);
        },
        [&](const Seq& k) { return rewrite_each(k, s, [&](const Stmt& x) { return stmt(x); }); },
        [&](const Barrier&) { return s; }, [&](const Prefetch&) { return s; }, [&](const Intrin&) { return s; },
        [&](const Launch&) { return s; },
        [&](const Comment& k) {
          Stmt body = stmt(k.body);
          return body.same_as(k.body) ? s : comment(k.text, body);
        });
  }

 private:
  Stmt store_(const Stmt& s, const Store& k) {
    Exprs index;
    bool changed = all(k.index, index);
    DType t = k.buffer->dtype;
    Expr value = expr(k.value), count = expr(k.count);
    std::optional<Op> reduce = k.reduce;
    if (reduce && is_narrow(t)) {
      Expr old = load(k.buffer, index);
      value = apply(*reduce, {widen(count ? partial(old, count) : old), value});
      reduce = std::nullopt;
    }
    if (is_narrow(t)) value = round_to(t, value, true);
    changed |= !value.same_as(k.value) || !count.same_as(k.count);
    return changed ? store(k.buffer, std::move(index), value, reduce, count) : s;
  }

  // `e` in the type it is computed in.
  Expr expr(const Expr& e) {
    if (!e) return e;
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second.second;
    Expr r = lower(e);
    memo_[e.get()] = {e, r};
    return r;
  }

  static Expr widen(const Expr& e) { return cast(computed_type(e->dtype), e); }

  // A value of type t again, from the type it is computed in. Rounding what was just rounded to t is left out.
  static Expr round_to(DType t, const Expr& wide, bool saturate) {
    if (auto* c = as<Cast>(wide); c && c->value->dtype == t) return c->value;
    return cast(t, wide, saturate);
  }

  bool all(const Exprs& in, Exprs& out) {
    bool changed = false;
    for (const Expr& e : in) {
      out.push_back(expr(e));
      changed |= !out.back().same_as(e);
    }
    return changed;
  }

  Expr lower(const Expr& e) {
    DType t = e->dtype, wide = computed_type(t);
    return visit(
        e, [&](const IntImm& k) { return is_narrow(t) ? make_int(wide, k.value) : e; },
        [&](const FloatImm& k) { return is_narrow(t) ? make_float(wide, k.value) : e; },
        [&](const VarRef& k) {
          auto it = wide_vars_.find(k.var.get());
          return it == wide_vars_.end() ? e : Expr(it->second);
        },
        [&](const Lanes&) { return e; },
        [&](const Apply& k) {
          Exprs args;
          if (!all(k.args, args)) return e;
          Expr r = apply(k.op, std::move(args));
          return is_small_int(t) && may_leave_type(k.op) ? cast(wide, cast(t, r)) : r;
        },
        [&](const Select& k) {
          Expr c = expr(k.condition), y = expr(k.yes), n = expr(k.no);
          return c.same_as(k.condition) && y.same_as(k.yes) && n.same_as(k.no) ? e : select(c, y, n);
        },
        [&](const Cast& k) { return conversion(e, k); },
        [&](const Bitcast& k) {
          Expr v = expr(k.value);
          if (is_narrow(k.value->dtype)) v = round_to(k.value->dtype, v, true);
          Expr r = v.same_as(k.value) ? e : bitcast(t, v);
          return is_narrow(t) ? widen(r) : r;
        },
        [&](const Load& k) {
          Exprs index;
          Expr r = all(k.index, index) ? load(k.buffer, std::move(index)) : e;
          return is_narrow(t) ? widen(r) : r;
        },
        [&](const Ramp& k) {
          Expr base = expr(k.base);
          return base.same_as(k.base) ? e : ramp(base);
        },
        [&](const Broadcast& k) {
          Expr v = expr(k.value);
          return v.same_as(k.value) ? e : broadcast(v);
        },
        [&](const Partial& k) {
          Expr v = expr(k.value), n = expr(k.count);
          auto* c = as<Cast>(v);  // a widened load: the partial load itself stays narrow
          if (c && as<Load>(c->value) && is_narrow(t)) return widen(partial(c->value, n));
          return v.same_as(k.value) && n.same_as(k.count) ? e : partial(v, n);
        });
  }

  // Casts to a narrow type go through the type it is computed in and leave the rounded value in it.
  Expr conversion(const Expr& e, const Cast& k) {
    DType t = e->dtype, wide = computed_type(t);
    Expr v = expr(k.value);
    if (!is_narrow(t)) return v.same_as(k.value) ? e : cast(t, v, k.saturate);
    if (is_narrow_float(t)) v = cast(wide, v);
    return cast(wide, round_to(t, v, k.saturate));
  }

  std::map<const ExprNode*, std::pair<Expr, Expr>> memo_;
  std::map<const VarDef*, Var> wide_vars_;
};

}  // namespace

DType computed_type(DType t) { return is_narrow_float(t) ? DType::F32 : is_small_int(t) ? DType::I32 : t; }

Stmt lower_narrow_types(const Stmt& s) { return NarrowTypes().stmt(s); }

}  // namespace tc
