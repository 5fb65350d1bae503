// Functions of which one slice is wanted.
#pragma once
#include <optional>

#include "ir/tensor_fn.h"

namespace tc {

/// `fn` where its only output has one element along `axis`: the first of what it has. Operands lie where they are, and are as
/// short as that where what is read lies at their start; stages between compute no more than it takes. Null where a stage is
/// no formula.
std::optional<TensorFn> first_slice(const TensorFn& fn, int axis);

}  // namespace tc
