// How the sizes of results follow from those of operands: the question where no element is read.
#pragma once
#include <optional>
#include <set>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/tensor_fn.h"

namespace tc {

struct OperandAxis {
  size_t operand = 0;
  int axis = 0;
};

/// The axes of each output of `fn`, the meaning of `n`, that have as many elements as these axes of operands, `capacity` now,
/// however many that are. Nothing if a result follows them in another way, or if what it holds depends on the size.
std::optional<std::vector<std::set<int>>> axes_by_shape(const Node& n, const TensorFn& fn,
                                                        const std::vector<OperandAxis>& operands, int64_t capacity);

/// The axes of each output that are longer where these of operands are. Nothing if what `fn` computes depends on how long they are,
/// beside where it ends: a formula of the user's may have the size as a number, or sum over as many.
std::optional<std::vector<std::set<int>>> growing_axes(const Node& n, const TensorFn& fn,
                                                       const std::vector<OperandAxis>& operands, int64_t capacity);

}  // namespace tc
