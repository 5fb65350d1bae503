#include "passes/analysis/read_guard.h"

#include <algorithm>
#include <vector>

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/raises.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

class Guards {
 public:
  explicit Guards(const Buffer& b) : buffer_(b) {}

  ReadGuard run(const Stmt& s) {
    statement(s, {}, {});
    ReadGuard g;
    for (const Exprs& each : found_) {
      const bool same = std::equal(each.begin(), each.end(), found_[0].begin(), found_[0].end(),
                                   [](const Expr& a, const Expr& b) { return structurally_equal(a, b); });
      g.known = g.known && same;
    }
    if (g.known && !found_.empty())
      for (const Expr& e : found_[0]) g.condition = both(g.condition, e);
    return g;
  }

 private:
  static Exprs with(Exprs conditions, const Expr& condition, bool holds) {
    if (depends_on_data(condition)) conditions.push_back(holds ? condition : logical_not(condition));
    return conditions;
  }

  void expression(const Expr& e, const Exprs& conditions) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x); l && l->buffer == buffer_) found_.push_back(conditions);
      const Apply* a = as<Apply>(x);
      if (const Select* k = as<Select>(x)) {
        expression(k->condition, conditions);
        expression(k->yes, with(conditions, k->condition, true));
        expression(k->no, with(conditions, k->condition, false));
        return false;
      }
      if (a && (a->op == Op::And || a->op == Op::Or)) {
        expression(a->args[0], conditions);
        expression(a->args[1], with(conditions, a->args[0], a->op == Op::And));
        return false;
      }
      return true;
    });
  }

  // Expressions stand with the values of names in them.
  void statement(const Stmt& s, const Exprs& conditions, const VarMap& lets) {
    if (!s) return;
    const auto look = [&](const Expr& e) {
      if (e) expression(substitute(e, lets), conditions);
    };
    if (const Seq* k = as<Seq>(s)) {
      for (const Stmt& x : k->list) statement(x, conditions, lets);
    } else if (const For* f = as<For>(s)) {
      look(f->begin), look(f->extent);
      const Expr end = substitute(f->begin ? f->begin + f->extent : f->extent, lets);
      statement(f->body, with(conditions, Expr(f->var) < end, true), lets);
    } else if (const Let* l = as<Let>(s)) {
      look(l->value);
      VarMap inside = lets;
      inside[l->var.get()] = substitute(l->value, lets);
      statement(l->body, conditions, inside);
    } else if (const If* k = as<If>(s)) {
      look(k->condition);
      const Expr condition = substitute(k->condition, lets);
      statement(k->then, with(conditions, condition, true), lets);
      statement(k->otherwise, with(conditions, condition, false), lets);
    } else if (const Alloc* a = as<Alloc>(s)) {
      statement(a->body, conditions, lets);
    } else if (const Comment* c = as<Comment>(s)) {
      statement(c->body, conditions, lets);
    } else {
      walk(
          s, [](const Stmt&) { return true; },
          [&](const Expr& e) {
            look(e);
            return false;
          });
    }
  }

  const Buffer buffer_;
  std::vector<Exprs> found_;  // of each read
};

}  // namespace

ReadGuard read_guard(const Stmt& s, const Buffer& buffer) { return Guards(buffer).run(s); }

}  // namespace tc
