#include "ir/loop/linear.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

int64_t wrap_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
int64_t wrap_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

void collect(const Expr& e, int64_t times, Linear& out) {
  if (auto* i = as<IntImm>(e)) {
    out.constant = wrap_add(out.constant, wrap_mul(i->value, times));
    return;
  }
  auto* a = as<Apply>(e);
  if (a && (a->op == Op::Add || a->op == Op::Sub)) {
    collect(a->args[0], times, out);
    collect(a->args[1], a->op == Op::Add ? times : wrap_mul(times, -1), out);
  } else if (a && a->op == Op::Neg) {
    collect(a->args[0], wrap_mul(times, -1), out);
  } else if (a && a->op == Op::Mul && as_const_int(a->args[1])) {
    collect(a->args[0], wrap_mul(times, *as_const_int(a->args[1])), out);
  } else if (a && a->op == Op::Mul && as_const_int(a->args[0])) {
    collect(a->args[1], wrap_mul(times, *as_const_int(a->args[0])), out);
  } else {
    out.add(e, times);
  }
}

}  // namespace

bool same_atom(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  auto *va = as<VarRef>(a), *vb = as<VarRef>(b);
  if (va || vb) return va && vb && va->var == vb->var;
  return structurally_equal(a, b);
}

void Linear::add(const Expr& atom, int64_t coefficient) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!same_atom(terms[i].atom, atom)) continue;
    terms[i].coefficient = wrap_add(terms[i].coefficient, coefficient);
    if (terms[i].coefficient == 0) terms.erase(terms.begin() + int64_t(i));
    return;
  }
  if (coefficient != 0) terms.push_back({atom, coefficient});
}

void Linear::add(const Linear& other, int64_t times) {
  for (const Term& t : other.terms) add(t.atom, wrap_mul(t.coefficient, times));
  constant = wrap_add(constant, wrap_mul(other.constant, times));
}

Expr Linear::single() const {
  return terms.size() == 1 && terms[0].coefficient == 1 && constant == 0 ? terms[0].atom : Expr();
}

Linear linear_form(const Expr& e) {
  Linear out;
  collect(e, 1, out);
  return out;
}

Expr to_expr(const Linear& l) {
  if (l.terms.empty()) return make_int(DType::I64, l.constant);
  auto lead = std::find_if(l.terms.begin(), l.terms.end(), [](const auto& t) { return t.coefficient > 0; });
  bool constant_leads = lead == l.terms.end() && l.constant > 0;
  if (lead == l.terms.end()) lead = l.terms.begin();
  auto magnitude = [](const Linear::Term& t) {
    int64_t c = t.coefficient < 0 && t.coefficient != INT64_MIN ? -t.coefficient : t.coefficient;
    return t.atom * Expr(c);
  };
  Expr sum = constant_leads ? Expr(l.constant) : lead->atom * Expr(lead->coefficient);
  for (auto t = l.terms.begin(); t != l.terms.end(); ++t) {
    if (t == lead && !constant_leads) continue;
    bool negative = t->coefficient < 0 && t->coefficient != INT64_MIN;
    sum = negative ? sum - magnitude(*t) : sum + magnitude(*t);
  }
  if (l.constant == 0 || constant_leads) return sum;
  return l.constant < 0 && l.constant != INT64_MIN ? sum - Expr(-l.constant) : sum + Expr(l.constant);
}

int64_t floor_div_int(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t floor_mod_int(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

}  // namespace tc
