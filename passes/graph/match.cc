#include "passes/graph/match.h"

#include <cmath>

namespace tc {

bool is_near(const Value* v, double number) {
  const auto s = scalar_of(v);
  return s && std::abs(*s - number) <= 1e-4 * std::abs(number);
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
