// ConvTranspose, as a sum over the inputs that reach an output: y[o] takes x[i] * w[k] where i * stride + k * dilation
// - pad = o.
#include <cmath>

#include "ir/ops/contraction.h"
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"

namespace tc {
namespace {

struct Transposed {
  Dims in, kernel, strides, dilations, begin, out;
  /// One position is all there is: it reaches output o by one term only, k = o + begin, and nothing is summed.
  bool single(size_t d) const { return in[d] == 1 && dilations[d] == 1; }
};

Transposed transposed_window(OpBuilder& op, const Dims& in, const Dims& kernel) {
  const size_t rank = in.size();
  Transposed t{
      in,         kernel,    spatial_attr(op, "strides", rank, 1, 1), spatial_attr(op, "dilations", rank, 1, 1),
      Dims(rank), Dims(rank)};
  const Dims pads = spatial_attr(op, "pads", 2 * rank, 0, INT32_MIN);
  const Dims extra = spatial_attr(op, "output_padding", rank, 0, 0);
  const std::string auto_pad = op.attr_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  Dims shape = op.attr_ints("output_shape");
  if (shape.size() == rank + 2) shape.erase(shape.begin(), shape.begin() + 2);  // some models give N and C as well
  if (!shape.empty() && shape.size() != rank) op.reject("output_shape must have one value per spatial axis");
  for (size_t d = 0; d < rank; d++) {
    const int64_t extent = checked_mul(kernel[d] - 1, t.dilations[d]) + 1;
    const int64_t full = checked_add(checked_mul(t.strides[d], in[d] - 1), checked_add(extra[d], extent));
    if (!shape.empty() || same) {
      t.out[d] = shape.empty() ? in[d] * t.strides[d] : shape[d];
      const int64_t total = std::max<int64_t>(0, full - t.out[d]);
      t.begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      const bool valid = auto_pad == "VALID";
      t.begin[d] = valid ? 0 : pads[d];
      t.out[d] = full - (valid ? 0 : pads[d] + pads[rank + d]);
    }
    if (t.out[d] < 0) op.reject("the pads leave no output");
  }
  return t;
}

}  // namespace

bool has_infinite_weights(const Constant& w) {
  for (int64_t k = 0; w && k < w->size(); k++)
    if (!std::isfinite(w->as_double(k))) return true;
  return false;
}

void define_conv_transpose(OpBuilder& op) {
  const Layout layout = layout_of(op);
  const Tensor x = op.in(0), w = op.in(1);
  const Dims dx = x.dims(), dw = w.dims();
  if (dx.size() < 3 || dw.size() != dx.size()) op.reject("the input and the weights must have one rank, at least 3", 1);
  const int64_t channels = dx[size_t(layout.channel_axis(x.rank()))], groups = op.attr_int("group", 1);
  if (groups < 1 || channels % groups != 0)
    op.reject("group is " + to_text(groups) + ", which does not divide the " + to_text(channels) + " input channels");
  if (dw[0] != channels)
    op.reject("the weights take " + to_text(dw[0]) + " channels, but the input has " + to_text(channels), 1);
  const int64_t in_per_group = channels / groups, out_per_group = dw[1], out_channels = dw[1] * groups;
  const Dims kernel(dw.begin() + 2, dw.end());
  const Transposed t = transposed_window(op, layout.spatial(dx), kernel);
  const size_t rank = kernel.size();
  const DType wide = compute_type(x.dtype());
  Dims reduced = {in_per_group};
  for (size_t d = 0; d < rank; d++) reduced.push_back(t.single(d) ? 1 : kernel[d]);
  std::vector<std::string> names = layout.names("oc", "o", rank), all = names;
  all.push_back("ic");
  for (std::string& s : spatial_names("k", rank)) all.push_back(std::move(s));
  const bool infinite = has_infinite_weights(op.constant(1));
  Tensor y = op.reduce(
      "conv" + to_text(int64_t(rank)) + "d_transpose", Op::Add, wide, layout.dims(dx[0], out_channels, t.out), reduced,
      [&](const Exprs& i, const Exprs& r) {
        const Expr oc = layout.channel(i);
        const Exprs o = layout.spatial(i);
        const Expr ic = groups == 1 ? r[0] : floor_div(oc, out_per_group) * in_per_group + r[0];
        Expr inside = make_int(DType::Bool, 1), has_weight = inside;
        Exprs at, wi = {ic, groups == 1 ? oc : floor_mod(oc, out_per_group)};
        for (size_t d = 0; d < rank; d++) {
          if (t.single(d)) {
            const Expr k = o[d] + t.begin[d];
            at.push_back(0);
            wi.push_back(k);
            if (t.begin[d] < 0) has_weight = has_weight && k >= 0;
            if (t.out[d] - 1 + t.begin[d] >= kernel[d]) has_weight = has_weight && k < kernel[d];
            continue;
          }
          // From the last tap to the first, so that the input is read forwards.
          const Expr k = Expr(kernel[d] - 1) - r[1 + d];
          const Expr p = o[d] + t.begin[d] - k * t.dilations[d];
          if (t.strides[d] > 1) inside = inside && eq(floor_mod(p, t.strides[d]), 0);
          at.push_back(floor_div(p, t.strides[d]));
          // Only multiples of the stride are positions of the input.
          if (t.begin[d] + t.strides[d] <= (kernel[d] - 1) * t.dilations[d]) inside = inside && at[d] >= 0;
          if (t.out[d] - 1 + t.begin[d] >= t.in[d] * t.strides[d]) inside = inside && at[d] < t.in[d];
          wi.push_back(k);
        }
        // Zeros beside what there is are multiplied, which is faster, where nothing known makes NaN of them.
        if (infinite || !as_const_int(has_weight))
          return select(inside && has_weight, widen(x(layout.at(i[0], ic, at))) * widen(w(wi)), zero(wide));
        return widen(select(inside, x(layout.at(i[0], ic, at)), zero(x.dtype()))) * widen(w(wi));
      },
      all);
  if (op.has(2)) {
    const Tensor b = op.in(2);
    if (b.dims() != Dims{out_channels}) op.reject("the bias must have " + to_text(out_channels) + " values", 2);
    y = op.compute(
        "bias", wide, y.dims(), [&, y](const Exprs& i) { return y(i) + widen(b({layout.channel(i)})); }, names);
  }
  op.output(0, convert(op, y, x.dtype(), "cast"));
}

}  // namespace tc
