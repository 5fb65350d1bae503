// Signal processing: windows, mel filters, Fourier transforms. Everything is computed in f64: the transforms' sums
// cancel, and single precision would show. Transforms of moderate length become products before (fourier.cc).
#include <algorithm>
#include <limits>

#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

constexpr double kTau = 6.283185307179586476925;

Expr f64(double v) { return make_float(DType::F64, v); }
Expr f64(Expr e) { return cast(DType::F64, std::move(e)); }
Expr cosine(Expr e) { return apply(Op::Cos, {std::move(e)}); }
Expr sine(Expr e) { return apply(Op::Sin, {std::move(e)}); }

DType output_type(OpBuilder& b) {
  const int64_t t = b.attr_int("output_datatype");
  if (t <= 0 || t > int64_t(DType::I2) || (!is_float(DType(t)) && !is_int(DType(t))))
    b.reject("attribute output_datatype names no numeric type");
  return static_cast<DType>(t);
}

/// A size that is known only at run time must be what the model declares.
int64_t declared_size(OpBuilder& b) {
  const Dims dims = b.declared_dims(0, 0);
  if (dims.size() != 1) b.reject("the result has one axis");
  return dims[0];
}

/// a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n); n is the size, or one less for a symmetric window: of one element, NaN.
Define window(double a0, double a1, double a2) {
  return [=](OpBuilder& b) {
    const int64_t size = b.known(0) ? b.const_int(0) : declared_size(b);
    const int64_t n = b.attr_int("periodic") != 0 ? size : size - 1;
    const Expr step = f64(n > 0 ? kTau / double(n) : std::numeric_limits<double>::quiet_NaN());
    const DType t = output_type(b);
    b.output(0, b.compute(stage_label(b), t, {size}, [&](const Exprs& i) {
      const Expr angle = f64(i[0]) * step;
      Expr w = f64(a0) - f64(a1) * cosine(angle);
      if (a2 != 0) w = w + f64(a2) * cosine(f64(2) * angle);
      return cast(t, w);
    }));
  };
}

/// A triangle per mel band between the spectrogram bins of its left edge, its centre and its right edge.
void define_mel_weight_matrix(OpBuilder& b) {
  const Dims dims = b.known(0) && b.known(1) ? Dims{b.const_int(1) / 2 + 1, b.const_int(0)} : b.declared_dims(0, 0);
  if (dims.size() != 2 || dims[0] < 1 || dims[1] < 0) b.reject("bands and length must be positive");
  const int64_t bands = dims[1];
  const Expr length = f64(element(b, 1)), rate = f64(element(b, 2));
  auto number = [&](int k) {
    const Tensor t = b.in(k);
    if (!has_one_element(t.dims())) b.reject("a single number is needed", k);
    return f64(t(Exprs(size_t(t.rank()), Expr(0))));
  };
  auto mel = [](const Expr& hertz) { return f64(2595 / 2.302585092994045684) * apply(Op::Log1p, {hertz / f64(700)}); };
  const Expr low = mel(number(3)), high = mel(number(4));
  const Tensor edges = b.compute("edge", DType::I64, {bands + 2}, [&](const Exprs& i) {
    const Expr m = f64(i[0]) * ((high - low) / f64(double(bands + 2))) + low;
    const Expr hertz = f64(700) * apply(Op::Expm1, {m * f64(2.302585092994045684 / 2595)});
    return cast(DType::I64, apply(Op::Floor, {(length + f64(1)) * hertz / rate}));
  });
  const DType t = output_type(b);
  b.output(0, b.compute("mel_weight_matrix", t, dims, [&](const Exprs& i) {
    const Expr j = i[0], left = edges({i[1]}), centre = edges({i[1] + 1}), right = edges({i[1] + 2});
    const Expr rising = f64(j - left) / f64(centre - left), falling = f64(right - j) / f64(right - centre);
    const Expr spike = select(eq(j, centre), f64(1), f64(0));
    const Expr rise = select(j >= left && j <= centre, rising, f64(0));
    return cast(t, select(j >= centre && j < right, falling, select(eq(left, centre), spike, rise)));
  }));
}

/// cos and sin of 2 pi k / n for k in [0, n).
struct Circle {
  Tensor cos, sin;
  int64_t n;
};

Circle circle(OpBuilder& b, int64_t n) {
  auto angle = [&](const Exprs& i) { return f64(i[0]) * f64(kTau / double(n)); };
  return {b.compute("cos", DType::F64, {n}, [&](const Exprs& i) { return cosine(angle(i)); }),
          b.compute("sin", DType::F64, {n}, [&](const Exprs& i) { return sine(angle(i)); }), n};
}

struct Complex {
  Expr re, im;
};

