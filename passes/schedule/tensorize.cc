// tensorize: a nest that computes what an instruction computes becomes that instruction.
//
// The nest must be equal to the row's semantics up to names: the same loops, the same expressions, and every access of
// an operand at a fixed offset plus the row's own index, along the last dimensions of the buffer.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/linear.h"
#include "ir/loop/print.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/region.h"
#include "passes/schedule/step.h"
#include "support/text.h"

namespace tc {
namespace {

// Where an operand lies.
struct BoundOperand {
  Buffer buffer;
  Exprs begin;
};

class Match {
 public:
  explicit Match(const Intrinsic& row) : operands(row.operands.size()), row_(row) {}

  bool stmt(const Stmt& a, const Stmt& b) {
    if (!a || !b) return bool(a) == bool(b);
    if (a->kind.index() != b->kind.index()) return fail(a, b);
    if (const For* f = as<For>(a)) {
      const For& g = *as<For>(b);
      if (!is_const(f->begin, 0) || !is_const(g.begin, 0) || f->kind != ForKind::Serial) return fail(a, b);
      if (!as_const_int(f->extent) || as_const_int(f->extent) != as_const_int(g.extent)) return fail(a, b);
      vars_[g.var.get()] = Expr(f->var);
      bound_.push_back(f->var);
      return stmt(f->body, g.body);
    }
    if (const Seq* q = as<Seq>(a)) {
      const Seq& r = *as<Seq>(b);
      if (q->list.size() != r.list.size()) return fail(a, b);
      for (size_t i = 0; i < q->list.size(); i++)
        if (!stmt(q->list[i], r.list[i])) return false;
      return true;
    }
    if (const Store* k = as<Store>(a)) {
      const Store& l = *as<Store>(b);
      const bool ok = k->reduce == l.reduce && !k->count && !l.count &&
                      access(k->buffer, k->index, l.buffer, l.index) && expr(k->value, l.value);
      return ok || fail(a, b);
    }
    return fail(a, b);
  }

  std::vector<BoundOperand> operands;
  std::string why;

 private:
  bool fail(const Stmt& a, const Stmt& b) {
    if (why.empty()) why = "here:\n" + to_text(a, 1) + "the instruction:\n" + to_text(b, 1);
    return false;
  }

  bool exprs(const Exprs& a, const Exprs& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
      if (!expr(a[i], b[i])) return false;
    return true;
  }

  bool expr(const Expr& a, const Expr& b) {
    if (a->dtype != b->dtype || a->vector || b->vector) return false;
    if (a->dtype == DType::I64) return same_index(a, b);
    if (a->kind.index() != b->kind.index()) return false;
    if (const Load* l = as<Load>(a)) return access(l->buffer, l->index, as<Load>(b)->buffer, as<Load>(b)->index);
    if (const Apply* k = as<Apply>(a)) return k->op == as<Apply>(b)->op && exprs(k->args, as<Apply>(b)->args);
    if (const Cast* k = as<Cast>(a)) return k->saturate == as<Cast>(b)->saturate && expr(k->value, as<Cast>(b)->value);
    if (const Select* k = as<Select>(a)) {
      const Select& o = *as<Select>(b);
      return exprs({k->condition, k->yes, k->no}, {o.condition, o.yes, o.no});
    }
    return structurally_equal(a, b);  // constants
  }

  bool same_index(const Expr& a, const Expr& b) {
    if (!reads_nothing(a) || !reads_nothing(b))
      return a->kind.index() == b->kind.index() && as<Load>(a) && expr_load(a, b);
    return is_const(simplify(a - substitute(b, vars_)), 0);
  }
  bool expr_load(const Expr& a, const Expr& b) {
    return access(as<Load>(a)->buffer, as<Load>(a)->index, as<Load>(b)->buffer, as<Load>(b)->index);
  }

  // index = begin + the row's index, with a begin that no loop of the nest moves, the same for all accesses.
  bool access(const Buffer& have, const Exprs& index, const Buffer& want, const Exprs& pattern) {
    const auto it = std::find(row_.operands.begin(), row_.operands.end(), want);
    if (it == row_.operands.end() || have->dtype != want->dtype || index.size() < pattern.size()) return false;
    BoundOperand& p = operands[size_t(it - row_.operands.begin())];
    const size_t lead = index.size() - pattern.size();
    Exprs begin;
    for (size_t d = 0; d < index.size(); d++) {
      const Expr own = d < lead ? Expr(0) : substitute(pattern[d - lead], vars_);
      begin.push_back(simplify(index[d] - own));
      for (const Var& v : bound_)
        if (uses_var(begin.back(), v)) return false;
      if (!reads_nothing(begin.back())) return false;
    }
    if (!p.buffer) {
      p = {have, begin};
      return true;
    }
    if (p.buffer != have) return false;
    for (size_t d = 0; d < begin.size(); d++)
      if (!is_const(simplify(begin[d] - p.begin[d]), 0)) return false;
    return true;
  }

