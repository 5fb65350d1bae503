// Pad: each output position names a position on the input's axes, or the constant.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// `inside` for positions of an axis of n elements, `front` before them, `back` behind. Loops over j are cut where a
/// comparison changes.
Expr by_side(const Expr& j, int64_t n, const Expr& front, const Expr& inside, const Expr& back) {
  return select(j < Expr(0), front, select(j >= Expr(n), back, inside));
}

/// Position j of an axis of n elements, mirrored at its first and last element as often as needed: once where it lies at
/// most n - 1 elements outside.
Expr reflect(const Expr& j, int64_t n, bool once) {
  if (n == 1) return 0;
  if (once) return by_side(j, n, Expr(0) - j, j, Expr(2 * (n - 1)) - j);
  const Expr m = floor_mod(j, 2 * (n - 1));
  return min(m, Expr(2 * (n - 1)) - m);
}

/// Elements of an axis of n that negative pads leave, where `before` are put in front and there are `all` then.
int64_t left_of(int64_t n, int64_t before, int64_t all) {
  return n + std::min<int64_t>(0, before) + std::min<int64_t>(0, all - n - before);
}

/// Position j of an axis of n elements, `before` of them in front, where those that negative pads leave are repeated.
Expr wrap(const Expr& j, int64_t n, const Expr& before, const Expr& after) {
  if (as_const_int(before) && as_const_int(after)) {
    const int64_t first = std::max<int64_t>(0, -*as_const_int(before)),
                  all = n + *as_const_int(before) + *as_const_int(after),
                  left = std::max<int64_t>(1, left_of(n, *as_const_int(before), all));  // of no result there are none
    const Expr k = j - Expr(first);
    const bool once = std::max(*as_const_int(before), *as_const_int(after)) <= left;
    return (once ? by_side(k, left, k + Expr(left), k, k - Expr(left)) : floor_mod(k, left)) + Expr(first);
  }
  const Expr first = max(Expr(0), Expr(0) - before), behind = max(Expr(0), Expr(0) - after);
  const Expr at = floor_mod(j - first, max(Expr(1), Expr(n) - first - behind)) + first;
  return max(Expr(0), min(at, Expr(n - 1)));
}

struct Pads {
  Exprs before;  // per axis of the input: elements in front
  Dims dims;     // size of the result
  bool known;    // the pads are literals
};

/// Pads that are known only at run time: the sizes are the declared ones.
Pads run_time_pads(OpBuilder& b, const Tensor& x) {
  Pads p{{}, b.declared_dims(0, 1), false};
  if (int(p.dims.size()) != x.rank()) b.reject("the declared shape does not fit the input", 1);
  const int64_t count = b.has(3) ? length_of(b, 3) : x.rank();
  if (length_of(b, 1) != 2 * count) b.reject("two pads per axis are needed", 1);
  for (int d = 0; d < x.rank(); d++) {
    Expr before = 0;
    for (int64_t k = 0; k < count; k++) {
      const Expr axis = b.has(3) ? run_time_axis(element(b, 3, k), x.rank()) : Expr(k);
      before = select(eq(axis, Expr(d)), element(b, 1, k), before);
    }
    p.before.push_back(before);
  }
  return p;
}

Pads pads_of(OpBuilder& b, const Tensor& x) {
  if (!b.known(1) || !b.known(3)) return run_time_pads(b, x);
  const auto rank = size_t(x.rank());
  const std::vector<int64_t> pads = b.const_ints(1);
  std::vector<int64_t> axes;
  if (b.has(3))
    axes = b.const_ints(3);
  else
    for (size_t d = 0; d < rank; d++) axes.push_back(int64_t(d));
  if (pads.size() != 2 * axes.size()) b.reject("two pads per axis are needed", 1);
  Pads p{Exprs(rank, Expr(0)), x.dims(), true};
  std::vector<bool> seen(rank, false);
  for (size_t k = 0; k < axes.size(); k++) {
    const auto d = size_t(b.axis(axes[k], int(rank)));
    if (seen[d]) b.reject("axis " + to_text(axes[k]) + " is given twice", 3);
    seen[d] = true;
    p.before[d] = Expr(pads[k]);
    p.dims[d] = checked_add(p.dims[d], checked_add(pads[k], pads[k + axes.size()]));
    if (p.dims[d] < 0) b.reject("negative pads take away more than the axis has", 1);
  }
  return p;
}

