// Operators of our own, inserted by passes.
#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/helpers.h"

namespace tc {
namespace {

/// The first `count` slices of x along an axis as one dense tensor at the start of y, which has room for all of x.
void define_pack(OpBuilder& b) {
  const Tensor x = b.in(0), count = b.in(1);
  const int axis = b.axis(b.attr_int("axis"), x.rank());
  const Dims dims = x.dims();
  const auto middle = dims.begin() + axis;
  const Dims before(dims.begin(), middle), behind(middle + 1, dims.end());
  const int64_t outer = num_elements(before), inner = num_elements(behind);
  b.output(0, b.compute("pack", x.dtype(), dims, [&](const Exprs& i) {
    const Expr there = min(count({}), Expr(*middle)), n = max(there, Expr(1));
    const Expr at = linear_index(i, dims), slice = floor_div(at, Expr(std::max<int64_t>(1, inner)));
    const Expr place = floor_div(slice, n);
    Exprs from = delinearize(min(place, Expr(std::max<int64_t>(1, outer) - 1)), before);
    from.push_back(floor_mod(slice, n));
    const Exprs rest = delinearize(floor_mod(at, Expr(std::max<int64_t>(1, inner))), behind);
    from.insert(from.end(), rest.begin(), rest.end());
    return select(place < Expr(outer) && there > Expr(0), x(from), zero(x.dtype()));
  }));
}

}  // namespace

OpFamily internal_ops() {
  return {
      // The node's `fn` is its definition: tensor_fn() never asks this row.
      {.name = "fused", .since = 1, .attrs = {}, .define = nullptr, .domain = "tc"},
      {"pack", 1, {{"axis", int64_t(0)}}, define_pack, "x count", "", "tc"},
  };
}

}  // namespace tc
