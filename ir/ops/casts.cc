// Casts between element types. Loop IR's Cast is ONNX's; only the rounding modes of float8e8m0 and text need more.
//
// Numbers as text are what ONNX Runtime makes of them, whatever the locale: integers in full, bool as 0 or 1, floats with at most 8
// digits as printf's %.8g has them, INF, -INF and NaN. Text as a number is read as strtod and strtoll read it: white
// space and a sign in front, whatever follows the number is ignored, no number at all raises E_RANGE; so do hexadecimal
// ones. Up to 17 digits count; a double may differ from the nearest in its last bit where there are more than 15.
#include <limits>

#include "ir/loop/conditions.h"
#include "ir/ops/counting.h"
#include "ir/ops/expansion.h"
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

DType target_type(const OpBuilder& b) {
  const int64_t to = b.attr_int("to");
  if (to <= int64_t(DType::Undefined) || to > int64_t(DType::I2))
    b.unsupported("element type " + to_text(to) + " is not known");
  const auto t = static_cast<DType>(to);
  if (is_complex(t)) b.unsupported("casts to " + std::string(info(t).onnx_name) + " cannot be compiled");
  return t;
}

/// float8e8m0 holds powers of two from 2^-127 to 2^127 and one NaN. The power is chosen here, on the bits of the f32,
/// so that the cast itself has nothing left to round.
Expr to_e8m0(const OpBuilder& b, const Expr& value, bool saturate) {
  const std::string mode = b.attr_string("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest") b.reject("attribute round_mode must be up, down or nearest");
  const Expr x = cast(DType::F32, value);
  const Expr bits = bitcast(DType::U32, x);
  const Expr exponent =
      apply(Op::BitAnd, {apply(Op::Shr, {bits, make_int(DType::U32, 23)}), make_int(DType::U32, 255)});
  const Expr mantissa = apply(Op::BitAnd, {bits, make_int(DType::U32, 0x7fffff)});
  // Below 2^-126 the mantissa has no leading one: 2^-127 itself is mantissa 0x400000, exponent 0.
  const Expr one = make_int(DType::U32, 1), none = make_int(DType::U32, 0), half = make_int(DType::U32, 0x400000);
  const Expr normal = ne(exponent, none);
  Expr carry;  // whether the next power is taken
  if (mode == "up")
    carry = mantissa > select(normal, none, half);
  else if (mode == "nearest")
    carry = mantissa >= select(normal, half, make_int(DType::U32, 0x600000));
  else
    carry = make_int(DType::Bool, 0);
  const Expr code = exponent + select(carry, one, none);
  const Expr nan = make_int(DType::U8, 255), largest = make_int(DType::U8, 254);
  const Expr in_range = select(code > make_int(DType::U32, 254), saturate ? largest : nan, cast(DType::U8, code));
  const Expr smallest = make_float(DType::F32, 0x1p-127);
  const Expr low = saturate ? make_int(DType::U8, 0) : nan;
  const Expr result = select(apply(Op::IsNan, {x}), nan, select(x < smallest, low, in_range));
  return bitcast(DType::F8E8M0, result);
}

Expr f64(double v) { return make_float(DType::F64, v); }
/// 10^e for whole e, exact up to 22.
Expr power_of_ten(const Expr& e) { return apply(Op::Pow, {f64(10), cast(DType::F64, e)}); }
/// v * 10^(up - down); powers beyond 10^300 are taken in two steps.
Expr scaled(const Expr& v, const Expr& up, const Expr& down) {
  const Expr first_up = min(up, Expr(300)), first_down = min(down, Expr(300));
  return v * power_of_ten(first_up) * power_of_ten(up - first_up) / power_of_ten(first_down) /
         power_of_ten(down - first_down);
}
Expr scaled(const Expr& v, const Expr& e) { return scaled(v, max(e, Expr(0)), max(Expr(0) - e, Expr(0))); }

// --- text as a number

/// Reads the number at the start of a string; positions and results are counters.
struct NumberReader {
  Expr text, size;
  bool is_float = false;
  Buffer at = counter("at"), negative = counter("negative"), digits = counter("digits"), seen = counter("seen");
  Buffer exponent = counter("exponent"), part = counter("part"), start = counter("start"), minus = counter("minus");