void define_pad(OpBuilder& b) {
  const Tensor x = b.in(0);
  const std::string mode = b.attr_string("mode");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    b.reject("attribute mode must be constant, edge, reflect or wrap");
  const Pads p = pads_of(b, x);
  bool whole = p.dims == x.dims();
  for (const Expr& e : p.before) whole = whole && is_const(e, 0);
  if (whole) return b.output(0, x);
  if (mode != "constant" && has_no_elements(x.dims()) && !has_no_elements(p.dims))
    b.reject("an empty input has no elements to pad with", 0);
  if (mode == "wrap" && p.known && !has_no_elements(p.dims))
    for (int d = 0; d < x.rank(); d++)
      if (left_of(x.dim(d), *as_const_int(p.before[size_t(d)]), p.dims[size_t(d)]) < 1)
        b.reject("negative pads leave no element of an axis, which others would repeat", 1);
  Expr fill = zero(x.dtype());
  if (mode == "constant" && b.has(2)) {
    const Tensor value = b.in(2);
    if (value.dtype() != x.dtype() || !has_one_element(value.dims()))
      b.reject("the constant must be one number of the input's type", 2);
    fill = value(Exprs(size_t(value.rank()), Expr(0)));
  }
  b.output(0, b.compute("pad", x.dtype(), p.dims, [&](const Exprs& i) {
    Exprs at;
    Expr inside = make_int(DType::Bool, 1);
    for (size_t d = 0; d < i.size(); d++) {
      const int64_t n = x.dim(int(d)), before = as_const_int(p.before[d]).value_or(INT64_MAX);
      const bool front = before > 0, back = !p.known || p.dims[d] - n - before > 0;
      const Expr j = i[d] - p.before[d];
      if (!front && !back)
        at.push_back(j);
      else if (mode == "edge")
        at.push_back(p.known ? by_side(j, n, 0, j, Expr(n - 1)) : max(Expr(0), min(j, Expr(n - 1))));
      else if (mode == "reflect")
        at.push_back(reflect(j, n, p.known && before < n && p.dims[d] - before < 2 * n));
      else if (mode == "wrap")
        at.push_back(wrap(j, n, p.before[d], Expr(p.dims[d] - n) - p.before[d]));
      else {
        at.push_back(j);
        if (front) inside = inside && j >= Expr(0);
        if (back) inside = inside && j < Expr(n);
      }
    }
    return select(inside, x(at), fill);
  }));
}

/// Keeps the middle of every axis that shrinks and puts zeros around the others; the odd element is at the end.
void define_center_crop_pad(OpBuilder& b) {
  const Tensor x = b.in(0);
  std::vector<int64_t> axes = b.attr_ints("axes");
  if (!b.has_attr("axes"))
    for (int d = 0; d < x.rank(); d++) axes.push_back(d);
  if (length_of(b, 1) != int64_t(axes.size())) b.reject("the shape must have one size per axis", 1);
  Dims dims = x.dims();
  std::vector<bool> listed(dims.size(), false);
  const Dims sizes = b.known(1) ? Dims(b.const_ints(1)) : b.declared_dims(0, 1);
  if (!b.known(1) && sizes.size() != dims.size()) b.reject("the declared shape does not fit the input", 1);
  for (size_t k = 0; k < axes.size(); k++) {
    const auto d = size_t(b.axis(axes[k], x.rank()));
    if (listed[d]) b.reject("axis " + to_text(axes[k]) + " is given twice");
    listed[d] = true;
    dims[d] = b.known(1) ? sizes[k] : sizes[d];
  }
  if (!b.known(1) && dims != sizes) b.reject("the declared shape does not fit the input", 1);
  if (dims == x.dims()) return b.output(0, x);
  b.output(0, b.compute("center_crop_pad", x.dtype(), dims, [&](Exprs i) {
    Expr inside = make_int(DType::Bool, 1);
    for (size_t d = 0; d < i.size(); d++) {
      const int64_t n = x.dim(int(d));
      i[d] = i[d] + Expr((n - dims[d]) / 2);
      if (dims[d] > n) inside = inside && i[d] >= Expr(0) && i[d] < Expr(n);
    }
    return select(inside, x(i), zero(x.dtype()));
  }));
}

}  // namespace

OpFamily pad_ops() {
  return {{"Pad", 25, {{"mode", std::string("constant")}}, define_pad, "x pads value axes"},
          {"CenterCropPad", 18, {{"axes", {}}}, define_center_crop_pad, "x shape"}};
}

}  // namespace tc
