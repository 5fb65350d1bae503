// Resize and Upsample. Nearest is one gather over all axes; linear and cubic are separable, so every resized axis is a
// stage of its own: y[.., o, ..] = sum over taps of weight(o, tap) * x[.., position(o) + tap, ..].
#include "ir/ops/resize.h"

#include <algorithm>
#include <cmath>

#include "ir/open_size.h"
#include "ir/ops/counted_sizes.h"
#include "ir/ops/numeric.h"
#include "ir/ops/spatial.h"
#include "ir/ops/window.h"

namespace tc {
namespace {

struct Plan {
  std::vector<ResizeAxis> axes;  // one per axis of the input
  ResizeRules rules;
  Dims out;
};

std::vector<double> doubles(const OpBuilder& op, int i) {
  const Constant c = op.constant(i);
  std::vector<double> v;
  for (int64_t k = 0; k < c->size(); k++) v.push_back(c->as_double(k));
  return v;
}

Expr f64(double v) { return make_float(DType::F64, v); }

[[noreturn]] void reject_mode(const OpBuilder& op, const std::string& mode) {
  op.reject("coordinate_transformation_mode \"" + printable(mode) + "\" is none of ONNX's");
}

bool given(OpBuilder& op, int i) { return op.has(i) && !has_no_elements(op.in(i).dims()); }

std::string axis_label(const ResizeAxis& a, size_t rank) {
  if (rank < 3 || rank > 5 || a.axis < 2) return to_text(int64_t(a.axis));
  return spatial_names("", rank - 2)[size_t(a.axis) - 2];
}

/// The sizes that the model declares, for parameters (operand `input`) that come at run time.
void take_declared(OpBuilder& op, std::vector<ResizeAxis>& axes, const std::vector<int>& which, int input) {
  const Dims declared = op.declared_dims(0, input);
  bool fits = declared.size() == axes.size();
  for (size_t k = 0; fits && k < axes.size(); k++) {
    const bool resized = std::count(which.begin(), which.end(), int(k)) > 0;
    fits = resized || declared[k] == axes[k].in;
    axes[k].out = declared[k];
  }
  if (!fits) op.reject("the declared shape does not fit the input", input);
}

/// A scale that is read at run time. It has to give the declared size, floor(scale * in + rounding); run() returns
/// E_RANGE where it does not. So it is at least a.scale, which bounds how many elements an antialiasing filter reads.
void set_run_time_scale(OpBuilder& op, ResizeAxis& a, size_t rank, const Expr& scale, double rounding, int input) {
  if (a.in == 0 || a.in > INT32_MAX || a.out > INT32_MAX)
    op.reject("a size must lie in 0..2^31-1, and the input must not be empty", input);
  if (a.out == 0) return;  // nothing is read
  a.scale = (double(a.out) - rounding) / double(a.in);
  const Expr product = cast(DType::F64, cast(DType::F32, scale) * make_float(DType::F32, double(a.in)));
  const Expr size = apply(Op::Floor, {product + f64(rounding)});
  const Expr otherwise = out_of_range(DType::F64) + f64(a.scale);
  const Tensor checked = op.compute("scale_" + axis_label(a, rank), DType::F64, {}, [&](const Exprs&) {
    return select(eq(size, f64(double(a.out))), scale, otherwise);
  });
  a.run_time_scale = checked({});
}

void size_by_scales(OpBuilder& op, std::vector<ResizeAxis>& axes, const std::vector<int>& which, int input) {
  const Tensor scales = op.in(input);
  if (scales.dims() != Dims{int64_t(which.size())}) op.reject("scales must have one value per resized axis", input);
  if (!op.known(input)) {
    take_declared(op, axes, which, input);
    for (size_t k = 0; k < which.size(); k++)
      set_run_time_scale(op, axes[size_t(which[k])], axes.size(), cast(DType::F64, scales({int64_t(k)})), 0, input);
    return;
  }
  const std::vector<double> known = doubles(op, input);
  for (size_t k = 0; k < which.size(); k++) {
    ResizeAxis& a = axes[size_t(which[k])];
    a.scale = known[k];
    if (a.scale == 1) {  // exact, of sizes that no float has, too
      a.out = a.in;
      continue;
    }
    if (is_open(a.in)) {
      if (!(a.scale >= 1) || a.scale != std::floor(a.scale) || a.scale > 1e6)
        op.unsupported("along a size without an upper bound a scale must be a whole number: give the size a bound",
                       input);
      a.out = checked_mul(a.in, int64_t(a.scale));
      continue;
    }
    if (!(a.scale > 0) || a.scale * double(a.in) > 2e9)
      op.reject("a scale must be positive and give a size below 2^31", input);
    // The product is one in f32, as in ONNX's shape inference: 30 * 3.3f is 99, though 3.3f is less than 3.3.
    a.out = int64_t(std::floor(float(a.scale) * float(a.in)));
  }
}

/// Run-time sizes under a policy that keeps the aspect ratio: all axes have the scale of the one that decides.
void size_by_run_time_policy(OpBuilder& op, std::vector<ResizeAxis>& axes, const std::vector<int>& which, bool larger) {
  take_declared(op, axes, which, 3);
  Expr scale;
  for (size_t k = 0; k < which.size(); k++) {
    const double in = double(std::max<int64_t>(1, axes[size_t(which[k])].in));
    const Expr s = cast(DType::F64, element(op, 3, int64_t(k))) / f64(in);
    scale = !scale ? s : larger ? max(scale, s) : min(scale, s);
  }
  for (int w : which) set_run_time_scale(op, axes[size_t(w)], axes.size(), scale, 0.5, 3);
}

/// Sets scale and out of the axes listed in `which` from scales or sizes.
void size_axes(OpBuilder& op, std::vector<ResizeAxis>& axes, const std::vector<int>& which, const std::string& policy) {
  const bool by_scale = given(op, 2), by_size = given(op, 3);
  if (by_scale == by_size) op.reject("exactly one of scales and sizes must be given");
  if (by_scale) return size_by_scales(op, axes, which, 2);
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    op.reject("keep_aspect_ratio_policy must be stretch, not_larger or not_smaller");
  if (length_of(op, 3) != int64_t(which.size())) op.reject("sizes must have one value per resized axis", 3);
  if (!op.known(3) && policy != "stretch" && !which.empty())
    return size_by_run_time_policy(op, axes, which, policy == "not_smaller");
  std::vector<int64_t> sizes;
  if (op.known(3)) {
    sizes = op.const_ints(3);
  } else {
    // Sizes that come at run time say nothing beyond the declared ones and are not read.
    take_declared(op, axes, which, 3);
    for (int w : which) sizes.push_back(axes[size_t(w)].out);
  }
  for (size_t k = 0; k < which.size(); k++) {
    ResizeAxis& a = axes[size_t(which[k])];
    const bool stays = sizes[k] == a.in;  // also a size without an upper bound
    if (sizes[k] < 0 || (sizes[k] > INT32_MAX && !stays) || a.in == 0)
      op.reject("a size must lie in 0..2^31-1, and the input must not be empty", 3);
    a.out = sizes[k];
    a.scale = double(a.out) / double(a.in);
  }
  if (policy == "stretch" || which.empty()) return;
  double scale = axes[size_t(which[0])].scale;
  for (int w : which)
    scale = policy == "not_larger" ? std::min(scale, axes[size_t(w)].scale) : std::max(scale, axes[size_t(w)].scale);
  for (int w : which) {
    ResizeAxis& a = axes[size_t(w)];
    a.scale = scale;
    a.out = int64_t(std::round(float(scale) * float(a.in)));  // in single precision, as for scales
  }
}

/// Axes whose numbers of elements are known at run time: sizes that are given have another ratio in each run.
void count_axes(OpBuilder& op, std::vector<ResizeAxis>& axes) {
  int operand = kResizeCounts;
  for (const int64_t k : op.attr_ints(std::string(kCountedAxes))) {
    ResizeAxis& a = axes[size_t(op.axis(k, int(axes.size())))];
    a.in_size = counted_size(op, operand++);
    a.out_size = counted_size(op, operand++);
    if (!given(op, 3)) continue;
    const Tensor scale = op.compute("scale_" + axis_label(a, axes.size()), DType::F64, {}, [&](const Exprs&) {
      return cast(DType::F64, a.out_size) / cast(DType::F64, a.in_size);
    });
    a.run_time_scale = scale({});
  }
}

/// tf_crop_and_resize: the region of interest is [start, end] in units of the axis' length.
void set_crop(OpBuilder& op, ResizeAxis& a, size_t start, size_t end) {
  const bool single = a.out == 1;
  a.source.div = single ? 1 : double(a.out - 1);
  const double last = double(a.in - 1);
  if (const Constant c = op.constant(1)) {
    const double from = c->as_double(int64_t(start)), to = c->as_double(int64_t(end));
    a.source.mul = single ? 0 : (to - from) * last;
    a.source.post = from * last + (single ? (to - from) * last / 2 : 0);
    a.identity = a.identity && from == 0 && to == 1;
    return;
  }
  const Tensor roi = op.in(1);
  const Expr from = cast(DType::F64, roi({int64_t(start)})), to = cast(DType::F64, roi({int64_t(end)}));
  const Expr factor = f64(last);
  a.source.mul_expr = single ? f64(0) : (to - from) * factor;
  a.source.post_expr = single ? from * factor + (to - from) * factor / f64(2) : from * factor;
  a.identity = false;
}

/// Where output positions lie in the input. The length of the resized axis is a whole number, as in the runtimes that
/// models are exported for; ONNX's reference takes scale * in with its fraction for align_corners and
/// tf_crop_and_resize. A scale that comes at run time changes the positions only, for the lengths are declared.
void set_coordinate(OpBuilder& op, ResizeAxis& a, const std::string& mode, bool antialias, size_t roi_start,
                    size_t roi_end) {
  const Expr& scale = a.run_time_scale;
  // An antialiasing filter leaves an axis whose length stays alone. One element stays what it is, whatever the weights.
  a.identity = a.in_size ? false
               : scale   ? a.in == 1 && a.out == 1
                         : a.out == a.in && (antialias || std::abs(a.scale - 1) < 1e-9);
  Coordinate& c = a.source;
  if (mode == "half_pixel" || (mode == "pytorch_half_pixel" && a.out != 1)) {
    c = {0.5, 1, a.scale, -0.5, {}, scale, {}};
    if (mode == "pytorch_half_pixel" && bool(a.out_size)) {  // one element is the first
      const Expr single = eq(a.out_size, Expr(1));
      c.mul_expr = select(single, f64(0), f64(1));
      c.post_expr = select(single, f64(0), f64(-0.5));
    }
  } else if (mode == "pytorch_half_pixel") {
    c = {0, 0, 1, 0, {}, {}, {}};
  } else if (mode == "half_pixel_symmetric") {
    const double length = double(float(a.scale)) * double(a.in);
    c = {0.5, 1, double(float(a.scale)), double(a.in) / 2 * (1 - double(a.out) / length) - 0.5, {}, scale, {}, true};
    if (bool(scale) || bool(a.in_size)) {
      const Expr in = a.in_size ? cast(DType::F64, a.in_size) : f64(double(a.in));
      const Expr out = a.out_size ? cast(DType::F64, a.out_size) : f64(double(a.out));
      if (bool(scale) && bool(a.in_size)) c.div_expr = cast(DType::F64, cast(DType::F32, scale));
      const Expr at_run_time = (scale ? c.div_expr : f64(c.div)) * in;
      c.post_expr = (a.in_size ? in / f64(2) : f64(double(a.in) / 2)) * (f64(1) - out / at_run_time) - f64(0.5);
    }
  } else if (mode == "tf_half_pixel_for_nn") {
    c = {0.5, 1, a.scale, 0, {}, scale, {}};
  } else if (mode == "asymmetric") {
    c = {0, 1, a.scale, 0, {}, scale, {}};
  } else if (mode == "align_corners") {
    c = {0, a.out == 1 ? 0 : double(a.in - 1), a.out == 1 ? 1 : double(a.out - 1), 0, {}, {}, {}};
    if (a.in_size) {
      const Expr steps = a.out_size - Expr(1);
      c.mul_expr = select(steps > 0, cast(DType::F64, a.in_size - Expr(1)), f64(0));
      c.div_expr = cast(DType::F64, max(steps, Expr(1)));
    }
  } else if (mode == "tf_crop_and_resize") {
    if (a.in_size) op.unsupported("a region of an image whose size is known at run time");
    set_crop(op, a, roi_start, roi_end);
  } else {
    reject_mode(op, mode);
  }
}

ResizeMode parse_mode(const OpBuilder& op) {
  const std::string m = op.attr_string("mode", "nearest");
  if (m == "nearest") return ResizeMode::Nearest;
  if (m == "linear" || m == "bilinear") return ResizeMode::Linear;
  if (m == "cubic") return ResizeMode::Cubic;
  op.reject("mode must be nearest, linear or cubic");
}

Plan read_plan(OpBuilder& op) {
  const Tensor x = op.in(0);
  Plan p;
  p.rules.mode = parse_mode(op);
  p.rules.nearest = op.attr_string("nearest_mode", "round_prefer_floor");
  for (const char* known : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", ""})
    if (p.rules.nearest == known)
      break;
    else if (!*known)
      op.reject("nearest_mode must be round_prefer_floor, round_prefer_ceil, floor or ceil");
  p.rules.cubic_a = double(op.attr_float("cubic_coeff_a", -0.75f));
  p.rules.antialias = op.attr_int("antialias", 0) != 0;
  if (p.rules.antialias && p.rules.mode == ResizeMode::Nearest) op.reject("antialias needs mode linear or cubic");
  p.rules.exclude_outside = op.attr_int("exclude_outside", 0) != 0;
  p.rules.extrapolation_value = double(op.attr_float("extrapolation_value", 0));
  for (int k = 0; k < x.rank(); k++) {
    ResizeAxis a;
    a.axis = k;
    a.in = a.out = x.dim(k);
    a.identity = true;
    p.axes.push_back(a);
  }
  std::vector<int> which;
  for (int64_t a : op.attr_ints("axes")) which.push_back(op.axis(a, x.rank()));
  if (which.empty())
    for (int k = 0; k < x.rank(); k++) which.push_back(k);
  for (size_t k = 0; k < which.size(); k++)
    if (std::count(which.begin(), which.end(), which[k]) != 1) op.reject("axes holds an axis twice");
  size_axes(op, p.axes, which, op.attr_string("keep_aspect_ratio_policy", "stretch"));
  count_axes(op, p.axes);
  const std::string mode = op.attr_string("coordinate_transformation_mode", "half_pixel");
  p.rules.extrapolate = mode == "tf_crop_and_resize";
  if (p.rules.extrapolate && (!given(op, 1) || op.in(1).dims() != Dims{2 * int64_t(which.size())}))
    op.reject("tf_crop_and_resize needs a roi with two values per resized axis", 1);
  for (size_t k = 0; k < which.size(); k++)
    set_coordinate(op, p.axes[size_t(which[k])], mode, p.rules.antialias, k, which.size() + k);
  for (const ResizeAxis& a : p.axes) p.out.push_back(a.out);
  return p;
}

std::vector<std::string> axis_names(size_t rank) {
  if (rank < 3 || rank > 5) return {};
  std::vector<std::string> names = {"n", "c"};
  for (std::string& s : spatial_names("o", rank - 2)) names.push_back(std::move(s));
  return names;
}

/// `value` where the source position lies inside of the input, else the extrapolation value.
Expr or_extrapolated(const Plan& p, const ResizeAxis& a, const Expr& o, const Expr& value) {
  if (!p.rules.extrapolate) return value;
  const Expr x = a.source.at(o);
  const Expr inside = x >= f64(0) && x <= f64(double(a.in - 1));
  return select(inside, value, make_const(value->dtype, p.rules.extrapolation_value));
}

Tensor resize_nearest(OpBuilder& op, const Plan& p) {
  const Tensor x = op.in(0);
  std::vector<AxisTaps> taps;
  for (const ResizeAxis& a : p.axes)
    taps.push_back(a.identity ? AxisTaps{} : axis_taps(op, a, p.rules, x.dtype(), axis_label(a, p.axes.size())));
  return op.compute(
      "resize_nearest", x.dtype(), p.out,
      [&](const Exprs& i) {
        Exprs at = i;
        for (size_t k = 0; k < i.size(); k++)
          if (!p.axes[k].identity) at[k] = taps[k].clamped(taps[k].first(i[k]), p.axes[k]);
        Expr v = x(at);
        for (size_t k = 0; k < i.size(); k++)
          if (!p.axes[k].identity) v = or_extrapolated(p, p.axes[k], i[k], v);
        return v;
      },
      axis_names(p.out.size()));
}

Tensor resize_axis(OpBuilder& op, const Plan& p, const ResizeAxis& a, const Tensor& x, DType t) {
  const size_t rank = p.axes.size(), k = size_t(a.axis);
  const AxisTaps taps = axis_taps(op, a, p.rules, t, axis_label(a, rank));
  auto term = [&](const Exprs& i, const Expr& tap) {
    Exprs at = i;
    at[k] = taps.clamped(taps.first(i[k]) + tap, a);
    return cast(t, x(at)) * taps.weight(i[k], tap);
  };
  Dims shape = x.dims();
  shape[k] = a.out;
  const std::string name =
      std::string("resize_") + (p.rules.mode == ResizeMode::Linear ? "linear_" : "cubic_") + axis_label(a, rank);
  if (taps.taps <= 4)
    return op.compute(
        name, t, shape,
        [&](const Exprs& i) {
          Expr sum = term(i, Expr(0));
          for (int64_t tap = 1; tap < taps.taps; tap++) sum = sum + term(i, Expr(tap));
          return or_extrapolated(p, a, i[k], sum);
        },
        axis_names(rank));
  const Tensor sum = op.reduce(
      name, Op::Add, t, shape, {taps.taps}, [&](const Exprs& i, const Exprs& r) { return term(i, r[0]); },
      axis_names(rank));
  if (!p.rules.extrapolate) return sum;
  return op.compute(
      "crop", t, shape, [&](const Exprs& i) { return or_extrapolated(p, a, i[k], sum(i)); }, axis_names(rank));
}

/// The blended value as the result's type: integers round to the nearest and saturate.
Tensor rounded(OpBuilder& op, const Tensor& y, DType t) {
  if (y.dtype() == t || is_float(t)) return convert(op, y, t, "cast");
  const DType wide = y.dtype();
  // 64-bit limits round up to a power of two in f64; the largest double below keeps the cast defined.
  const double low = double(*as_const_int(lowest(t)));
  const double high = info(t).bits == 64 ? (is_signed_int(t) ? 9223372036854774784.0 : 18446744073709549568.0)
                                         : double(*as_const_int(highest(t)));
  return op.compute("y", t, y.dims(), [&](const Exprs& i) {
    return cast(t, min(max(apply(Op::Round, {y(i)}), make_const(wide, low)), make_const(wide, high)));
  });
}

Dims result_dims(OpBuilder& op, const Plan& p) {
  Dims d = op.in(0).dims();
  for (const ResizeAxis& a : p.axes) d[size_t(a.axis)] = a.out;
  return d;
}

void resize(OpBuilder& op, const Plan& p) {
  const Tensor x = op.in(0);
  if (is_complex(x.dtype()) || x.dtype() == DType::String) op.unsupported("resizing tensors of this type", 0);
  for (const ResizeAxis& a : p.axes)
    if (a.in == 0 && a.out != 0) op.reject("an empty axis cannot be resized", 0);
  if (const Dims all = result_dims(op, p); has_no_elements(all))  // no position has a tap or a weight
    return op.output(0, op.compute("resize", x.dtype(), all, [&](const Exprs&) { return zero(x.dtype()); }));
  if (p.rules.mode == ResizeMode::Nearest) return op.output(0, resize_nearest(op, p));
  const DType t = is_float(x.dtype()) ? compute_type(x.dtype()) : info(x.dtype()).bits >= 32 ? DType::F64 : DType::F32;
  Tensor y = x;
  bool copied = false;
  for (const ResizeAxis& a : p.axes)
    if (!a.identity) y = resize_axis(op, p, a, y, t), copied = true;
  op.output(0, copied ? rounded(op, y, x.dtype()) : x);
}

}  // namespace

void define_resize(OpBuilder& op) { resize(op, read_plan(op)); }

void define_upsample(OpBuilder& op) {
  const Tensor x = op.in(0);
  Plan p;
  p.rules.mode = parse_mode(op);
  p.rules.nearest = kFloorOrCeil;
  std::vector<int> which;
  for (int k = 0; k < x.rank(); k++) {
    ResizeAxis a;
    a.axis = k;
    a.in = x.dim(k);
    p.axes.push_back(a);
    which.push_back(k);
  }
  size_by_scales(op, p.axes, which, 1);
  for (ResizeAxis& a : p.axes) {
    set_coordinate(op, a, "asymmetric", false, 0, 0);
    p.out.push_back(a.out);
  }
  resize(op, p);
}

}  // namespace tc
