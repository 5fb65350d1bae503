// round_to_bytes: vectors of floats that are quantised take as few operations as they can.
//
//   u8(min(max(round(x / 0.031f) + 3, 0), 255))   ->   u8(i32(round(quotient(min(max(x, -3 * 0.031f), 252 * 0.031f), 0.031f))) + 3)
//   f32(i32(u8(i32(round(y)) + 3)) - 3)           ->   round(y)
//
// - Bounds and zero points are integers: it is the same to bound what is rounded. Then the rounding and the conversion are one
//   instruction, and the zero point is added to integers.
// - A vector division takes as long as ten to thirty other operations. quotient multiplies by the reciprocal and takes the rest,
//   which a fused multiplication and addition gives exactly, into account (P. Markstein, Computation of elementary functions on
//   the IBM RISC System/6000, 1990). That is the rounded quotient but for a few pairs of numbers. What counts here is which
//   integer it is nearest to, which is decided at the numbers half way between two of these: they are tried, with the divisor at
//   hand, and if one of them goes another way the division stays.
// - Bytes that are dequantised where they were quantised are the integers that they were rounded to.
//
// Needs: vectors of f32; integers as bounds, on both sides and within the type, and as zero points. A bound that is a choice gives
// its number for NaN, and still does. Where bounds are max and min, as a Clip in front of a Cast, ONNX does not say which byte NaN
// becomes, but it is one: one of the bounds becomes a choice, unless sums of integers are scaled, which are never NaN.
#include "passes/loop/round_to_bytes.h"

#include <cmath>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

constexpr double kMostConstant = 512;  // bounds and zero points of bytes are below
constexpr int kMostRounded = 1100;     // bounds less zero points are below

Expr without_broadcast(const Expr& e) {
  const Broadcast* k = as<Broadcast>(e);
  return k ? k->value : e;
}

std::optional<double> small_number(const Expr& e) {
  const FloatImm* k = as<FloatImm>(without_broadcast(e));
  return k && std::abs(k->value) <= kMostConstant ? std::optional(k->value) : std::nullopt;
}

// A small integer, as a float.
std::optional<double> small_constant(const Expr& e) {
  const auto k = small_number(e);
  return k && *k == std::floor(*k) ? k : std::nullopt;
}

std::optional<int64_t> integer(const Expr& e) {
  const IntImm* k = as<IntImm>(without_broadcast(e));
  return k && std::abs(double(k->value)) <= kMostConstant ? std::optional(k->value) : std::nullopt;
}

Expr all(double value) { return broadcast(make_float(DType::F32, value)); }

struct Bound {
  bool from_below = false;
  double at = 0;
  bool takes_nan = false;  // a choice that gives `at` for NaN
};
Expr bounded(const Expr& x, const Bound& b, double at) {
  if (!b.takes_nan) return b.from_below ? max(x, all(at)) : min(x, all(at));
  return select(apply(b.from_below ? Op::Gt : Op::Lt, {x, all(at)}), x, all(at));
}

// round(inner), bounded and with integers added.
struct Rounded {
  Expr inner;
  std::vector<Bound> bounds = {};  // of round(inner), innermost first
  double zero = 0;                 // is added to that
};

// max(x, c), or min, as a choice.
std::optional<Bound> as_choice(const Select& k) {
  const Apply* c = as<Apply>(k.condition);
  if (!c || c->args.size() != 2 || !structurally_equal(c->args[0], k.yes)) return {};
  const auto at = small_constant(k.no);
  if (!at || at != small_constant(c->args[1])) return {};
  if (c->op == Op::Gt || c->op == Op::Ge) return Bound{true, *at, true};
  if (c->op == Op::Lt || c->op == Op::Le) return Bound{false, *at, true};
  return {};
}

std::optional<Rounded> rounded(const Expr& e) {
  if (const Select* s = as<Select>(e)) {
    const auto bound = as_choice(*s);
    auto r = bound ? rounded(s->yes) : std::nullopt;
    if (r) r->bounds.push_back({bound->from_below, bound->at - r->zero, true});
    return r;
  }
  const Apply* k = as<Apply>(e);
  if (!k) return {};
  if (k->op == Op::Round && e->dtype == DType::F32) return Rounded{k->args[0]};
  if (k->op != Op::Add && k->op != Op::Sub && k->op != Op::Min && k->op != Op::Max) return {};
  const auto c = small_constant(k->args[1]);
  auto r = c ? rounded(k->args[0]) : std::nullopt;
  if (!r) return {};
  if (k->op == Op::Add) r->zero += *c;
  if (k->op == Op::Sub) r->zero -= *c;
  if (k->op == Op::Min || k->op == Op::Max) r->bounds.push_back({k->op == Op::Max, *c - r->zero, false});
  return r;
}

struct Interval {
  double least = -INFINITY, most = INFINITY;
};
Interval interval_of(const Rounded& r) {
  Interval v;
  for (const Bound& b : r.bounds) {
    v.least = b.from_below ? std::max(v.least, b.at) : std::min(v.least, b.at);
    v.most = b.from_below ? std::max(v.most, b.at) : std::min(v.most, b.at);
  }
  return {v.least + r.zero, v.most + r.zero};
}

// t: u8 or i8.
bool is_within(const Interval& v, DType t) {
  const double least = t == DType::U8 ? 0 : -128;
  return v.least >= least && v.most <= least + 255;
}

