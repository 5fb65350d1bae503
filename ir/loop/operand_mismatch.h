// The error of expressions and accesses whose types or ranks do not fit together.
#pragma once
#include "support/error.h"

namespace tc {

/// Operands of two types, a value of another type than its destination, or an index of another rank than its tensor.
/// While the row of an operator is read, the model's operands are the cause: some operators come without a schema that
/// says which of them fit together.
class OperandMismatch : public InternalError {
 public:
  using InternalError::InternalError;
};

}  // namespace tc