  const Intrinsic& row_;
  VarMap vars_;
  std::vector<Var> bound_;
};

bool is_thread_array(const Buffer& b) { return b->scope == Scope::Register || b->scope == Scope::Stack; }

Stmt expanded(const Intrin& k, const Intrinsic& row) {
  const IntrinCall call = parse(k);
  check(call.operands.size() == row.operands.size(), "operands of an instruction");
  Stmt s = fresh_copy(row.semantics);
  for (size_t i = 0; i < row.operands.size(); i++) {
    const Buffer &from = row.operands[i], &to = call.operands[i].buffer;
    Exprs begin = call.operands[i].index;
    if (is_thread_array(to)) begin.push_back(0);
    auto index = [&](const Exprs& own) {
      Exprs all = begin;
      for (size_t d = 0; d < own.size(); d++) {
        Expr& e = all[all.size() - own.size() + d];
        e = e + own[d];
      }
      return all;
    };
    auto on_expr = [&](const Expr& e) {
      const Load* l = as<Load>(e);
      return l && l->buffer == from ? load(to, index(l->index)) : Expr();
    };
    auto on_stmt = [&](const Stmt& x) {
      const Store* st = as<Store>(x);
      return st && st->buffer == from ? store(to, index(st->index), st->value, st->reduce, st->count) : Stmt();
    };
    s = rewrite(s, on_expr, on_stmt);
  }
  return s;
}

}  // namespace

// Before and after, for a row dot4(c, a, b) with c[0] += a[k] * b[k] for k in 0 .. +4:
//   for k in 0 .. +4: acc[i] += x[j + k] * w[k]   ->   dot4(i, j, 0, acc, x, w)
// Refused: a nest that is not equal to the semantics of the row; loops that are unrolled, in vectors or bound; a result
// that is an operand, too; an operand in registers or on the stack that is not the array of the buffer's last axis.
void Schedule::tensorize(const Var& v, const Intrinsic& row) {
  Step step(*this, "tensorize", {{v}, {row.name}});
  const LoopSite site = step.find(v);
  Match m(row);
  const bool same = m.stmt(site.stmt, row.semantics);
  step.require(same, "the loop does not compute what the instruction computes; " + m.why, site.stmt);
  const Accesses all = accesses_of(site.stmt);
  std::vector<IntrinOperand> operands;
  for (const BoundOperand& p : m.operands) {
    step.require(bool(p.buffer), "an operand of the instruction is not used by its semantics", site.stmt);
    const auto uses = std::count_if(m.operands.begin(), m.operands.end(),
                                    [&](const BoundOperand& o) { return o.buffer == p.buffer; });
    step.require(uses == 1 || !touches(all, p.buffer, false, true),
                 "\"" + p.buffer->name + "\" is a result and an operand", site.stmt);
    operands.push_back({p.buffer, p.begin});
    if (!is_thread_array(p.buffer)) continue;
    const size_t rank = row.operands[operands.size() - 1]->shape.size();
    step.require(rank == 1 && !p.begin.empty() && is_const(p.begin.back(), 0),
                 "the operand in \"" + p.buffer->name + "\" is not the array of its last axis", site.stmt);
    operands.back().index.pop_back();
  }
  Intrin k{row.name, {}, {}};
  for (const IntrinOperand& o : operands) {
    k.buffers.push_back(o.buffer);
    k.args.insert(k.args.end(), o.index.begin(), o.index.end());
  }
  step.done(replace_stmt(body_, site.stmt.get(), Stmt(std::make_shared<const StmtNode>(StmtNode{std::move(k)}))));
}

Stmt expand_intrinsics(const Stmt& s, const std::vector<Intrinsic>& table) {
  return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
    const Intrin* k = as<Intrin>(x);
    if (!k) return {};
    for (const Intrinsic& row : table)
      if (row.name == k->name) return expanded(*k, row);
    return {};
  });
}

}  // namespace tc
