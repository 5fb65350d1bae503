// How far two tensors of the same type and shape are from each other.
#pragma once
#include <string>

#include "ir/types.h"

namespace tc {

/// "12 of 400 elements differ, by 0.01 at most; root mean square of the differences 0.002, of the elements 0.5". Empty if
/// all bytes are equal. Needs: one type and shape.
std::string weight_difference(const TensorData& before, const TensorData& after);

}  // namespace tc
