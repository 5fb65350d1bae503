#include "ir/loop/op_rules.h"

#include "ir/loop/build.h"

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
