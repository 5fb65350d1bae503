// GridSample and AffineGrid: reading an image at positions that a tensor gives.
#include <algorithm>

#include "ir/ops/counted_sizes.h"
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"
#include "ir/ops/window.h"

namespace tc {
namespace {

enum class Padding { Zeros, Border, Reflection };

struct Sampler {
  Tensor x;
  Dims in;  // spatial sizes
  DType t;  // of coordinates and sums
  Padding padding = Padding::Zeros;
  bool align_corners = false;
  Exprs counts;  // I64: how many there are of `in`; null: all

  Expr c(double v) const { return make_const(t, v); }
  double low(size_t) const { return align_corners ? 0 : -0.5; }
  /// As many elements as there are, and `more`.
  Expr size(size_t d, double more) const { return counts[d] ? cast(t, counts[d]) + c(more) : c(double(in[d]) + more); }
  Expr high(size_t d) const { return size(d, align_corners ? -1 : -0.5); }

  /// Mirrors a coordinate at the borders until it lies between them.
  Expr reflect(size_t d, const Expr& v) const {
    const double from = low(d);
    if (!counts[d] && align_corners && in[d] == 1) return c(from);
    // An image of one element has no distance between its corners.
    const Expr whole = size(d, align_corners ? -1 : 0), range = counts[d] ? max(whole, c(1)) : whole;
    const Expr distance = abs(v - c(from)), reflections = apply(Op::Floor, {distance / range});
    const Expr rest = distance - reflections * range;
    const Expr half = reflections / c(2);
    const Expr mirrored = select(eq(apply(Op::Floor, {half}), half), c(from) + rest, high(d) - rest);
    return bool(counts[d]) && align_corners ? select(counts[d] > 1, mirrored, c(from)) : mirrored;
  }

  /// [-1, 1] to pixels, moved into the image as the padding mode asks.
  /// Cubic interpolation repeats the border pixel by pixel (element()), as PyTorch and ONNX Runtime do: a point outside
  /// still lies between the pixels that it weighs.
  Expr pixel_coordinate(size_t d, const Expr& normalized, bool nearest, bool cubic) const {
    Expr v =
        align_corners ? (normalized + c(1)) / c(2) * size(d, -1) : ((normalized + c(1)) * size(d, 0) - c(1)) / c(2);
    if (nearest) v = apply(Op::Round, {v});
    if (padding == Padding::Border && !cubic) {
      const Expr outside = v < c(low(d)) || v > high(d);
      v = select(outside, min(max(v, c(0)), size(d, -1)), v);
    } else if (padding == Padding::Reflection) {
      v = select(v < c(low(d)) || v > high(d), reflect(d, v), v);
    } else {
      // Far outside everything is zero, or the border; the bound keeps the integer cast defined.
      v = min(max(v, c(-4)), size(d, 4));
    }
    return select(apply(Op::IsNan, {v}), c(-4), v);
  }

  /// The element at integer positions (as numbers of type t), which may lie outside.
  Expr element(const Exprs& leading, const Exprs& at) const {
    Exprs index = leading;
    Expr inside = make_int(DType::Bool, 1);
    for (size_t d = 0; d < at.size(); d++) {
      Expr p = cast(DType::I64, at[d]);
      const Expr n = counts[d] ? counts[d] : Expr(in[d]), last = counts[d] ? n - Expr(1) : Expr(in[d] - 1);
      if (padding == Padding::Zeros) {
        inside = inside && p >= 0 && p < n;
      } else {
        if (padding == Padding::Reflection) {
          // The cast of a reflected half-integer border rounds toward zero.
          const Expr mirrored = cast(DType::I64, reflect(d, at[d]));
          p = select(at[d] < c(low(d)) || at[d] > high(d), mirrored, p);
        }
        p = min(max(p, Expr(0)), last);
      }
      index.push_back(p);
    }
    return select(inside, cast(t, x(index)), c(0));
  }

  std::vector<Expr> weights(const Expr& f, bool cubic) const {
    if (!cubic) return {c(1) - f, f};
    const double a = -0.75;
    auto outer = [&](const Expr& v) { return ((c(a) * v - c(5 * a)) * v + c(8 * a)) * v - c(4 * a); };
    auto inner = [&](const Expr& v) { return (c(a + 2) * v - c(a + 3)) * v * v + c(1); };
    return {outer(f + c(1)), inner(f), inner(c(1) - f), outer(c(2) - f)};
  }

