// Pooling: a reduction over the taps of a window. Taps in the padding give the identity of the reduction.
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"
#include "ir/ops/window.h"

namespace tc {
namespace {

struct Pool {
  Layout layout;
  Tensor x;
  int64_t batch = 0, channels = 0;
  Window window;
  Dims dims() const { return layout.dims(batch, channels, window.out); }
  std::vector<std::string> names() const { return layout.names("c", "o", window.rank()); }
  std::vector<std::string> all_names() const {
    std::vector<std::string> v = names();
    for (std::string& s : spatial_names("k", window.rank())) v.push_back(std::move(s));
    return v;
  }
};

Pool read_operand(OpBuilder& op, const Tensor& x, Layout layout) {
  Pool p{layout, x, 0, 0, {}};
  const Dims d = p.x.dims();
  if (d.size() < 3) op.reject("the input must have a batch axis, a channel axis and at least one spatial axis", 0);
  p.batch = d[0];
  p.channels = d[size_t(p.layout.channel_axis(p.x.rank()))];
  return p;
}

Pool read_pool(OpBuilder& op, const Tensor& x, Layout layout) {
  Pool p = read_operand(op, x, layout);
  const Dims in = p.layout.spatial(p.x.dims());
  if (op.attr_ints("kernel_shape").empty()) op.reject("attribute kernel_shape is missing");
  p.window = make_window(op, in, spatial_attr(op, "kernel_shape", in.size(), 1, 1), op.attr_int("ceil_mode") != 0);
  return p;
}

/// A pool whose window is the whole input.
Pool read_global(OpBuilder& op, const Tensor& x, Layout layout) {
  Pool p = read_operand(op, x, layout);
  const Dims in = p.layout.spatial(p.x.dims()), ones(in.size(), 1), zeros(in.size(), 0);
  p.window = Window{in, in, ones, ones, zeros, zeros, ones};
  return p;
}

/// f of each tap, `outside` where the tap lies in the padding, joined by `join`.
Tensor pooled(OpBuilder& op, const Pool& p, const std::string& name, Op join, DType t, const Expr& outside,
              const std::function<Expr(const Expr&)>& f) {
  return op.reduce(
      name, join, t, p.dims(), p.window.kernel,
      [&](const Exprs& i, const Exprs& r) {
        const Exprs at = p.window.positions(p.layout.spatial(i), r);
        return select(p.window.in_range(at), f(p.x(p.layout.at(i[0], p.layout.channel(i), at))), outside);
      },
      p.all_names());
}

/// How many taps of output o count on one axis. With `padding_counts` the taps in the given pads count as well, but
/// never those that rounding up lets hang over the end.
Expr count_taps(const Window& w, size_t axis, const Expr& o, bool padding_counts) {
  const int64_t k = w.kernel[axis], dilation = w.dilations[axis], begin = w.begin[axis];
  const int64_t end = w.in[axis] + begin + (padding_counts ? w.end[axis] : 0);  // of what counts, in padded coordinates
  const Expr start = o * w.strides[axis];
  const int64_t last_tap = (w.out[axis] - 1) * w.strides[axis] + (k - 1) * dilation;
  Expr high = k, low = 0;
  if (last_tap >= end) high = min(Expr(k), divided_up(Expr(end) - start, dilation));
  if (!padding_counts && begin > 0) low = max(Expr(0), divided_up(Expr(begin) - start, dilation));
  return high - low;
}

/// How many taps each output averages: a number where all agree, else read from a small table over the output's
/// positions.
OpBuilder::Point tap_count(OpBuilder& op, const Pool& p, bool padding_counts, DType t) {
  auto count = [&](const Exprs& o) {
    Expr n = 1;
    for (size_t d = 0; d < p.window.rank(); d++) n = n * count_taps(p.window, d, o[d], padding_counts);
    return n;
  };
  Exprs first;
  for (const int64_t n : p.window.out) first.push_back(n == 1 ? Expr(0) : Expr(make_var("o")));
  if (const auto fixed = as_const_int(count(first))) {
    const Expr n = make_const(t, double(*fixed));
    return [n](const Exprs&) { return n; };
  }
  const Tensor table = op.compute(
      "tap_count", t, p.window.out, [&](const Exprs& o) { return cast(t, count(o)); },
      spatial_names("o", p.window.rank()));
  return [table](const Exprs& o) { return table(o); };
}

Tensor average(OpBuilder& op, const Pool& p, bool padding_counts) {
  const DType t = p.x.dtype(), wide = compute_type(t);
  const Tensor sum = pooled(op, p, "avg_pool", Op::Add, wide, zero(wide), widen);
  const OpBuilder::Point count = tap_count(op, p, padding_counts, wide);
  return op.compute(
      "average", t, p.dims(), [&](const Exprs& i) { return cast(t, sum(i) / count(p.layout.spatial(i))); }, p.names());
}

void lp_norm(OpBuilder& op, const Pool& p) {
  const DType t = p.x.dtype(), wide = compute_type(t);
  const int64_t power = op.attr_int("p", 2);
  if (power < 1) op.reject("p must be at least 1");
  const Expr exponent = make_const(wide, double(power));
  const Tensor sum = pooled(op, p, "lp_pool", Op::Add, wide, zero(wide), [&](const Expr& e) {
    const Expr v = widen(e);
    if (power == 1) return abs(v);
    if (power == 2) return v * v;
    return apply(Op::Pow, {abs(v), exponent});
  });
  if (power == 1) return op.output(0, convert(op, sum, t, "cast"));
  op.output(
      0,
      op.compute(
          "root", t, p.dims(),
          [&](const Exprs& i) {
            return cast(t, power == 2 ? sqrt(sum(i)) : apply(Op::Pow, {sum(i), make_const(wide, 1.0 / double(power))}));
          },
          p.names()));
}

void maximum(OpBuilder& op, const Pool& p) {
  const DType t = p.x.dtype();
  op.output(0, pooled(op, p, "max_pool", Op::Max, t, lowest(t), [](const Expr& e) { return e; }));
}

/// MaxPool with positions: the maximum and the row-major position of its first occurrence inside the channel.
void maximum_with_indices(OpBuilder& op, const Pool& p) {
  const DType t = p.x.dtype();
  const Expr nowhere = highest(DType::I64);
  auto is_nan = [&](const Expr& e) { return is_float(t) ? apply(Op::IsNan, {e}) : make_int(DType::Bool, 0); };
  const std::vector<Tensor> found = op.reduce_tuple(
      "max_pool", {t, DType::I64}, p.dims(), p.window.kernel,
      [&](const Exprs& i, const Exprs& r) {
        const Exprs at = p.window.positions(p.layout.spatial(i), r);
        const Expr inside = p.window.in_range(at);
        return Exprs{select(inside, p.x(p.layout.at(i[0], p.layout.channel(i), at)), lowest(t)),
                     select(inside, linear_index(at, p.window.in), nowhere)};
      },
      {lowest(t), nowhere},
      [&](const Exprs& a, const Exprs& b) {
        const Expr same = eq(a[0], b[0]) || (is_nan(a[0]) && is_nan(b[0]));
        const Expr better = b[0] > a[0] || (is_nan(b[0]) && logical_not(is_nan(a[0])));
        const Expr take = (same && b[1] < a[1]) || (better && logical_not(same));
        return Exprs{select(take, b[0], a[0]), select(take, b[1], a[1])};
      });
  op.output(0, found[0]);
  const bool column_major = op.attr_int("storage_order", 0) != 0;
  op.output(1, op.compute(
                   "indices", DType::I64, p.dims(),
                   [&](const Exprs& i) {
                     Expr at = found[1](i);
                     if (column_major) {
                       const Exprs s = delinearize(at, p.window.in);
                       at = s.back();
                       for (size_t d = s.size() - 1; d-- > 0;) at = at * p.window.in[d] + s[d];
                     }
                     return (i[0] * p.channels + p.layout.channel(i)) * num_elements(p.window.in) + at;
                   },
                   p.names()));
}

}  // namespace

void define_max_pool(OpBuilder& op) {
  const Pool p = read_pool(op, op.in(0), layout_of(op));
  if (op.wants(1))
    maximum_with_indices(op, p);
  else
    maximum(op, p);
}

Tensor average_pool(OpBuilder& op, const Tensor& x, const Layout& layout, bool global) {
  if (global) return average(op, read_global(op, x, layout), false);
  return average(op, read_pool(op, x, layout), op.attr_int("count_include_pad", 0) != 0);
}

void define_average_pool(OpBuilder& op) { op.output(0, average_pool(op, op.in(0), layout_of(op), false)); }
void define_lp_pool(OpBuilder& op) { lp_norm(op, read_pool(op, op.in(0), layout_of(op))); }
void define_global_average_pool(OpBuilder& op) { op.output(0, average_pool(op, op.in(0), layout_of(op), true)); }
void define_global_max_pool(OpBuilder& op) { maximum(op, read_global(op, op.in(0), layout_of(op))); }
void define_global_lp_pool(OpBuilder& op) { lp_norm(op, read_global(op, op.in(0), layout_of(op))); }

}  // namespace tc
