// Names of kernels, made from what they compute.
#pragma once
#include <string>

#include "ir/tensor_fn.h"

namespace tc {

/// The signature of a kernel: the names of its stages, sizes, window, dtype, and 4 hex digits of `key` (the
/// definition):
///   conv2d_bias_relu_56x56x64_256_k3s1_1f0a
/// Lower case, an identifier, under 64 characters; the same function has the same name in every model. `name` takes the
/// place of the stages' names unless it is empty.
std::string kernel_name(const TensorFn& fn, const std::string& key, const std::string& name = "");

/// "conv2d, bias, relu": the stages' names, runs counted.
std::vector<std::string> stage_names(const TensorFn& fn);

}  // namespace tc
