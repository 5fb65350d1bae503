// Conv, ConvInteger and QLinearConv: out[n, oc, o...] = sum over ic, k... of x[n, group's ic, o * stride + k * dilation
// - pad] * w[oc, ic, k...]. Padding is a Select around the load of x, never a copy.
#include "ir/ops/contraction.h"
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"

namespace tc {
namespace {

struct Conv {
  Layout layout;
  Tensor x, w;
  int64_t batch = 0, groups = 1, in_per_group = 0, out_per_group = 0;
  Window window;
  int64_t out_channels() const { return groups * out_per_group; }
  Dims dims() const { return layout.dims(batch, out_channels(), window.out); }
  /// The input channel that group channel ic of output channel oc reads.
  Expr input_channel(const Expr& oc, const Expr& ic) const {
    if (groups == 1) return ic;
    const Expr group = floor_div(oc, out_per_group);
    return in_per_group == 1 ? group : group * in_per_group + ic;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> v = layout.names("oc", "o", window.rank());
    v.push_back("ic");
    for (std::string& s : spatial_names("k", window.rank())) v.push_back(std::move(s));
    return v;
  }
  Dims reduced() const {
    Dims r = {in_per_group};
    r.insert(r.end(), window.kernel.begin(), window.kernel.end());
    return r;
  }
};

Conv read_conv(OpBuilder& op, int x, int w) {
  Conv c;
  c.layout = layout_of(op);
  c.x = op.in(x);
  c.w = op.in(w);
  const Dims dx = c.x.dims(), dw = c.w.dims();
  if (dx.size() < 3) op.reject("the input must have a batch axis, a channel axis and at least one spatial axis", x);
  if (dw.size() != dx.size())
    op.reject("the weights have rank " + to_text(int64_t(dw.size())) + " but the input has rank " +
                  to_text(int64_t(dx.size())),
              w);
  const int64_t channels = dx[size_t(c.layout.channel_axis(int(dx.size())))];
  c.batch = dx[0];
  c.groups = op.attr_int("group", 1);
  c.in_per_group = dw[1];
  if (c.groups < 1 || dw[0] % c.groups != 0)
    op.reject("group is " + to_text(c.groups) + ", which does not divide the " + to_text(dw[0]) + " output channels",
              w);
  if (checked_mul(c.in_per_group, c.groups) != channels)
    op.reject("the weights take " + to_text(c.in_per_group) + " channels in each of " + to_text(c.groups) +
                  " groups, but the input has " + to_text(channels) + " channels",
              w);
  c.out_per_group = dw[0] / c.groups;
  const Dims kernel(dw.begin() + 2, dw.end());
  if (const Dims given = spatial_attr(op, "kernel_shape", kernel.size(), 1, 1);
      !op.attr_ints("kernel_shape").empty() && given != kernel)
    op.reject("kernel_shape differs from the shape of the weights", w);
  c.window = make_window(op, c.layout.spatial(dx), kernel);
  return c;
}

/// The sum of products; `fx` and `fw` turn a loaded element into a factor (widen it, take its zero point away).
Tensor sum_of_products(OpBuilder& op, const Conv& c, DType t,
                       const std::function<Expr(const Expr& value, const Expr& inside, const Expr& channel)>& fx,
                       const std::function<Expr(const Expr& value, const Expr& oc)>& fw) {
  return op.reduce(
      "conv" + to_text(int64_t(c.window.rank())) + "d", Op::Add, t, c.dims(), c.reduced(),
      [&](const Exprs& i, const Exprs& r) {
        const Expr oc = c.layout.channel(i), channel = c.input_channel(oc, r[0]);
        const Exprs taps(r.begin() + 1, r.end());
        const Exprs at = c.window.positions(c.layout.spatial(i), taps);
        Exprs wi = {oc, r[0]};
        wi.insert(wi.end(), taps.begin(), taps.end());
        return fx(c.x(c.layout.at(i[0], channel, at)), c.window.in_range(at), channel) * fw(c.w(wi), oc);
      },
      c.names());
}

Tensor integer_conv(OpBuilder& op, const Conv& c, int x_zero, int w_zero) {
  const bool shift_x = op.has(x_zero) && !is_zero_constant(op, x_zero);
  const bool shift_w = op.has(w_zero) && !is_zero_constant(op, w_zero);
  if (shift_x && !has_one_element(op.in(x_zero).dims())) op.reject("the zero point of x must be a scalar", x_zero);
  if (shift_w) {
    const int64_t size = num_elements(op.in(w_zero).dims());
    if (size != 1 && (size != c.out_channels() || op.in(w_zero).rank() != 1))
      op.reject("the zero point of w must be a scalar or have one value per output channel", w_zero);
  }
  auto i32 = [](const Expr& e) { return cast(DType::I32, e); };
  return sum_of_products(
      op, c, DType::I32,
      [&](const Expr& value, const Expr& inside, const Expr&) {
        if (!shift_x) return i32(select(inside, value, zero(value->dtype)));
        return select(inside, i32(value) - i32(only_element(op.in(x_zero))), zero(DType::I32));
      },
      [&](const Expr& value, const Expr& oc) {
        if (!shift_w) return i32(value);
        const Tensor z = op.in(w_zero);
        return i32(value) - i32(has_one_element(z.dims()) ? only_element(z) : z({oc}));
      });
}

void check_bias(OpBuilder& op, const Conv& c, int input) {
  if (op.in(input).dims() != Dims{c.out_channels()})
    op.reject("the bias must have " + to_text(c.out_channels()) + " values", input);
}

}  // namespace

Tensor conv(OpBuilder& op) {
  const Conv c = read_conv(op, 0, 1);
  const DType t = c.x.dtype(), wide = compute_type(t);
  Tensor y = sum_of_products(
      op, c, wide,
      [&](const Expr& value, const Expr& inside, const Expr&) { return widen(select(inside, value, zero(t))); },
      [&](const Expr& value, const Expr&) { return widen(value); });
  if (op.has(2)) {
    check_bias(op, c, 2);
    const Tensor b = op.in(2);
    y = op.compute(
        "bias", wide, c.dims(), [&, y](const Exprs& i) { return y(i) + widen(b({c.layout.channel(i)})); },
        c.layout.names("oc", "o", c.window.rank()));
  }
  return y;
}

void define_conv(OpBuilder& op) { op.output(0, convert(op, conv(op), op.in(0).dtype(), "cast")); }

void define_conv_integer(OpBuilder& op) { op.output(0, integer_conv(op, read_conv(op, 0, 1), 2, 3)); }

void define_qlinear_conv(OpBuilder& op) {
  const Conv c = read_conv(op, 0, 3);
  Tensor acc = integer_conv(op, c, 2, 5);
  const std::vector<std::string> names = c.layout.names("oc", "o", c.window.rank());
  if (op.has(8)) {
    check_bias(op, c, 8);
    const Tensor b = op.in(8);
    acc = op.compute(
        "bias", DType::I32, c.dims(), [&, acc](const Exprs& i) { return acc(i) + b({c.layout.channel(i)}); }, names);
  }
  const Tensor x_scale = op.in(1), w_scale = op.in(4), y_scale = op.in(6), y_zero = op.in(7);
  const int64_t scales = num_elements(w_scale.dims());
  if (scales != 1 && w_scale.dims() != Dims{c.out_channels()})
    op.reject("the scale of w must be a scalar or have one value per output channel", 4);
  op.output(0, op.compute(
                   "requantize", y_zero.dtype(), c.dims(),
                   [&](const Exprs& i) {
                     const Expr ws = scales == 1 ? only_element(w_scale) : w_scale({c.layout.channel(i)});
                     const Expr scale = only_element(x_scale) * ws / only_element(y_scale);
                     return requantize(acc(i), scale, is_zero_constant(op, 7) ? Expr() : only_element(y_zero),
                                       y_zero.dtype());
                   },
                   names));
}

}  // namespace tc
