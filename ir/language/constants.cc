#include "ir/language/constants.h"

#include <algorithm>
#include <cmath>

#include "ir/loop/build.h"
#include "support/text.h"

namespace tc::language {
namespace {

double as_number(const Meaning& m) {
  return std::holds_alternative<int64_t>(m) ? double(std::get<int64_t>(m)) : std::get<double>(m);
}

Meaning whole(const Place& at, const std::string& symbol, int64_t a, int64_t b) {
  int64_t r = 0;
  bool over = false;
  if (symbol == "+") over = __builtin_add_overflow(a, b, &r);
  if (symbol == "-") over = __builtin_sub_overflow(a, b, &r);
  if (symbol == "*") over = __builtin_mul_overflow(a, b, &r);
  if (symbol == "/" || symbol == "//" || symbol == "%") {
    if (b == 0) fail(at, "a division by zero");
    if (b == -1) {
      over = symbol != "%" && __builtin_sub_overflow(int64_t(0), a, &r);
    } else {
      const int64_t floored = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      if (symbol == "/" && a % b != 0) return double(a) / double(b);
      r = symbol == "%" ? a - floored * b : floored;
    }
  }
  if (symbol == "&") r = a & b;
  if (symbol == "|") r = a | b;
  if (symbol == "^") r = a ^ b;
  if (over) fail(at, "the result does not fit 64 bits");
  return r;
}

Meaning number(const Place& at, const std::string& symbol, double a, double b) {
  if (symbol == "+") return a + b;
  if (symbol == "-") return a - b;
  if (symbol == "*") return a * b;
  if (symbol == "/") return a / b;
  if (symbol == "//") return std::floor(a / b);
  if (symbol == "%") return a - std::floor(a / b) * b;
  fail(at, "'" + symbol + "' is of integers");
}

template <class T>
std::optional<bool> compared(const std::string& symbol, const T& a, const T& b) {
  if (symbol == "==") return a == b;
  if (symbol == "!=") return a != b;
  if (symbol == "<") return a < b;
  if (symbol == "<=") return a <= b;
  if (symbol == ">") return a > b;
  if (symbol == ">=") return a >= b;
  return std::nullopt;
}

}  // namespace

Meaning constant_infix(const Place& at, const std::string& symbol, const Meaning& a, const Meaning& b) {
  if (is_number(a) && is_number(b)) {
    const bool integers = std::holds_alternative<int64_t>(a) && std::holds_alternative<int64_t>(b);
    if (integers) {
      if (const auto c = compared(symbol, std::get<int64_t>(a), std::get<int64_t>(b))) return *c;
      return whole(at, symbol, std::get<int64_t>(a), std::get<int64_t>(b));
    }
    if (const auto c = compared(symbol, as_number(a), as_number(b))) return *c;
    return number(at, symbol, as_number(a), as_number(b));
  }
  const auto comparable = [&]<class T>(const T* x, const T* y) { return x && y && (symbol == "==" || symbol == "!="); };
  const auto *s = std::get_if<std::string>(&a), *t = std::get_if<std::string>(&b);
  if (comparable(s, t)) return (*s == *t) == (symbol == "==");
  const auto *p = std::get_if<bool>(&a), *q = std::get_if<bool>(&b);
  if (comparable(p, q)) return (*p == *q) == (symbol == "==");
  fail(at, "'" + symbol + "' does not take " + kind_of(a) + " and " + kind_of(b));
}

std::optional<Meaning> constant_function(const Place& at, Op op, const std::vector<Meaning>& args) {
  for (const Meaning& a : args)
    if (!is_number(a)) fail(at, std::string(info(op).name) + " does not take " + kind_of(a));
  const bool integers =
      std::all_of(args.begin(), args.end(), [](const Meaning& a) { return std::holds_alternative<int64_t>(a); });
  const double x = as_number(args[0]);
  switch (op) {
    case Op::Min:
    case Op::Max:
      if (integers) {
        const int64_t a = std::get<int64_t>(args[0]), b = std::get<int64_t>(args[1]);
        return op == Op::Min ? std::min(a, b) : std::max(a, b);
      }
      return op == Op::Min ? std::min(x, as_number(args[1])) : std::max(x, as_number(args[1]));
    case Op::Abs:
      if (integers) return std::get<int64_t>(args[0]) < 0 ? whole(at, "-", 0, std::get<int64_t>(args[0])) : args[0];
      return std::fabs(x);
    case Op::Sqrt: return std::sqrt(x);
    case Op::Floor:
    case Op::Ceil: {
      if (integers) return args[0];
      const double r = op == Op::Floor ? std::floor(x) : std::ceil(x);
      if (std::fabs(r) < 9e15) return int64_t(r);
      return r;
    }
    default: return std::nullopt;
  }
}

Expr constant_expr(const Meaning& m, DType type, const Place& at) {
  const std::string name(info(type).name);
  if (const bool* b = std::get_if<bool>(&m); b && type == DType::Bool) return make_int(type, *b);
  if (const std::string* s = std::get_if<std::string>(&m); s && s->empty() && type == DType::String)
    return make_int(type, 0);  // the empty one is the only constant
  if (!is_number(m) || type == DType::String) fail(at, kind_of(m) + " is no " + name);
  if (type == DType::Bool) fail(at, kind_of(m) + " is no bool; compare it with something");
  if (is_float(type)) return make_const(type, as_number(m));
  if (!std::holds_alternative<int64_t>(m))
    fail(at, tc::to_text(as_number(m)) + " is no whole number, as " + name + " needs");
  const int64_t v = std::get<int64_t>(m);
  const int bits = info(type).bits;
  const bool is_signed = is_signed_int(type);
  const bool fits = is_signed ? bits == 64 || (v >= -(int64_t(1) << (bits - 1)) && v < (int64_t(1) << (bits - 1)))
                              : v >= 0 && (bits >= 63 || v < (int64_t(1) << bits));
  if (!fits) fail(at, tc::to_text(v) + " does not fit " + name);
  return make_int(type, v);
}

}  // namespace tc::language
