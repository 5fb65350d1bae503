#include "ir/loop/op.h"

#include "support/error.h"

namespace tc {
namespace {

// name, arity, precedence, infix, f32, f64, vector, compares.  Precedence follows C: 13 unary .. 4 logical or.
constexpr OpInfo kOps[] = {
    {Op::Neg, "neg", 1, 13, "-", "", "", "", false},
    {Op::Abs, "abs", 1, 0, "", "fabsf", "fabs", "tc_abs", false},
    {Op::Sign, "sign", 1, 0, "", "", "", "tc_sign", false},
    {Op::Not, "not", 1, 13, "!", "", "", "tc_not", true},
    {Op::BitNot, "bit_not", 1, 13, "~", "", "", "", false},
    {Op::Ceil, "ceil", 1, 0, "", "ceilf", "ceil", "tc_ceil", false},
    {Op::Floor, "floor", 1, 0, "", "floorf", "floor", "tc_floor", false},
    {Op::Round, "round", 1, 0, "", "rintf", "rint", "tc_round", false},
    {Op::Trunc, "trunc", 1, 0, "", "truncf", "trunc", "tc_trunc", false},
    {Op::Sqrt, "sqrt", 1, 0, "", "sqrtf", "sqrt", "tc_sqrt", false},
    {Op::Exp, "exp", 1, 0, "", "expf", "exp", "tc_exp", false},
    {Op::Expm1, "expm1", 1, 0, "", "expm1f", "expm1", "tc_expm1", false},
    {Op::Log, "log", 1, 0, "", "logf", "log", "tc_log", false},
    {Op::Log1p, "log1p", 1, 0, "", "log1pf", "log1p", "tc_log1p", false},
    {Op::Sin, "sin", 1, 0, "", "sinf", "sin", "tc_sin", false},
    {Op::Cos, "cos", 1, 0, "", "cosf", "cos", "tc_cos", false},
    {Op::Tan, "tan", 1, 0, "", "tanf", "tan", "tc_tan", false},
    {Op::Asin, "asin", 1, 0, "", "asinf", "asin", "tc_asin", false},
    {Op::Acos, "acos", 1, 0, "", "acosf", "acos", "tc_acos", false},
    {Op::Atan, "atan", 1, 0, "", "atanf", "atan", "tc_atan", false},
    {Op::Sinh, "sinh", 1, 0, "", "sinhf", "sinh", "tc_sinh", false},
    {Op::Cosh, "cosh", 1, 0, "", "coshf", "cosh", "tc_cosh", false},
    {Op::Tanh, "tanh", 1, 0, "", "tanhf", "tanh", "tc_tanh", false},
    {Op::Asinh, "asinh", 1, 0, "", "asinhf", "asinh", "tc_asinh", false},
    {Op::Acosh, "acosh", 1, 0, "", "acoshf", "acosh", "tc_acosh", false},
    {Op::Atanh, "atanh", 1, 0, "", "atanhf", "atanh", "tc_atanh", false},
    {Op::Erf, "erf", 1, 0, "", "erff", "erf", "tc_erf", false},
    {Op::Sigmoid, "sigmoid", 1, 0, "", "", "", "tc_sigmoid", false},
    {Op::IsNan, "isnan", 1, 0, "", "isnan", "isnan", "", true},
    {Op::IsInf, "isinf", 1, 0, "", "isinf", "isinf", "", true},
    {Op::Add, "add", 2, 11, "+", "", "", "", false},
    {Op::Sub, "sub", 2, 11, "-", "", "", "", false},
    {Op::Mul, "mul", 2, 12, "*", "", "", "", false},
    {Op::Div, "div", 2, 12, "/", "", "", "", false},
    {Op::FloorDiv, "floor_div", 2, 0, "", "", "", "", false},
    {Op::Mod, "mod", 2, 0, "", "fmodf", "fmod", "tc_mod", false},
    {Op::FloorMod, "floor_mod", 2, 0, "", "", "", "", false},
    {Op::Min, "min", 2, 0, "", "", "", "tc_min2", false},
    {Op::Max, "max", 2, 0, "", "", "", "tc_max2", false},
    {Op::Pow, "pow", 2, 0, "", "powf", "pow", "tc_pow", false},
    {Op::Atan2, "atan2", 2, 0, "", "atan2f", "atan2", "tc_atan2", false},
    {Op::BitAnd, "bit_and", 2, 8, "&", "", "", "", false},
    {Op::BitOr, "bit_or", 2, 6, "|", "", "", "", false},
    {Op::BitXor, "bit_xor", 2, 7, "^", "", "", "", false},
    {Op::Shl, "shl", 2, 0, "", "", "", "", false},
    {Op::Shr, "shr", 2, 0, "", "", "", "", false},
    {Op::Eq, "eq", 2, 9, "==", "", "", "", true},
    {Op::Ne, "ne", 2, 9, "!=", "", "", "", true},
    {Op::Lt, "lt", 2, 10, "<", "", "", "", true},
    {Op::Le, "le", 2, 10, "<=", "", "", "", true},
    {Op::Gt, "gt", 2, 10, ">", "", "", "", true},
    {Op::Ge, "ge", 2, 10, ">=", "", "", "", true},
    {Op::And, "and", 2, 5, "&&", "", "", "tc_and", true},
    {Op::Or, "or", 2, 4, "||", "", "", "tc_or", true},
    {Op::Index, "index", 2, 0, "", "", "", "", false},
    {Op::TextSize, "text_size", 1, 0, "", "", "", "", false},
    {Op::TextByte, "text_byte", 2, 0, "", "", "", "", false},
    {Op::TextFrom, "text_from", 2, 0, "", "", "", "", false},
    {Op::TextFirst, "text_first", 2, 0, "", "", "", "", false},
    {Op::TextJoin, "text_join", 2, 0, "", "", "", "", false},
    {Op::TextLower, "text_lower", 1, 0, "", "", "", "", false},
    {Op::TextUpper, "text_upper", 1, 0, "", "", "", "", false},
    {Op::ReduceAdd, "reduce_add", 1, 0, "", "", "", "tc_hsum", false},
    {Op::ReduceMax, "reduce_max", 1, 0, "", "", "", "tc_hmax", false},
    {Op::ReduceMin, "reduce_min", 1, 0, "", "", "", "tc_hmin", false},
    {Op::Quotient, "quotient", 2, 12, "/", "", "", "tc_quotient", false},
};
static_assert(sizeof kOps / sizeof kOps[0] == kOpCount);

constexpr bool in_order() {
  for (int i = 0; i < kOpCount; i++)
    if (int(kOps[i].op) != i) return false;
  return true;
}
static_assert(in_order(), "rows follow the enum");

}  // namespace

const OpInfo& info(Op op) { return kOps[int(op)]; }

}  // namespace tc
