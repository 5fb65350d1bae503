#include "templates/points.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "support/error.h"

namespace tc {

int64_t points(const std::vector<Axis>& axes) {
  int64_t n = 1;
  for (const Axis& a : axes) n = checked_mul(n, a.extent.value);
  return n;
}

int64_t points_or_many(const std::vector<Axis>& axes) {
  int64_t n = 1;
  for (const Axis& a : axes) {
    if (a.extent.value == 0) return 0;
    if (__builtin_mul_overflow(n, a.extent.value, &n)) n = INT64_MAX;
  }
  return n;
}

std::vector<Var> vars_of(const std::vector<Axis>& axes) {
  std::vector<Var> v;
  for (const Axis& a : axes) v.push_back(a.var);
  return v;
}

Expr point_number(const std::vector<Axis>& axes, Expr outer) {
  for (const Axis& a : axes) outer = outer * Expr(a.extent) + Expr(a.var);
  return outer;
}

VarMap point_at(const std::vector<Axis>& axes, const Expr& number) {
  VarMap at;
  const auto first = std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.extent.value != 1; });
  int64_t stride = 1;
  for (auto a = axes.end(); a-- != axes.begin();) {
    const int64_t n = a->extent.value;
    const Expr quotient = floor_div(number, stride);
    at[a->var.get()] = n == 1 ? Expr(0) : a == first ? quotient : floor_mod(quotient, n);
    stride = checked_mul(stride, n);
  }
  return at;
}

void ChunkDigits::take(const Var& v, const Expr& count, bool slowest) {
  values_.push_back({v, slowest ? rest_ : apply(Op::Mod, {rest_, count})});
  rest_ = rest_ / count;
}

Stmt ChunkDigits::around(Stmt body) const {
  for (const auto& [v, value] : values_) body = let(v, value, body);
  return body;
}

}  // namespace tc
