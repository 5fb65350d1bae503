#include "ir/loop/op_rules.h"

#include "ir/loop/build.h"
#include "ir/loop/operand_mismatch.h"

namespace tc {

Op opposite(Op op) {
  switch (op) {
    case Op::Lt: return Op::Ge;
    case Op::Le: return Op::Gt;
    case Op::Gt: return Op::Le;
    case Op::Ge: return Op::Lt;
    case Op::Eq: return Op::Ne;
    default: return Op::Eq;
  }
}

Op mirrored(Op op) {
  switch (op) {
    case Op::Lt: return Op::Gt;
    case Op::Le: return Op::Ge;
    case Op::Gt: return Op::Lt;
    case Op::Ge: return Op::Le;
    default: return op;
  }
}

bool may_leave_type(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Neg:
    case Op::Abs:
    case Op::Div:
    case Op::FloorDiv:
    case Op::Pow:
    case Op::BitNot:
    case Op::Shl: return true;
    default: return false;
  }
}

bool suits_truth_values(Op op, DType t) {
  switch (op) {
    case Op::Not:
    case Op::And:
    case Op::Or: return t == DType::Bool;
    case Op::Neg:
    case Op::Abs:
    case Op::Sign:
    case Op::BitNot:
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Div:
    case Op::FloorDiv:
    case Op::Mod:
    case Op::FloorMod:
    case Op::Pow:
    case Op::Shl:
    case Op::Shr:
    case Op::ReduceAdd: return t != DType::Bool;
    default: return true;
  }
}

void check_truth_values(Op op, DType t) {
  if (suits_truth_values(op, t)) return;
  const std::string name(info(op).name), wanted(t == DType::Bool ? "numbers" : "bool");
  throw OperandMismatch(name + " is of " + wanted + ", not of " + std::string(info(t).name));
}

Expr identity_of(Op op, DType t) {
  switch (op) {
    case Op::Add:
    case Op::Or:
    case Op::BitOr:
    case Op::BitXor: return zero(t);
    case Op::Mul: return make_const(t, 1);
    case Op::Max: return lowest(t);
    case Op::Min: return highest(t);
    case Op::And: return make_int(t, t == DType::Bool ? 1 : -1);
    case Op::BitAnd: return make_int(t, -1);
    default: return {};
  }
}

}  // namespace tc