  static constexpr int64_t kCapacity = 10'000'000'000'000'000;  // digits that fit beside one more

  Expr byte(const Expr& i) const { return apply(Op::TextByte, {text, i}); }
  Expr here() const { return byte(value_of(at)); }
  Expr inside() const { return value_of(at) < size; }
  Expr is_here(char c) const { return inside() && eq(here(), Expr(int64_t(c))); }
  Expr is_digit() const { return inside() && here() >= Expr(int64_t('0')) && here() <= Expr(int64_t('9')); }
  Expr is_letter(char c) const { return is_here(c) || is_here(char(c - 32)); }

  Stmt sign(const Buffer& flag) const {
    return seq({set(flag, 0),
                if_then(is_here('-'), seq({set(flag, 1), increment(at)}), if_then(is_here('+'), increment(at)))});
  }
  /// Digits in front of the point (step 0) or behind it (step -1).
  Stmt run(int64_t step) const {
    const Stmt take = seq({set(digits, value_of(digits) * Expr(10) + here() - Expr(int64_t('0'))),
                           step == 0 ? Stmt() : set(exponent, value_of(exponent) - 1)});
    const Stmt skip = step == 0 ? increment(exponent) : Stmt();
    return while_loop(is_digit(),
                      seq({if_then(value_of(digits) < Expr(kCapacity), take, skip), increment(seen), increment(at)}));
  }
  Stmt scale() const {
    const Stmt read = while_loop(
        is_digit(),
        seq({if_then(value_of(part) < Expr(10000), set(part, value_of(part) * Expr(10) + here() - Expr(int64_t('0')))),
             increment(at)}));
    const Stmt add =
        set(exponent, value_of(exponent) + select(ne(value_of(minus), 0), -value_of(part), value_of(part)));
    return if_then(is_letter('e'), seq({increment(at), sign(minus), set(part, 0), read, add}));
  }
  Stmt whole() const {
    const Expr space = is_here(' ') || (inside() && here() >= Expr(int64_t('\t')) && here() <= Expr(int64_t('\r')));
    const Stmt zero_x = if_then(eq(value_of(seen), 1) && eq(value_of(digits), 0) && is_letter('x'), set(seen, 0));
    Stmts list = {set(at, 0),
                  while_loop(space, increment(at)),
                  sign(negative),
                  set(digits, 0),
                  set(seen, 0),
                  set(exponent, 0),
                  is_float ? set(start, value_of(at)) : Stmt(),
                  run(0),
                  zero_x};
    if (is_float) {
      list.push_back(if_then(is_here('.'), seq({increment(at), run(-1)})));
      list.push_back(if_then(value_of(seen) > Expr(0), scale()));
    }
    return seq(list);
  }
  /// Are the letters of `word` next, in any case?
  Expr spells(std::string_view word) const {
    Expr all = value_of(start) + Expr(int64_t(word.size())) <= size;
    for (size_t k = 0; k < word.size(); k++) {
      const Expr c = byte(value_of(start) + Expr(int64_t(k)));
      all = all && (eq(c, Expr(int64_t(word[k]))) || eq(c, Expr(int64_t(word[k] - 32))));
    }
    return all;
  }
  /// What was read becomes an element of `out`.
  Stmt give(const Buffer& out, const Exprs& i) const {
    const DType t = out->dtype;
    const Expr none = eq(value_of(seen), 0), less = ne(value_of(negative), 0);
    if (!is_float) {
      const Expr n = select(less, -value_of(digits), value_of(digits));
      const Expr known = select(none || value_of(exponent) > Expr(0), out_of_range(DType::I64), n);
      return store(out, i, t == DType::Bool ? ne(known, 0) : cast(t, known));
    }
    const Expr inf = make_float(DType::F64, std::numeric_limits<double>::infinity());
    const Expr nan = make_float(DType::F64, std::numeric_limits<double>::quiet_NaN());
    const Var is_inf = make_var("is_inf", DType::Bool), is_nan = make_var("is_nan", DType::Bool);
    const Expr named = select(Expr(is_inf), inf, select(Expr(is_nan), nan, out_of_range(DType::F64)));
    const Var power = make_var("power"), up = make_var("up"), down = make_var("down"),
              number = make_var("number", DType::F64);
    // Zero stays zero, whatever the power.
    const Expr e = select(eq(value_of(digits), 0), Expr(0), max(min(value_of(exponent), Expr(400)), Expr(-700)));
    const Expr v = select(none, named, scaled(cast(DType::F64, value_of(digits)), up, down));
    const Stmt signed_number = store(out, i, cast(t, select(less, -Expr(number), Expr(number))));
    const Stmt scaled_number = let(power, e,
                                   let(up, max(Expr(power), Expr(0)),
                                       let(down, max(Expr(0) - Expr(power), Expr(0)), let(number, v, signed_number))));
    return let(is_inf, spells("inf"), let(is_nan, spells("nan"), scaled_number));
  }
};

