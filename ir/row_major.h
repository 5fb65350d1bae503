// How far apart the elements of a tensor of its own lie along each axis.
#pragma once
#include "ir/types.h"

namespace tc {

/// In elements: the last axis 1, each other one the product of the sizes behind it.
inline std::vector<int64_t> row_major(const Dims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

}  // namespace tc