  /// Interpolates axis by axis, the last innermost.
  Expr interpolate(const Exprs& leading, const Exprs& at, bool cubic, Exprs& chosen) const {
    const size_t d = chosen.size();
    if (d == at.size()) return element(leading, chosen);
    const Expr base = apply(Op::Floor, {at[d]});
    const std::vector<Expr> w = weights(at[d] - base, cubic);
    Expr sum;
    for (size_t k = 0; k < w.size(); k++) {
      const double shift = double(k) - (cubic ? 1 : 0);
      chosen.push_back(shift == 0 ? base : base + c(shift));
      const Expr term = w[k] * interpolate(leading, at, cubic, chosen);
      chosen.pop_back();
      sum = sum ? sum + term : term;
    }
    return sum;
  }
};

}  // namespace

void define_grid_sample(OpBuilder& op) {
  const Tensor x = op.in(0), grid = op.in(1);
  const Dims dx = x.dims(), dg = grid.dims();
  if (dx.size() < 3 || dg.size() != dx.size() || dg[0] != dx[0] || dg.back() != int64_t(dx.size()) - 2)
    op.reject("the grid must have the shape [N, output sizes..., number of spatial axes]", 1);
  if (is_complex(x.dtype()) || x.dtype() == DType::String) op.unsupported("sampling tensors of this type", 0);
  const std::string mode = op.attr_string("mode", "linear"), padding = op.attr_string("padding_mode", "zeros");
  const bool nearest = mode == "nearest", cubic = mode == "cubic" || mode == "bicubic";
  if (!nearest && !cubic && mode != "linear" && mode != "bilinear") op.reject("mode must be nearest, linear or cubic");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    op.reject("padding_mode must be zeros, border or reflection");
  const DType t = x.dtype() == DType::F64 || grid.dtype() == DType::F64 ? DType::F64 : DType::F32;
  Sampler s{x,
            Dims(dx.begin() + 2, dx.end()),
            t,
            padding == "zeros"    ? Padding::Zeros
            : padding == "border" ? Padding::Border
                                  : Padding::Reflection,
            op.attr_int("align_corners", 0) != 0,
            Exprs(dx.size() - 2)};
  int operand = kGridSampleCounts;
  for (const int64_t axis : op.attr_ints(std::string(kCountedAxes)))
    s.counts[size_t(std::max(2, op.axis(axis, x.rank()))) - 2] = counted_size(op, operand++);
  for (int64_t d : s.in)
    if (d == 0) op.reject("an empty image cannot be sampled", 0);
  const size_t rank = s.in.size();
  if (rank > (cubic ? 3 : 5)) op.unsupported("sampling over so many spatial axes", 0);
  const Dims out_spatial(dg.begin() + 1, dg.end() - 1);
  Dims coordinate_dims = {dx[0]}, out = {dx[0], dx[1]};
  coordinate_dims.insert(coordinate_dims.end(), out_spatial.begin(), out_spatial.end());
  out.insert(out.end(), out_spatial.begin(), out_spatial.end());
  std::vector<std::string> names = {"n"};
  for (std::string& n : spatial_names("o", rank)) names.push_back(std::move(n));
  std::vector<Tensor> coordinates;  // one per spatial axis of the image; the grid lists them from the last to the first
  for (size_t d = 0; d < rank; d++)
    coordinates.push_back(op.compute(
        "at_" + spatial_names("", rank)[d], t, coordinate_dims,
        [&](const Exprs& i) {
          Exprs gi = i;
          gi.push_back(int64_t(rank - 1 - d));
          return s.pixel_coordinate(d, cast(t, grid(gi)), nearest, cubic);
        },
        names));
  names.insert(names.begin() + 1, "c");
  op.output(0,
            op.compute(
                "grid_sample", x.dtype(), out,
                [&](const Exprs& i) {
                  Exprs ci = {i[0]}, at, chosen;
                  ci.insert(ci.end(), i.begin() + 2, i.end());
                  for (const Tensor& c : coordinates) at.push_back(c(ci));
                  const Expr v = nearest ? s.element({i[0], i[1]}, at) : s.interpolate({i[0], i[1]}, at, cubic, chosen);
                  return cast(x.dtype(), v);
                },
                names));
}

/// [N, C, spatial sizes...] from the declared shape [N, spatial sizes..., axes]; C plays no part.
std::vector<int64_t> declared_grid_size(const OpBuilder& op) {
  const Dims grid = op.declared_dims(0, 1);
  if (grid.size() < 3) op.reject("the declared shape must be [N, spatial sizes..., axes]", 1);
  std::vector<int64_t> size = {grid[0], 1};
  size.insert(size.end(), grid.begin() + 1, grid.end() - 1);
  return size;
}

void define_affine_grid(OpBuilder& op) {
  const Tensor theta = op.in(0);
  const std::vector<int64_t> size = op.known(1) ? op.const_ints(1) : declared_grid_size(op);
  if (size.size() < 3) op.reject("size must be [N, C, spatial sizes...]", 1);
  const size_t rank = size.size() - 2;
  if (theta.dims() != Dims{size[0], int64_t(rank), int64_t(rank) + 1})
    op.reject("theta must have the shape [N, spatial axes, spatial axes + 1]", 0);
  for (int64_t d : size)
    if (d < 1) op.reject("sizes must be positive", 1);
  const bool align = op.attr_int("align_corners", 0) != 0;
  const DType t = theta.dtype(), wide = compute_type(t);
  Dims out = {size[0]};
  out.insert(out.end(), size.begin() + 2, size.end());
  out.push_back(int64_t(rank));
  // The position of output pixel o of an axis of n pixels, in [-1, 1].
  auto normalized = [&](const Expr& o, int64_t n) {
    const Expr v = cast(wide, o);
    if (align) return n == 1 ? make_const(wide, 0) : v * make_const(wide, 2.0 / double(n - 1)) - make_const(wide, 1);
    return (v * make_const(wide, 2) + make_const(wide, 1)) / make_const(wide, double(n)) - make_const(wide, 1);
  };
  std::vector<std::string> names = {"n"};
  for (std::string& s : spatial_names("o", rank)) names.push_back(std::move(s));
  names.push_back("axis");
  op.output(0, op.compute(
                   "affine_grid", t, out,
                   [&](const Exprs& i) {
                     const Expr axis = i.back();
                     Expr sum;
                     for (size_t d = 0; d < rank; d++) {  // x comes first: the last spatial axis
                       const Expr p = normalized(i[rank - d], size[2 + rank - 1 - d]);
                       const Expr term = widen(theta({i[0], axis, int64_t(d)})) * p;
                       sum = sum ? sum + term : term;
                     }
                     return cast(t, sum + widen(theta({i[0], axis, int64_t(rank)})));
                   },
                   names));
}

}  // namespace tc