/// The next operands say how many there are along `axes`; text behind these is not looked at.
void define_number_of(OpBuilder& b, DType t, const std::vector<int64_t>& axes) {
  const Tensor x = b.in(0);
  const auto read =
      b.nest("number_of_text", {ValueType::tensor(t, x.buffer()->shape)}, [&](const std::vector<Buffer>& out) {
        NumberReader r;
        r.is_float = is_float(t);
        return for_each_index(x.dims(), [&](const Exprs& i) {
          const Var text = make_var("text", DType::String), size = make_var("size");
          r.text = Expr(text), r.size = Expr(size);
          Stmt read = seq({r.whole(), r.give(out[0], i)});
          for (const Buffer& c : {r.at, r.negative, r.digits, r.seen, r.exponent}) read = alloc(c, read);
          if (r.is_float)
            for (const Buffer& c : {r.part, r.start, r.minus}) read = alloc(c, read);
          read = let(text, x(i), let(size, apply(Op::TextSize, {r.text}), read));
          Expr there;
          for (size_t k = 0; k < axes.size(); k++) there = both(there, i.at(size_t(axes[k])) < b.in(int(k) + 1)({}));
          return there ? if_then(there, read) : read;
        });
      });
  b.output(0, read[0]);
}

// --- a number as text

/// The characters that numbers are written with, in this order.
constexpr std::string_view kCharacters = "0123456789-.e+NaNINF";

/// Appends to a string that lies in the result.
struct NumberWriter {
  Tensor characters;
  Buffer out;
  Exprs index;
  Buffer digits = counter("digits"), count = counter("count"), exponent = counter("exponent"), k = counter("k");
  Buffer divisor = counter("divisor");

