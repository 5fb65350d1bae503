// Positions and weights of one axis of a Resize. Positions that follow floor((o * p + r) / q) are written so; weights
// that repeat with a short period become constants; all others come from small tables that stages of their own fill.
#include <cmath>
#include <limits>

#include "ir/ops/numeric.h"
#include "ir/ops/resize.h"

namespace tc {
namespace {

constexpr int64_t kLongestPeriod = 4;
/// Longer axes are not searched for closed forms.
constexpr int64_t kLongestTable = 1 << 16;

/// A position this near to the middle between two elements is there: a scale is rounded, and ONNX Runtime prefers in the same
/// way.
constexpr double kTie = 1e-6;

Expr f64(double v) { return make_float(DType::F64, v); }

int64_t nearest_position(const std::string& mode, double x) {
  const double low = std::floor(x), rest = x - low;
  if (mode == "floor") return int64_t(low);
  if (mode == "ceil") return int64_t(std::ceil(x));
  return int64_t(low) + (mode == "round_prefer_ceil" ? rest >= 0.5 - kTie : rest > 0.5 + kTie);
}

Expr nearest_position(const std::string& mode, const Expr& x) {
  const Expr low = apply(Op::Floor, {x});
  if (mode == "floor") return cast(DType::I64, low);
  if (mode == "ceil") return cast(DType::I64, apply(Op::Ceil, {x}));
  auto half = [&](double tie) { return make_float(x->dtype, 0.5 + tie); };
  const Expr up = mode == "round_prefer_ceil" ? x - low >= half(-kTie) : x - low > half(kTie);
  return cast(DType::I64, low) + select(up, Expr(1), Expr(0));
}

/// How this axis rounds; null: that depends on a scale which comes at run time.
const char* rounding(const ResizeAxis& a, const ResizeRules& rules) {
  if (rules.nearest != kFloorOrCeil) return rules.nearest.c_str();
  if (a.run_time_scale) return nullptr;
  return a.scale < 1 ? "ceil" : "floor";
}

Expr nearest_position(const ResizeAxis& a, const ResizeRules& rules, const Expr& x) {
  if (const char* mode = rounding(a, rules)) return nearest_position(mode, x);
  return select(a.run_time_scale < f64(1), nearest_position("ceil", x), nearest_position("floor", x));
}

/// The interpolation kernel at distance t: a triangle, or Keys' cubic.
double kernel(const ResizeRules& rules, double t) {
  const double x = std::abs(t), a = rules.cubic_a;
  if (rules.mode == ResizeMode::Linear) return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

Expr kernel(const ResizeRules& rules, const Expr& t) {
  const Expr x = abs(t);
  const double a = rules.cubic_a;
  if (rules.mode == ResizeMode::Linear) return max(f64(0), f64(1) - x);
  const Expr inner = (f64(a + 2) * x - f64(a + 3)) * x * x + f64(1);
  const Expr outer = ((f64(a) * x - f64(5 * a)) * x + f64(8 * a)) * x - f64(4 * a);
  return select(x <= f64(1), inner, select(x < f64(2), outer, f64(0)));
}

struct Support {
  double scale = 1;     // of distances
  Expr run_time_scale;  // replaces it where it is not known at compile time
  int64_t before = 0;   // the first tap is floor(x) - before
  int64_t taps = 2;
};

Support support(const ResizeAxis& a, const ResizeRules& rules) {
  const int64_t radius = rules.mode == ResizeMode::Linear ? 1 : 2;
  Support s;
  s.scale = rules.antialias ? std::min(a.scale, 1.0) : 1.0;
  if (a.run_time_scale) s.run_time_scale = rules.antialias ? min(a.run_time_scale, f64(1)) : f64(1);
  s.before = -(int64_t(std::floor(-double(radius) / s.scale)) + 1);
  s.taps = 2 * (s.before + 1);
  return s;
}

/// Weights of every output position, row by row; the same formula as weight_stage().
std::vector<double> weight_table(const ResizeAxis& a, const ResizeRules& rules, const Support& s) {
  std::vector<double> w;
  for (int64_t o = 0; o < a.out; o++) {
    const double x = a.source.at(o);
    const int64_t first = int64_t(std::floor(x)) - s.before;
    double sum = 0;
    for (int64_t r = 0; r < s.taps; r++) {
      const bool outside = rules.exclude_outside && (first + r < 0 || first + r >= a.in);
      w.push_back(outside ? 0 : kernel(rules, (double(first + r) - x) * s.scale));
      sum += w.back();
    }
    if ((rules.antialias || rules.exclude_outside) && sum != 0)
      for (int64_t r = 0; r < s.taps; r++) w[w.size() - 1 - size_t(r)] /= sum;
  }
  return w;
}

Tensor weight_stage(OpBuilder& op, const ResizeAxis& a, const ResizeRules& rules, const Support& s, DType t,
                    const std::function<Expr(const Expr&)>& first, const std::string& name) {
  const std::vector<std::string> names = {"o" + name, "k" + name};
  const Expr scale = s.run_time_scale ? s.run_time_scale : f64(s.scale);
  auto raw = [&](const Exprs& i) {
    const Expr at = first(i[0]) + i[1];
    const Expr v = kernel(rules, (cast(DType::F64, at) - a.source.at(i[0])) * scale);
    return rules.exclude_outside ? select(at >= 0 && at < (a.in_size ? a.in_size : Expr(a.in)), v, f64(0)) : v;
  };
  if (!rules.antialias && !rules.exclude_outside)
    return op.compute(
        "weight_" + name, t, {a.out, s.taps}, [&](const Exprs& i) { return cast(t, raw(i)); }, names);
  const Tensor kernel_values = op.compute("kernel_" + name, DType::F64, {a.out, s.taps}, raw, names);
  const Tensor sum = op.reduce(
      "kernel_sum_" + name, Op::Add, DType::F64, {a.out}, {s.taps},
      [&](const Exprs& i, const Exprs& r) {
        return kernel_values({i[0], r[0]});
      },
      names);
  return op.compute(
      "weight_" + name, t, {a.out, s.taps},
      [&](const Exprs& i) {
        const Expr total = sum({i[0]});
        return cast(t, kernel_values(i) / select(eq(total, f64(0)), f64(1), total));
      },
      names);
}

/// The shortest period after which all weights, rounded to t, repeat; 0 if it is longer than kLongestPeriod.
int64_t period_of(const std::vector<double>& w, int64_t taps, DType t) {
  auto same = [t](double x, double y) { return t == DType::F64 ? x == y : float(x) == float(y); };
  const int64_t n = int64_t(w.size());
  for (int64_t p = 1; p <= kLongestPeriod; p++) {
    bool repeats = true;
    for (int64_t k = p * taps; repeats && k < n; k++) repeats = same(w[size_t(k)], w[size_t(k - p * taps)]);
    if (repeats) return p;
  }
  return 0;
}

/// choice(0) if at == 0, choice(1) if at == 1, ...
Expr choose(const Expr& at, int64_t count, const std::function<Expr(int64_t)>& choice) {
  if (const auto c = as_const_int(at)) return choice(*c);
  Expr e = choice(count - 1);
  for (int64_t k = count - 1; k-- > 0;) e = select(eq(at, k), choice(k), e);
  return e;
}

}  // namespace

Expr Coordinate::at(const Expr& o, DType t) const {
  auto number = [t](const Expr& run_time, double known) { return run_time ? cast(t, run_time) : make_float(t, known); };
  Expr x = cast(t, o);
  if (pre != 0) x = x + make_float(t, pre);
  if (bool(mul_expr) || mul != 1) x = x * number(mul_expr, mul);
  if (bool(div_expr) || div != 1) x = x / number(div_expr, div);
  if (bool(post_expr) || post != 0) x = x + number(post_expr, post);
  return x;
}

std::optional<FloorForm> fit_floor_form(const std::vector<int64_t>& table, double slope) {
  const int64_t n = int64_t(table.size());
  // Convergents of the continued fraction of the slope.
  int64_t p0 = 1, q0 = 0, p1 = 0, q1 = 1;
  double x = slope;
  for (int step = 0; step < 24; step++) {
    if (!(x >= 0 && x < 1e6)) return std::nullopt;
    const int64_t whole = int64_t(std::floor(x));
    if (step == 0)
      p1 = whole, q1 = 1;
    else {
      const int64_t p2 = whole * p1 + p0, q2 = whole * q1 + q0;
      p0 = p1, q0 = q1, p1 = p2, q1 = q2;
    }
    if (q1 > 4096 || p1 > (int64_t(1) << 20)) return std::nullopt;
    int64_t least = INT64_MIN, most = INT64_MAX;
    for (int64_t o = 0; o < n; o++) {
      least = std::max(least, table[size_t(o)] * q1 - o * p1);
      most = std::min(most, table[size_t(o)] * q1 + q1 - 1 - o * p1);
    }
    if (least <= most) return FloorForm{p1, std::clamp<int64_t>(0, least, most), q1};
    const double rest = x - double(whole);
    if (rest < 1e-9) return std::nullopt;
    x = 1 / rest;
  }
  return std::nullopt;
}

Expr AxisTaps::clamped(const Expr& at, const ResizeAxis& a) const {
  Expr e = at;
  if (lowest < 0) e = max(e, Expr(0));
  if (bool(a.in_size) || highest >= a.in) e = min(e, a.last());
  return e;
}

AxisTaps axis_taps(OpBuilder& op, const ResizeAxis& a, const ResizeRules& rules, DType t, const std::string& name) {
  const bool nearest = rules.mode == ResizeMode::Nearest;
  const Support s = nearest ? Support{1, {}, 0, 1} : support(a, rules);
  AxisTaps taps;
  taps.taps = s.taps;
  taps.lowest = INT64_MIN;
  taps.highest = INT64_MAX;
  std::optional<FloorForm> form;
  const bool examined = a.source.is_constant() && a.out <= kLongestTable;
  if (examined) {
    std::vector<int64_t> table;
    for (int64_t o = 0; o < a.out; o++) {
      const double exact = a.source.at(o);
      const double x = !nearest ? exact : a.source.rounded_last ? double(float(exact)) : double(a.source.at<float>(o));
      // Positions far outside only occur where extrapolation replaces the value.
      if (!(std::abs(x) < 1e15)) op.reject("a position of the resized tensor is not finite");
      table.push_back(nearest ? nearest_position(rounding(a, rules), x) : int64_t(std::floor(x)) - s.before);
    }
    taps.lowest = table.empty() ? 0 : *std::min_element(table.begin(), table.end());
    taps.highest = table.empty() ? 0 : *std::max_element(table.begin(), table.end()) + s.taps - 1;
    form = fit_floor_form(table, a.source.mul / a.source.div);
  }
  if (form) {
    taps.first = [f = *form](const Expr& o) { return floor_div(o * f.p + f.r, Expr(f.q)); };
  } else {
    const Tensor table = op.compute("position_" + name, DType::I64, {a.out},
                                    [&](const Exprs& i) {
                                      const bool single = nearest && !a.source.rounded_last;
                                      const Expr at = a.source.at(i[0], single ? DType::F32 : DType::F64);
                                      const Expr x = nearest ? cast(DType::F32, at) : at;
                                      return nearest ? nearest_position(a, rules, x)
                                                     : cast(DType::I64, apply(Op::Floor, {x})) - s.before;
                                    },
                                    {"o" + name});
    taps.first = [table](const Expr& o) { return table({o}); };
  }
  if (nearest) return taps;
  if (examined && s.taps <= 4 && !(bool(a.in_size) && rules.exclude_outside)) {
    const std::vector<double> w = weight_table(a, rules, s);
    if (const int64_t period = period_of(w, s.taps, t); period > 0) {
      taps.weight = [w, period, n = s.taps, t](const Expr& o, const Expr& tap) {
        return choose(floor_mod(o, Expr(period)), period, [&](int64_t phase) {
          return choose(tap, n, [&](int64_t r) { return make_const(t, w[size_t(phase * n + r)]); });
        });
      };
      return taps;
    }
  }
  const Tensor w = weight_stage(op, a, rules, s, t, taps.first, name);
  taps.weight = [w](const Expr& o, const Expr& tap) { return w({o, tap}); };
  return taps;
}

}  // namespace tc
