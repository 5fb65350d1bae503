// name_values: a fused chain reads as its steps.
//
//   y[i] = tanh(sqrt(sigmoid(abs(exp(x[i] * 2.0f + 1.0f)))) ...)
// becomes
//   let exp = exp(x[i] * 2.0f + 1.0f)
//   let abs = abs(exp)
//   ...
//
// Only stores of more than kLong operations are touched. A function gets a line of its own, arithmetic is cut when it
// grows beyond kPiece operations. What a select may leave out is not moved if it reads memory. Bits stay the same.
// Needs: common_subexpr has run, so that nothing is written twice. Leaves: expressions that fit a line or two.
#include "passes/loop/name_values.h"

#include <map>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/data.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

constexpr int kLong = 9, kPiece = 5;

int operations(const Expr& e, std::set<const ExprNode*>& seen) {
  if (!seen.insert(e.get()).second) return 0;
  int n = as<Apply>(e) || as<Select>(e) ? 1 : 0;
  visit(
      e, [](const IntImm&) {}, [](const FloatImm&) {}, [](const VarRef&) {}, [](const Lanes&) {}, [](const Load&) {},
      [](const Ramp&) {},
      [&](const Apply& k) {
        for (const Expr& a : k.args) n += operations(a, seen);
      },
      [&](const Select& k) { n += operations(k.condition, seen) + operations(k.yes, seen) + operations(k.no, seen); },
      [&](const Cast& k) { n += operations(k.value, seen); }, [&](const Bitcast& k) { n += operations(k.value, seen); },
      [&](const Broadcast& k) { n += operations(k.value, seen); }, [](const Partial&) {});
  return n;
}

class Namer {
 public:
  explicit Namer(const DataVars& vars) : vars_(vars) {}

  Expr cut(const Expr& e) {
    if (const auto it = done_.find(e.get()); it != done_.end()) return it->second.second;
    const Expr r = rebuilt(e);
    done_[e.get()] = {e, r};
    return r;
  }

  /// The same for a whole value, which has a name or a destination already: no second name.
  Expr cut_value(const Expr& e) {
    const Expr r = cut(e);
    const VarRef* last = as<VarRef>(r);
    if (!last || lets.empty() || last->var != lets.back().first) return r;
    const Expr value = lets.back().second;
    lets.pop_back();
    return value;
  }

  std::vector<std::pair<Var, Expr>> lets;

 private:
  Expr rebuilt(const Expr& e) {
    if (const Cast* k = as<Cast>(e)) {
      const Expr v = cut(k->value);
      const Expr r = v.same_as(k->value) ? e : cast(e->dtype, v, k->saturate);
      weight_[r.get()] = weight(v);
      return keep(r);
    }
    const Apply* k = as<Apply>(e);
    if (!k || k->op == Op::And || k->op == Op::Or || k->op == Op::Index) return e;
    if (info(k->op).compares || (e->dtype == DType::I64 && !holds_data(e, vars_))) return e;
    Exprs args;
    bool changed = false;
    int total = 1;
    for (const Expr& a : k->args) {
      args.push_back(cut(a));
      changed |= !args.back().same_as(a);
      total += weight(args.back());
    }
    const Expr r = changed ? apply(k->op, std::move(args)) : e;
    weight_[r.get()] = total;
    keep(r);
    const bool function = info(k->op).c_infix.empty() && k->op != Op::Max && k->op != Op::Min;
    return function || total >= kPiece ? named(r, function ? std::string(info(k->op).name) : "t") : r;
  }

  Expr named(const Expr& value, std::string hint) {
    auto d = std::make_shared<const VarDef>(VarDef{std::move(hint), value->dtype});
    lets.emplace_back(d, value);
    const Expr ref(d);
    return value->vector ? vector_ref(ref) : ref;
  }
  // A variable bound to a vector is a vector.
  static Expr vector_ref(const Expr& ref) {
    ExprNode n = *ref;
    n.vector = true;
    return Expr(std::make_shared<const ExprNode>(n));
  }
  int weight(const Expr& e) const {
    const auto it = weight_.find(e.get());
    return it == weight_.end() ? 0 : it->second;
  }
  Expr keep(const Expr& e) {
    kept_.push_back(e);
    return e;
  }

  const DataVars& vars_;
  std::map<const ExprNode*, std::pair<Expr, Expr>> done_;  // looked up only
  std::map<const ExprNode*, int> weight_;
  std::vector<Expr> kept_;
};

Stmt with_lets(std::vector<std::pair<Var, Expr>> lets, Stmt s) {
  for (size_t i = lets.size(); i > 0; i--) s = let(lets[i - 1].first, lets[i - 1].second, s);
  return s;
}

}  // namespace

Stmt name_values(const Stmt& s) {
  const DataVars vars = data_vars(s);
  return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
    if (const Store* k = as<Store>(x)) {
      std::set<const ExprNode*> seen;
      if (operations(k->value, seen) <= kLong) return {};
      Namer n(vars);
      const Expr v = n.cut_value(k->value);
      if (n.lets.empty()) return {};
      return with_lets(std::move(n.lets), store(k->buffer, k->index, v, k->reduce, k->count));
    }
    if (const Let* k = as<Let>(x)) {
      std::set<const ExprNode*> seen;
      if (operations(k->value, seen) <= kLong || (k->value->dtype == DType::I64 && !holds_data(k->value, vars)))
        return {};
      Namer n(vars);
      const Expr v = n.cut_value(k->value);
      if (n.lets.empty()) return {};
      return with_lets(std::move(n.lets), let(k->var, v, k->body));
    }
    return {};
  });
}

}  // namespace tc