// A sum of integers that is scaled: no NaN.
bool is_scaled_integer(const Expr& e) {
  const Apply* k = as<Apply>(e);
  if (!k || k->op != Op::Mul) return false;
  const Cast *x = as<Cast>(without_broadcast(k->args[0])), *y = as<Cast>(without_broadcast(k->args[1]));
  return (x && is_int(x->value->dtype)) || (y && is_int(y->value->dtype));
}

// One of the bounds takes NaN where there may be any: no byte is NaN.
void take_nan(Rounded& r) {
  const auto any = std::any_of(r.bounds.begin(), r.bounds.end(), [](const Bound& b) { return b.takes_nan; });
  if (!any && !r.bounds.empty() && !is_scaled_integer(r.inner)) r.bounds[0].takes_nan = true;
}

// Never NaN: sums of integers that are scaled, rounded, or more by a number.
bool is_number(const Expr& e) {
  const Apply* k = as<Apply>(e);
  if (!k || is_scaled_integer(e)) return bool(k);
  const bool moved = (k->op == Op::Add || k->op == Op::Sub) && as<FloatImm>(without_broadcast(k->args[1]));
  return (moved || k->op == Op::Round) && is_number(k->args[0]);
}

// min(max(x, low), high) of an x that is not rounded: with a choice for max, where the lower bound stands for NaN.
Expr bounded_byte(DType t, const Expr& value) {
  const Apply *top = as<Apply>(value), *bottom = top && top->op == Op::Min ? as<Apply>(top->args[0]) : nullptr;
  if (!bottom || bottom->op != Op::Max || is_number(bottom->args[0])) return {};
  const auto low = small_number(bottom->args[1]), high = small_number(top->args[1]);
  if (!low || !high || !is_within({*low, *high}, t)) return {};
  const Expr &x = bottom->args[0], &least = bottom->args[1];
  return cast(t, min(select(apply(Op::Gt, {x, least}), x, least), top->args[1]));
}

// round(inner) within its bounds.
Expr bounded_before(const Rounded& r) {
  const Apply* k = as<Apply>(r.inner);
  const FloatImm* d = k && k->op == Op::Div ? as<FloatImm>(without_broadcast(k->args[1])) : nullptr;
  if (!d || !quotient_rounds_exactly(float(d->value), kMostRounded)) {
    Expr x = r.inner;
    for (const Bound& b : r.bounds) x = bounded(x, b, b.at);
    return apply(Op::Round, {x});
  }
  // The dividend is bounded, so that the quotient is exact: no more than a rounding beyond, which goes with the fraction.
  Expr x = k->args[0];
  for (Bound b : r.bounds) {
    b.from_below = b.from_below == (d->value > 0);
    x = bounded(x, b, double(float(b.at * d->value)) + 0.0);
  }
  return apply(Op::Round, {apply(Op::Quotient, {x, k->args[1]})});
}

class RoundToBytes {
 public:
  Stmt stmt(const Stmt& s) {
    return rewrite(s, [&](const Expr& e) { return expr(e); });
  }

 private:
  // What a byte was made of.
  struct Byte {
    Expr byte, rounded;
    double zero;
  };

  Expr expr(const Expr& e) {
    const Cast* k = as<Cast>(e);
    if (!k || !k->value->vector) return {};
    if (e->dtype == DType::F32) return dequantised(k->value);
    return e->dtype == DType::U8 || e->dtype == DType::I8 ? quantised(e->dtype, k->value) : Expr();
  }

  Expr quantised(DType t, const Expr& value) {
    auto r = rounded(value);
    if (!r || !is_within(interval_of(*r), t)) return bounded_byte(t, value);
    take_nan(*r);
    const Expr whole = bounded_before(*r);
    Expr number = cast(DType::I32, whole);
    if (r->zero != 0) number = number + broadcast(make_int(DType::I32, int64_t(r->zero)));
    bytes_.push_back({cast(t, number), whole, r->zero});
    return bytes_.back().byte;
  }

  // f32 of a byte of here less a zero point.
  Expr dequantised(const Expr& value) {
    double zero = 0;
    Expr e = value;
    if (const Apply* k = as<Apply>(e); k && k->op == Op::Sub && integer(k->args[1])) {
      zero = double(*integer(k->args[1]));
      e = k->args[0];
    }
    if (const Cast* k = as<Cast>(e); k && e->dtype == DType::I32) e = k->value;
    for (const Byte& b : bytes_) {
      if (!b.byte.same_as(e)) continue;
      const double added = b.zero - zero;
      return added == 0 ? b.rounded : b.rounded + all(added);
    }
    return {};
  }

  std::vector<Byte> bytes_;
};

// tc_quotient of the vector header.
float quotient(float x, float d) {
  const float inverse = 1.0f / d, near = x * inverse;
  return std::fma(std::fma(-near, d, x), inverse, near);
}

}  // namespace

bool quotient_rounds_exactly(float d, int most) {
  if (!(std::abs(d) > 1e-25f && std::abs(d) < 1e25f))
    return false;  // neither it nor what it is multiplied by is denormal
  // Both are within two units in the last place of x / d: they round alike but near the middle between two integers.
  for (int i = -most; i <= most; i++) {
    float x = float((i + 0.5) * double(d));
    for (int step = 0; step < 4; step++) x = std::nextafter(x, -INFINITY);
    for (int step = 0; step < 9; step++, x = std::nextafter(x, INFINITY))
      if (std::nearbyint(x / d) != std::nearbyint(quotient(x, d))) return false;
  }
  return true;
}

Stmt round_to_bytes(const Stmt& s) { return RoundToBytes().stmt(s); }

}  // namespace tc