  Stmt add(const Expr& from, int64_t length) const {
    const Expr rest = apply(Op::TextFrom, {characters({Expr(0)}), from});
    const Expr piece = apply(Op::TextFirst, {rest, Expr(length)});
    return store(out, index, apply(Op::TextJoin, {load(out, index), piece}));
  }
  Stmt add(std::string_view word) const { return add(Expr(int64_t(kCharacters.find(word))), int64_t(word.size())); }
  /// `n` digits of `digits`, of which `divisor` tells where the next one stands; zeros behind the last.
  Stmt next_digits(const Expr& n) const {
    const Expr d = floor_mod(floor_div(value_of(digits), max(value_of(divisor), Expr(1))), Expr(10));
    return seq({set(k, 0), while_loop(value_of(k) < n,
                                      seq({add(select(eq(value_of(divisor), 0), Expr(0), d), 1),
                                           set(divisor, floor_div(value_of(divisor), Expr(10))), increment(k)}))});
  }
  /// divisor = 10^(count - 1), where count is how many digits `digits` has.
  Stmt find_first() const {
    return seq({set(divisor, 1), set(count, 1),
                while_loop(floor_div(value_of(digits), value_of(divisor)) >= Expr(10),
                           seq({set(divisor, value_of(divisor) * Expr(10)), increment(count)}))});
  }
  Stmt integer(const Expr& v) const {
    const Expr shown = cast(DType::I64, v), least = make_int(DType::I64, INT64_MIN);
    const Stmt sign = if_then(shown < Expr(0), add("-"));
    const Stmt all =
        seq({set(digits, select(shown < Expr(0), -shown, shown)), find_first(), next_digits(value_of(count))});
    if (v->dtype != DType::I64) return seq({sign, all});
    // The least number has no opposite: its last digit is written by itself.
    const Stmt of_least =
        seq({set(digits, Expr(INT64_MAX / 10)), find_first(), next_digits(value_of(count)), add(Expr(8), 1)});
    return seq({sign, if_then(eq(shown, least), of_least, all)});
  }
  /// %.8g of a finite number above 0.
  Stmt positive(const Expr& a) const {
    const Expr e = value_of(exponent);
    const Expr rounded = cast(DType::I64, apply(Op::Round, {scaled(a, Expr(7) - e)}));
    const Stmt round = set(digits, rounded);
    const Expr fraction = value_of(count);
    const Stmt strip =
        while_loop(eq(floor_mod(value_of(digits), Expr(10)), 0), set(digits, floor_div(value_of(digits), Expr(10))));
    const Stmt point = if_then(ne(value_of(divisor), 0), add("."));
    const Stmt rest = seq({point, next_digits(fraction)});
    const Expr size = apply(Op::Abs, {e});
    const Stmt power = seq({add("e"), if_then(e < Expr(0), add("-"), add("+")),
                            if_then(size >= Expr(100), add(floor_div(size, Expr(100)), 1)),
                            add(floor_mod(floor_div(size, Expr(10)), Expr(10)), 1), add(floor_mod(size, Expr(10)), 1)});
    // Behind the first digits as many are left as lie below `divisor`.
    const auto left = [&](const Stmt& then) {
      const Buffer d = divisor;
      return seq({set(count, 0), set(k, value_of(d)),
                  while_loop(value_of(k) > Expr(0), seq({increment(count), set(k, floor_div(value_of(k), Expr(10)))})),
                  then});
    };
    const Stmt scientific = seq({next_digits(Expr(1)), left(rest), power});
    const Stmt small =
        seq({add("0"), add("."), set(k, 1), while_loop(value_of(k) < Expr(0) - e, seq({add("0"), increment(k)})),
             left(next_digits(fraction))});
    const Stmt plain = seq({next_digits(e + 1), left(rest)});
    return seq({set(exponent, cast(DType::I64, apply(Op::Floor, {log(a) * f64(0.43429448190325182765)}))), round,
                if_then(value_of(digits) >= Expr(100'000'000), seq({increment(exponent), round})),
                if_then(value_of(digits) < Expr(10'000'000), seq({set(exponent, e - 1), round})),
                if_then(value_of(digits) >= Expr(100'000'000),
                        seq({set(digits, floor_div(value_of(digits), Expr(10))), increment(exponent)})),
                strip, find_first(),
                if_then(e < Expr(-4) || e >= Expr(8), scientific, if_then(e < Expr(0), small, plain))});
  }
  Stmt real(const Expr& v) const {
    const Expr a = apply(Op::Abs, {v});
    const Expr less = v < f64(0) || (eq(v, f64(0)) && f64(1) / v < f64(0));
    const Expr inf = make_float(DType::F64, std::numeric_limits<double>::infinity());
    return if_then(
        apply(Op::IsNan, {v}), add("NaN"),
        seq({if_then(less, add("-")), if_then(eq(a, inf), add("INF"), if_then(eq(v, f64(0)), add("0"), positive(a)))}));
  }
};

