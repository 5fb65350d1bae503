#include "templates/row_axes.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {

std::vector<int64_t> sizes_of(const std::vector<Axis>& axes) {
  std::vector<int64_t> v;
  for (const Axis& a : axes)
    if (a.extent.value > 1) v.push_back(a.extent.value);
  return v;
}

bool same_index(const Expr& a, const Expr& b, const Ranges& ranges) {
  return structurally_equal(simplify(a, ranges), simplify(b, ranges));
}

bool is_dense(const Buffer& b) {
  if (b->strides.empty()) return true;
  int64_t next = 1;
  for (size_t d = b->shape.size(); d-- > 0;) {
    if (b->shape[d].value == 1) continue;
    if (b->strides[d] != next) return false;
    next *= b->shape[d].value;
  }
  return true;
}

Expr flat_of(const Buffer& b, const Exprs& index) {
  Expr e = 0;
  if (is_dense(b)) {
    for (size_t d = 0; d < index.size(); d++) e = e * Expr(b->shape[d]) + index[d];
    return e;
  }
  for (size_t d = 0; d < index.size(); d++)
    if (b->shape[d].value != 1) e = e + index[d] * Expr(b->strides[d]);
  return e;
}

bool counts_through(const Expr& index, int64_t extent, const std::vector<Axis>& axes) {
  const auto o = offset_of(index, vars_of(axes));
  if (!o || o->constant != 0) return false;
  std::vector<std::pair<int64_t, int64_t>> digits;  // coefficient, extent
  for (const Axis& a : axes)
    if (o->of(a.var) != 0) digits.push_back({o->of(a.var), a.extent.value});
  std::sort(digits.begin(), digits.end());
  int64_t next = 1;
  for (const auto& [coefficient, n] : digits) {
    if (coefficient != next) return false;
    next *= n;
  }
  return next == extent;
}

}  // namespace tc