/// Component `part` (0: real, 1: imaginary) of x * exp(-+ 2 pi i k m / n).
Expr rotate(const Circle& c, const Complex& x, const Expr& k, const Expr& m, const Expr& part, bool inverse) {
  const Expr index = floor_mod(k * m, c.n);
  const Expr cos = c.cos({index}), sin = inverse ? -c.sin({index}) : c.sin({index});
  return select(eq(part, 0), x.re * cos + x.im * sin, x.im * cos - x.re * sin);
}

struct Transform {
  int axis;
  int64_t n, used;  // length of the transform; elements that enter it, the rest are 0
  bool inverse, onesided;
};

Transform transform_of(OpBuilder& b, const Tensor& x, int axis) {
  Transform t{};
  t.axis = axis;
  t.inverse = b.attr_int("inverse") != 0;
  t.onesided = b.attr_int("onesided") != 0;
  const int64_t have = x.dim(t.axis);
  t.n = b.has(1) ? b.const_int(1) : t.inverse && t.onesided ? 2 * (have - 1) : have;
  if (t.n < 1) b.reject("the length of the transform must be positive", 1);
  t.used = std::min(have, t.inverse && t.onesided ? t.n / 2 + 1 : t.n);
  return t;
}

/// Shape of the result.
Dims transformed(const Tensor& x, const Transform& t) {
  Dims dims = x.dims();
  dims[size_t(t.axis)] = t.onesided && !t.inverse ? t.n / 2 + 1 : t.n;
  dims.back() = t.inverse && t.onesided ? 1 : 2;
  return dims;
}

/// The full real signal of a one-sided spectrum: every bin but the first and (n even) the middle one stands for two.
Tensor inverse_real(OpBuilder& b, const Tensor& x, const Transform& t, const Circle& c, const Dims& dims) {
  return b.reduce("dft", Op::Add, DType::F64, dims, {t.used}, [&](const Exprs& i, const Exprs& r) {
    const Exprs at = with_axis(i, t.axis, r[0]);
    const int last = x.rank() - 1;
    const Complex e{f64(x(with_axis(at, last, 0))), x.dim(-1) == 2 ? f64(x(with_axis(at, last, 1))) : f64(0)};
    const Expr term = rotate(c, e, i[size_t(t.axis)], r[0], 0, true);
    return select(eq(r[0], 0) || eq(r[0] * 2, Expr(t.n)), term, f64(2) * term);
  });
}

Tensor dft(OpBuilder& b, const Tensor& x, const Transform& t) {
  const Circle c = circle(b, t.n);
  const int last = x.rank() - 1;
  const Dims dims = transformed(x, t);
  auto term = [&](const Exprs& i, const Exprs& r) {
    const Exprs at = with_axis(i, t.axis, r[0]);
    const Complex e{f64(x(with_axis(at, last, 0))), x.dim(-1) == 2 ? f64(x(with_axis(at, last, 1))) : f64(0)};
    return rotate(c, e, i[size_t(t.axis)], r[0], i[size_t(last)], t.inverse);
  };
  const Tensor sum = t.inverse && t.onesided ? inverse_real(b, x, t, c, dims)
                                             : b.reduce("dft", Op::Add, DType::F64, dims, {t.used}, term);
  return b.compute("dft", x.dtype(), dims,
                   [&](const Exprs& i) { return cast(x.dtype(), t.inverse ? sum(i) / f64(double(t.n)) : sum(i)); });
}

/// An axis that is known only at run time chooses among those that give the declared shape.
void define_dft(OpBuilder& b) {
  const Tensor x = b.in(0);
  if (x.rank() < 2 || (x.dim(-1) != 1 && x.dim(-1) != 2))
    b.reject("the last axis must hold the real part, or the real and the imaginary part", 0);
  if (b.known(2)) {
    const int axis = b.axis(b.has(2) ? b.const_int(2) : -2, x.rank());
    if (axis == x.rank() - 1) b.reject("the axis of the complex parts cannot be transformed", 2);
    return b.output(0, dft(b, x, transform_of(b, x, axis)));
  }
  const Dims declared = b.declared_dims(0, 2);
  std::vector<Candidate> candidates;
  for (int a = 0; a + 1 < x.rank(); a++) {
    if (!b.has(1) && x.dim(a) < (b.attr_int("inverse") != 0 && b.attr_int("onesided") != 0 ? 2 : 1)) continue;
    const Transform t = transform_of(b, x, a);
    if (transformed(x, t) == declared)
      candidates.push_back({eq(run_time_axis(element(b, 2), x.rank()), Expr(a)), dft(b, x, t)});
  }
  if (candidates.empty()) b.reject("no axis gives the declared shape", 2);
  b.output(0, choose(b, "dft", candidates));
}

