// Statements: ranges are collected on the way down, what is decided or empty is dropped on the way up.
#include "ir/loop/simplify.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/named_buffers.h"
#include "ir/loop/raises.h"
#include "ir/loop/simplifier.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

template <class K>
Stmt make(K kind) {
  return Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(kind)}));
}

// Dropping the value must not drop a raised status.
bool is_pure(const Expr& e) { return !raises_status(e); }

class StmtSimplifier {
 public:
  explicit StmtSimplifier(Ranges ranges) : ranges_(std::move(ranges)), exprs_(ranges_) {}

  Stmt run(const Stmt& s) {
    if (!s) return s;
    return visit(
        s, [&](const Store& k) { return store_(s, k); }, [&](const For& k) { return for_(s, k); },
        [&](const While& k) {
          Expr c = exprs_.expr(k.condition);
          if (is_const(c, 0)) return Stmt();
          Stmt body = run(k.body);
          return c.same_as(k.condition) && body.same_as(k.body) ? s : while_loop(c, body);
        },
        [&](const If& k) { return if_(s, k); }, [&](const Let& k) { return let_(s, k); },
        [&](const Alloc& k) {
          Stmt body = run(k.body);
          if (!body || !uses_buffer(body, k.buffer)) return body;
          return body.same_as(k.body) ? s : alloc(k.buffer, body);
        },
        [&](const Alias& k) {
          const Expr offset = exprs_.expr(k.offset);
          Stmt body = run(k.body);
          if (!body || !uses_buffer(body, k.view)) return body;
          return offset.same_as(k.offset) && body.same_as(k.body) ? s : alias(k.view, k.base, offset, body);
        },
        [&](const Seq& k) {
          Stmts list;
          bool changed = false;
          for (const Stmt& x : k.list) {
            list.push_back(run(x));
            changed |= !list.back() || !list.back().same_as(x);
          }
          return changed ? seq(std::move(list)) : s;
        },
        [&](const Barrier&) { return s; },
        [&](const Prefetch& k) {
          Exprs index;
          return all(k.index, index) ? prefetch(k.buffer, std::move(index), k.level) : s;
        },
        [&](const Intrin& k) {
          Exprs args;
          return all(k.args, args) ? make(Intrin{k.name, std::move(args), k.buffers}) : s;
        },
        [&](const Launch& k) {
          Exprs grid, block, args;
          bool changed = all(k.grid, grid);
          changed |= all(k.block, block);
          changed |= all(k.args, args);
          return changed ? make(Launch{k.kernel, grid, block, k.buffers, args}) : s;
        },
        [&](const Comment& k) {
          Stmt body = run(k.body);
          return !body.get() && k.body.get() ? Stmt() : body.same_as(k.body) ? s : comment(k.text, body);
        });
  }

 private:
  bool all(const Exprs& in, Exprs& out) {
    bool changed = false;
    for (const Expr& e : in) {
      out.push_back(exprs_.expr(e));
      changed |= !out.back().same_as(e);
    }
    return changed;
  }

  Stmt store_(const Stmt& s, const Store& k) {
    Exprs index;
    bool changed = all(k.index, index);
    Expr value = exprs_.expr(k.value), count = exprs_.expr(k.count);
    changed |= !value.same_as(k.value) || !count.same_as(k.count);
    return changed ? store(k.buffer, std::move(index), value, k.reduce, count) : s;
  }

  Stmt for_(const Stmt& s, const For& k) {
    Expr begin = exprs_.expr(k.begin), extent = exprs_.expr(k.extent);
    Range trips = interval(extent, ranges_);
    if (trips.max <= 0) return {};
    if (trips.min == 1 && trips.max == 1) return run(substitute(k.body, {{k.var.get(), begin}}));
    Stmt body = inside(k.var, loop_range(For{k.var, begin, extent, k.kind, {}}, ranges_), k.body);
    if (!body) return {};
    bool same = begin.same_as(k.begin) && extent.same_as(k.extent) && body.same_as(k.body);
    return same ? s : loop(k.var, extent, body, k.kind, begin);
  }

  Stmt if_(const Stmt& s, const If& k) {
    Expr c = exprs_.expr(k.condition);
    if (auto known = as_const_int(c)) return run(*known ? k.then : k.otherwise);
    Stmt then = under(c, true, k.then), otherwise = under(c, false, k.otherwise);
    if (!then && !otherwise) return {};
    if (!then) return if_then(exprs_.expr(logical_not(c)), otherwise);
    bool same = c.same_as(k.condition) && then.same_as(k.then) && otherwise.same_as(k.otherwise);
    return same ? s : if_then(c, then, otherwise);
  }

  Stmt let_(const Stmt& s, const Let& k) {
    Expr value = exprs_.expr(k.value);
    if (as_const_number(value) || as<VarRef>(value)) return run(substitute(k.body, {{k.var.get(), value}}));
    bool integer = !is_float(value->dtype) && !value->vector;
    Stmt body = integer ? inside(k.var, named_range(value, ranges_), k.body) : run(k.body);
    if (!body || (!uses_var(body, k.var) && is_pure(value))) return body;
    return value.same_as(k.value) && body.same_as(k.body) ? s : let(k.var, value, body);
  }

  // `s` where variable v lies in r.
  Stmt inside(const Var& v, Range r, const Stmt& s) {
    Ranges more = ranges_;
    more[v.get()] = r;
    return StmtSimplifier(std::move(more)).run(s);
  }

  Stmt under(const Expr& condition, bool holds, const Stmt& s) {
    if (!s) return s;
    Ranges narrowed = ranges_;
    assume(narrowed, condition, holds);
    return StmtSimplifier(std::move(narrowed)).run(s);
  }

  Ranges ranges_;
  Simplifier exprs_;
};

}  // namespace

Stmt simplify(const Stmt& s, const Ranges& ranges) { return StmtSimplifier(ranges).run(s); }

}  // namespace tc
