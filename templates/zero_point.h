// Operands of quantised sums: i32(x) - z with bytes x.
#pragma once
#include <optional>

#include "ir/loop/ir.h"

namespace tc {

/// x - zero of an operand.
struct ZeroPointForm {
  Expr x;     // the load of bytes; null: another form
  Expr zero;  // i32; null: 0
};
ZeroPointForm zero_point_form(const Expr& e);

/// The value of a constant, also behind a conversion.
std::optional<double> number_of(const Expr& e);

}  // namespace tc
