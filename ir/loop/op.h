// The scalar operations of Loop IR: one table. Printing, folding and interpreting come from a row of it.
#pragma once
#include <cstdint>
#include <string_view>

namespace tc {

// clang-format off
enum class Op : uint8_t {
  // one operand
  Neg, Abs, Sign, Not /* logical */, BitNot, Ceil, Floor, Round /* half to even */, Trunc, Sqrt, Exp, Expm1, Log, Log1p,
  Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, Erf, Sigmoid, IsNan, IsInf,
  // two operands
  Add, Sub, Mul, Div /* integers: toward zero, x / 0 = 0 */, FloorDiv, Mod /* sign of the dividend */,
  FloorMod /* sign of the divisor */, Min, Max /* both propagate NaN */, Pow, Atan2, BitAnd, BitOr, BitXor, Shl, Shr,
  Eq, Ne, Lt, Le, Gt, Ge, And /* logical, lazy */, Or,
  // Index(i, n): i, plus n when negative; out of [0, n) raises the status E_RANGE and gives 0
  Index,
  // strings: their size in bytes, byte i (0 outside of the string), what is behind the first i bytes, the first n bytes;
  // made strings, whose bytes go to the arena of strings: two joined, the letters small or large (Unicode's simple mapping)
  TextSize, TextByte, TextFrom, TextFirst, TextJoin, TextLower, TextUpper,
  // horizontal, vector -> scalar, fixed tree order
  ReduceAdd, ReduceMax, ReduceMin,
  // x / y of f32 where |x / y| < 2^20, but for a last bit. Numbers of operations are part of the identity of kernels: new ones
  // stand at the end.
  Quotient,
};
// clang-format on
inline constexpr int kOpCount = int(Op::Quotient) + 1;

struct OpInfo {
  Op op;
  std::string_view name;  // IR text: "max"
  int arity;
  int precedence;                 // C's, 0: printed as a call
  std::string_view c_infix;       // "+", empty: a call
  std::string_view c_f32, c_f64;  // function on a scalar of that type: "fmaxf"; empty: support text has tc_<name>
  std::string_view c_vector;      // function on tc_vf ("tc_exp"); empty: not available on vectors
  bool compares;                  // the result is bool
};
const OpInfo& info(Op op);

/// The operations on strings but comparisons; those of them that need memory for a string that they make.
inline bool is_text_op(Op op) { return op >= Op::TextSize && op <= Op::TextUpper; }
inline bool makes_string(Op op) { return op >= Op::TextJoin && op <= Op::TextUpper; }

}  // namespace tc
