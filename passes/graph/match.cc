#include "passes/graph/match.h"

#include <algorithm>
#include <cmath>

namespace tc {

bool is_rounded(double c, double number, DType t) {
  const int bits = t == DType::F64 ? 53 : t == DType::F32 ? 24 : t == DType::F16 ? 11 : t == DType::BF16 ? 8 : 1000;
  // A reciprocal adds the square of the error.
  return std::abs(c - number) <= std::ldexp(std::abs(number), -bits) * (1 + std::ldexp(1.0, 1 - bits));
}

bool is_wide(DType t) { return t == DType::F32 || t == DType::F64; }

bool is_moderate(const Constant& c, int bits) {
  if (!c || !is_wide(c->dtype)) return false;
  double largest = 0;
  for (int64_t i = 0; i < c->size(); ++i) {
    const double v = std::abs(c->as_double(i));
    if (!std::isfinite(v)) return false;
    largest = std::max(largest, v);
  }
  return largest == 0 || (largest >= std::ldexp(1.0, -bits) && largest <= std::ldexp(1.0, bits));
}

bool grows_together(const Value* a, const Value* b) {
  const Dims x = dims_of(a), y = dims_of(b);
  auto size = [](const Dims& d, size_t from_end) { return from_end < d.size() ? d[d.size() - 1 - from_end] : 1; };
  bool x_grows = false, y_grows = false;
  for (size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    x_grows = x_grows || size(x, i) < size(y, i);
    y_grows = y_grows || size(y, i) < size(x, i);
  }
  return x_grows && y_grows;
}

namespace {

void collect(Value* v, bool is_root, int depth, Product& p) {
  if (const auto s = scalar_of(v)) {
    p.scale *= *s;
    return;
  }
  const bool is_private = is_root || only_user(v) != nullptr;
  if (depth > 0 && is_private) {
    if (const Node* mul = made_by(v, "Mul")) {
      for (Value* operand : mul->inputs) collect(operand, false, depth - 1, p);
      return;
    }
    const Node* div = made_by(v, "Div");
    if (const auto divisor = div ? scalar_of(div->inputs[1]) : std::nullopt; divisor && *divisor != 0) {
      p.scale /= *divisor;
      collect(div->inputs[0], false, depth - 1, p);
      return;
    }
    const Node* pow = made_by(v, "Pow");
    const auto exponent = pow ? scalar_of(pow->inputs[1]) : std::nullopt;
    if (exponent && (*exponent == 2 || *exponent == 3)) {
      for (int i = 0; i < int(*exponent); ++i) p.factors.push_back(pow->inputs[0]);
      return;
    }
  }
  p.factors.push_back(v);
}

}  // namespace

Product product_of(Value* v, int depth) {
  Product p;
  collect(v, true, depth, p);
  return p;
}

}  // namespace tc
