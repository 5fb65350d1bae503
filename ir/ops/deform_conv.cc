// DeformConv: a convolution whose taps read the input between its pixels, at offsets that a tensor gives. The samples
// are a stage of their own, so that the sum of products is the one of a convolution.
#include "ir/ops/contraction.h"
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"

namespace tc {
namespace {

Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Deform {
  Tensor x, w, offset, mask;  // mask may be null
  Dims kernel;
  Window window;
  int64_t groups = 1, offset_groups = 1;
  DType t;  // of coordinates, samples and sums

  size_t rank() const { return kernel.size(); }
  int64_t channels() const { return x.dim(1); }
  int64_t taps() const { return num_elements(kernel); }
};

Deform read_deform(OpBuilder& op) {
  Deform c{op.in(0), op.in(1), op.in(2), op.has(4) ? op.in(4) : Tensor(), {}, {}, 1, 1, compute_type(op.in(0).dtype())};
  const Dims x = c.x.dims(), w = c.w.dims();
  if (x.size() < 3 || w.size() != x.size()) op.reject("the input and the weights must have one rank, at least 3", 1);
  if (x.size() > 7) op.unsupported("deformable convolutions over more than five spatial axes", 0);
  c.kernel.assign(w.begin() + 2, w.end());
  c.groups = op.attr_int("group", 1);
  c.offset_groups = op.attr_int("offset_group", 1);
  if (c.groups < 1 || w[0] % c.groups != 0 || checked_mul(w[1], c.groups) != x[1])
    op.reject("the channels do not fit the groups", 1);
  if (c.offset_groups < 1 || x[1] % c.offset_groups != 0) op.reject("offset_group does not divide the input channels");
  c.window = make_window(op, Dims(x.begin() + 2, x.end()), c.kernel);
  const int64_t values = checked_mul(c.offset_groups, c.taps());
  if (c.offset.dims() != joined({x[0], checked_mul(values, int64_t(c.rank()))}, c.window.out))
    op.reject("the offsets have another shape than the kernel and the output ask for", 2);
  if (c.mask && c.mask.dims() != joined({x[0], values}, c.window.out))
    op.reject("the mask has another shape than the kernel and the output ask for", 4);
  return c;
}

/// x[floor] * (1 - f) + x[floor + 1] * f in every axis, with zeros outside of the input.
Expr interpolate(const Deform& c, const Exprs& leading, const Exprs& at, Exprs& chosen) {
  const size_t d = chosen.size();
  if (d == at.size()) {
    Expr inside = make_int(DType::Bool, 1);
    for (size_t k = 0; k < d; k++) inside = inside && chosen[k] >= 0 && chosen[k] < c.window.in[k];
    return widen(select(inside, c.x(concat(leading, chosen)), zero(c.x.dtype())));
  }
  const Expr low = apply(Op::Floor, {at[d]}), low_index = cast(DType::I64, low), weight = at[d] - low;
  chosen.push_back(low_index);
  const Expr a = interpolate(c, leading, at, chosen);
  chosen.back() = low_index + 1;
  const Expr b = interpolate(c, leading, at, chosen);
  chosen.pop_back();
  return a * (make_const(c.t, 1) - weight) + b * weight;
}

/// sampled[n, c, k..., o...]: what tap k of output o sees of channel c.
Tensor samples(OpBuilder& op, const Deform& c) {
  const std::ptrdiff_t rank = std::ptrdiff_t(c.rank());
  const int64_t per_group = c.channels() / c.offset_groups;
  return op.compute(
      "sampled", c.t, joined(joined({c.x.dim(0), c.channels()}, c.kernel), c.window.out),
      [&](const Exprs& i) {
        const Exprs k(i.begin() + 2, i.begin() + 2 + rank), o(i.begin() + 2 + rank, i.end());
        const Expr group = c.offset_groups == 1 ? Expr(0) : floor_div(i[1], per_group);
        const Expr tap = group * c.taps() + linear_index(k, c.kernel);
        Exprs at, chosen;
        for (size_t d = 0; d < c.rank(); d++) {
          const Expr shift = widen(c.offset(concat({i[0], tap * int64_t(rank) + int64_t(d)}, o)));
          const Expr p = cast(c.t, c.window.position(d, o[d], k[d])) + shift;
          // Two pixels outside everything is zero; the bounds keep the integer cast defined.
          const Expr far = make_const(c.t, -2), bounded = min(max(p, far), make_const(c.t, double(c.window.in[d] + 1)));
          at.push_back(select(apply(Op::IsNan, {p}), far, bounded));
        }
        const Expr v = interpolate(c, {i[0], i[1]}, at, chosen);
        return c.mask ? v * widen(c.mask(concat({i[0], tap}, o))) : v;
      },
      joined(joined({"n", "c"}, spatial_names("k", c.rank())), spatial_names("o", c.rank())));
}

}  // namespace

void define_deform_conv(OpBuilder& op) {
  const Deform c = read_deform(op);
  const Tensor sampled = samples(op, c);
  const int64_t out_channels = c.w.dim(0), in_per_group = c.w.dim(1), out_per_group = out_channels / c.groups;
  const Dims out = joined({c.x.dim(0), out_channels}, c.window.out);
  const std::vector<std::string> names = joined({"n", "oc"}, spatial_names("o", c.rank()));
  Tensor y = op.reduce(
      "deform_conv", Op::Add, c.t, out, joined({in_per_group}, c.kernel),
      [&](const Exprs& i, const Exprs& r) {
        const Exprs k(r.begin() + 1, r.end()), o(i.begin() + 2, i.end());
        const Expr ic = c.groups == 1 ? r[0] : floor_div(i[1], out_per_group) * in_per_group + r[0];
        return sampled(concat(concat({i[0], ic}, k), o)) * widen(c.w(concat({i[1], r[0]}, k)));
      },
      joined(joined(names, {"ic"}), spatial_names("k", c.rank())));
  if (op.has(3)) {
    const Tensor b = op.in(3);
    if (b.dims() != Dims{out_channels}) op.reject("the bias must have one value per output channel", 3);
    y = op.compute(
        "bias", c.t, out, [&, y](const Exprs& i) { return y(i) + widen(b({i[1]})); }, names);
  }
  op.output(0, convert(op, y, c.x.dtype(), "cast"));
}

}  // namespace tc