/// y = x as text. Operand 1 holds the characters.
void define_text_of_number(OpBuilder& b) {
  const Tensor x = b.in(0);
  const auto written = b.nest("text_of_number", {ValueType::tensor(DType::String, x.buffer()->shape)},
                              [&](const std::vector<Buffer>& out) {
                                NumberWriter w;
                                w.characters = b.in(1);
                                w.out = out[0];
                                return for_each_index(x.dims(), [&](const Exprs& i) {
                                  w.index = i;
                                  const Expr v = x(i);
                                  Stmt all = seq({store(out[0], i, zero(DType::String)),
                                                  is_float(x.dtype()) ? w.real(cast(DType::F64, v)) : w.integer(v)});
                                  for (const Buffer& c : {w.digits, w.count, w.k, w.divisor}) all = alloc(c, all);
                                  return is_float(x.dtype()) ? alloc(w.exponent, all) : all;
                                });
                              });
  b.output(0, written[0]);
}

/// Casts to text are an operator of our own, which is given the characters.
bool expand_cast(Graph& g, Node* n, DType to) {
  const Expansion e(g, n);
  Value* x = e.in_of_any_type(0);
  if (to != DType::String || x->type.dtype == DType::String) return false;
  if (is_complex(x->type.dtype) || x->type.dtype == DType::U64)
    e.unsupported("casts of this type to text cannot be compiled");
  e.finish(0, e.op("text_of_number", {x, e.constant(string_constant({1}, {std::string(kCharacters)}), "_characters")},
                   "", {}, "tc"));
  return true;
}

void define_conversion(OpBuilder& b, DType t, const std::string& name) {
  const Tensor x = b.in(0);
  if (x.dtype() == t) return b.output(0, x);
  if (x.dtype() == DType::String) return define_number_of(b, t, {});
  if (t == DType::String) b.unsupported("this cast to text cannot be compiled");  // others are rewritten
  const bool saturate = b.attr_int("saturate", 1) != 0;
  b.output(0, b.compute(name, t, x.dims(), [&](const Exprs& i) {
    const Expr e = x(i);
    if (t == DType::F8E8M0) return to_e8m0(b, e, saturate);
    // Of a float, integers below a byte have the low bits of the nearest integer, as ONNX's pages on them say.
    const bool low_bits = is_int(t) && info(t).bits < 8 && is_float(x.dtype());
    return cast(t, low_bits ? cast(DType::I32, apply(Op::Round, {widen(e)})) : e, saturate);
  }));
}

void define_bit_cast(OpBuilder& b) {
  const Tensor x = b.in(0);
  const DType t = target_type(b);
  auto width = [](DType d) { return d == DType::Bool ? 8 : info(d).bits; };
  if (width(t) != width(x.dtype()))
    b.reject("BitCast needs types of one width, not " + std::string(info(x.dtype()).onnx_name) + " and " +
             std::string(info(t).onnx_name));
  if (x.dtype() == t) return b.output(0, x);
  b.output(0, b.compute("bit_cast", t, x.dims(), [&](const Exprs& i) { return bitcast(t, x(i)); }));
}

}  // namespace

OpFamily cast_ops() {
  const OpFamily casts = {
      {"Cast",
       28,
       {{"saturate", int64_t(1)}, {"round_mode", std::string("up")}, {"to", {}}},
       [](OpBuilder& b) { define_conversion(b, target_type(b), "cast"); },
       "",
       "",
       "",
       [](Graph& g, Node* n) { return expand_cast(g, n, DType(n->attr_int("to", 0))); }},
      {"CastLike",
       25,
       {{"saturate", int64_t(1)}, {"round_mode", std::string("up")}},
       [](OpBuilder& b) { define_conversion(b, b.in(1).dtype(), "cast"); },
       "x like",
       "",
       "",
       [](Graph& g, Node* n) { return expand_cast(g, n, Expansion(g, n).in_of_any_type(1)->type.dtype); }},
  };
  const OpFamily others = {
      {"text_of_number", 1, {}, define_text_of_number, "x characters", "text_of_number", "tc"},
      {"number_of_text",
       1,
       {{"axes", std::vector<int64_t>()}, {"to", {}}},
       [](OpBuilder& b) { define_number_of(b, target_type(b), b.attr_ints("axes")); },
       "x counts",
       "number_of_text",
       "tc"},
      {"BitCast", 26, {{"to", {}}}, define_bit_cast},
  };
  return joined({all_marked(OpTrait::SameSizes, casts), others});
}

}  // namespace tc
