#include "templates/match/axes.h"

#include <algorithm>

namespace tc {

bool uses_any(const Expr& e, const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return uses_var(e, a.var); });
}

std::optional<Axis> unit_axis(const Canonical& c) {
  for (const Axis& a : c.axes) {
    const auto f = affine_in(c.out_index, {a.var});
    if (f && f->coefficients[0] == 1) return a;
  }
  return {};
}

}  // namespace tc
