// One axis of a Resize: where an output position lies in the input, and which elements it blends with which weights.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/ops/op.h"

namespace tc {

/// The source coordinate of output o is (o + pre) * mul / div + post. It is computed in f64, but for the nearest element
/// in f32, as frameworks do: where it should fall on a whole number or half of one, the last bit decides.
struct Coordinate {
  double pre = 0, mul = 1, div = 1, post = 0;
  Expr mul_expr, div_expr, post_expr;  // replace mul, div and post when they are not known at compile time
  bool rounded_last = false;           // the nearest element's, too, is computed in f64, and the result rounded to f32
  bool is_constant() const { return !mul_expr && !div_expr && !post_expr; }
  template <class T = double>
  T at(int64_t o) const {
    return (T(o) + T(pre)) * T(mul) / T(div) + T(post);
  }
  Expr at(const Expr& o, DType t = DType::F64) const;
};

enum class ResizeMode { Nearest, Linear, Cubic };

struct ResizeAxis {
  int axis = 0;
  int64_t in = 0, out = 0;
  double scale = 1;        // where run_time_scale is set: a lower bound of it
  Expr run_time_scale;     // F64; null where the scale is known at compile time
  Expr in_size, out_size;  // I64, one at least: how many there are of `in` and `out`; null: all
  Coordinate source;
  bool identity = false;
  /// The position of the last element.
  Expr last() const { return in_size ? in_size - Expr(1) : Expr(in - 1); }
};

/// Resize of operator set 10: the next element where an axis shrinks, the one before where it grows. The standard does
/// not say; this is what ONNX Runtime does.
inline constexpr const char* kFloorOrCeil = "floor_or_ceil";

struct ResizeRules {
  ResizeMode mode = ResizeMode::Nearest;
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false;
  bool extrapolate = false;  // positions outside of the input give extrapolation_value
  double extrapolation_value = 0;
};

/// floor((o * p + r) / q) for every o of a table, found by fitting.
struct FloorForm {
  int64_t p = 1, r = 0, q = 1;
};
/// The form with a small slope denominator that gives exactly `table`; `slope` is the wanted p / q.
std::optional<FloorForm> fit_floor_form(const std::vector<int64_t>& table, double slope);

/// What one output position reads: elements first .. first + taps - 1 (clamped to the input by the reader).
struct AxisTaps {
  int64_t taps = 1;
  std::function<Expr(const Expr& o)> first;                    // I64, not clamped
  std::function<Expr(const Expr& o, const Expr& tap)> weight;  // of type `t`; null for nearest
  Expr clamped(const Expr& at, const ResizeAxis& a) const;
  int64_t lowest = 0, highest = 0;  // range of what `first` gives, plus the taps
};
/// May add small stages (tables of positions and weights) where no closed form fits.
AxisTaps axis_taps(OpBuilder& op, const ResizeAxis& a, const ResizeRules& rules, DType t, const std::string& name);

}  // namespace tc