/// y[batch, frame, k, part]: the transform of the windowed frames of n elements.
Tensor stft(OpBuilder& b, const Tensor& x, const Tensor& window, const Expr& step, int64_t n, const Dims& dims) {
  const Circle c = circle(b, n);
  const bool known = as_const_int(step).has_value();
  const Tensor sum = b.reduce("stft", Op::Add, DType::F64, dims, {n}, [&](const Exprs& i, const Exprs& r) {
    const Expr weight = window ? f64(window({r[0]})) : f64(1);
    const Expr index = i[1] * step + r[0], at = known ? index : max(Expr(0), min(index, Expr(x.dim(1) - 1)));
    const auto part = [&](int64_t k) { return weight * f64(x.rank() == 2 ? x({i[0], at}) : x({i[0], at, k})); };
    const Complex e{part(0), x.rank() == 3 && x.dim(2) == 2 ? part(1) : f64(0)};
    return rotate(c, e, i[2], r[0], i[3], false);
  });
  return convert(b, sum, x.dtype(), "stft");
}

/// A frame length that is known only at run time is one of two that give the declared number of bins.
void define_stft(OpBuilder& b) {
  const Tensor x = b.in(0), window = b.has(2) ? b.in(2) : Tensor();
  // torch's exporter leaves out the last axis of a real signal.
  if (x.rank() != 2 && (x.rank() != 3 || (x.dim(2) != 1 && x.dim(2) != 2)))
    b.reject("the signal must have the shape [batch, length, 1 or 2]", 0);
  if (window && window.rank() != 1) b.reject("the window must have one axis", 2);
  const bool onesided = b.attr_int("onesided") != 0;
  std::vector<int64_t> lengths;
  if (b.has(3) && b.known(3))
    lengths = {b.const_int(3)};
  else if (window || !b.has(3))
    lengths = {window ? window.dim(0) : x.dim(1)};
  else if (const Dims d = b.declared_dims(0, 3); d.size() == 4 && d[2] > 0) {
    if (onesided)
      lengths = {2 * d[2] - 1, 2 * d[2] - 2};
    else
      lengths = {d[2]};
  }
  const Expr step = element(b, 1);
  std::vector<Candidate> candidates;
  for (int64_t n : lengths) {
    if (n < 1 || n > x.dim(1) || (window && window.dim(0) != n)) continue;
    Dims dims;
    if (const auto s = as_const_int(step)) {
      if (*s < 1) b.reject("frame_step must be positive", 1);
      dims = {x.dim(0), (x.dim(1) - n) / *s + 1, onesided ? n / 2 + 1 : n, 2};
    } else {
      dims = b.declared_dims(0, 1);
      if (dims.size() != 4 || dims[0] != x.dim(0) || dims[2] != (onesided ? n / 2 + 1 : n) || dims[3] != 2)
        b.reject("the declared shape does not fit the signal", 1);
    }
    // A step that is known only at run time must keep the last frame inside of the signal.
    const Expr fits = as_const_int(step) ? make_int(DType::Bool, 1)
                                         : step >= Expr(1) && step <= Expr(x.dim(1)) &&
                                               step * Expr(dims[1] - 1) + Expr(n) <= Expr(x.dim(1));
    const Expr chosen = b.known(3) ? fits : eq(element(b, 3), Expr(n)) && fits;
    candidates.push_back({chosen, stft(b, x, window, step, n, dims)});
  }
  if (candidates.empty()) b.reject("no frame length fits signal, window and declared shape", 3);
  b.output(0, is_const(candidates[0].condition, 1) ? candidates[0].result : choose(b, "stft", candidates));
}

}  // namespace

OpFamily signal_ops() {
  const std::vector<AttrSpec> attrs = {{"output_datatype", int64_t(1)}, {"periodic", int64_t(1)}};
  return {
      {"HannWindow", 17, attrs, window(0.5, 0.5, 0), "size"},
      {"HammingWindow", 17, attrs, window(25.0 / 46, 21.0 / 46, 0), "size"},
      {"BlackmanWindow", 17, attrs, window(0.42, 0.5, 0.08), "size"},
      {"MelWeightMatrix",
       17,
       {{"output_datatype", int64_t(1)}},
       define_mel_weight_matrix,
       "bands length rate low high"},
      {.name = "DFT",
       .since = 20,
       .attrs = {{"inverse", int64_t(0)}, {"onesided", int64_t(0)}},
       .define = define_dft,
       .operands = "x length axis",
       .expand = expand_dft},
      {.name = "STFT",
       .since = 17,
       .attrs = {{"onesided", int64_t(1)}},
       .define = define_stft,
       .operands = "x step window length",
       .expand = expand_stft},
  };
}

}  // namespace tc
