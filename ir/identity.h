// Structural identity: what makes two functions, kernels or programs the same. An identity is a string of bytes, not made
// for reading: equal for two values exactly if all of their fields are (ir/fields.h), where variables and buffers count by
// their order (the first to appear, the second, ...) and by what their definitions say. Sharing of subexpressions does
// not count, and neither does a field that has its default value, so that a field that is added changes no identity.
// Names that come from the model (ModelText), the elements of weights and estimates (KernelWork) are no part of it.
#pragma once
#include <string>

#include "ir/program.h"
#include "ir/tensor_fn.h"

namespace tc {

std::string identity_of(const TensorFn& fn);
std::string identity_of(const Stmt& s);
std::string identity_of(const Kernel& k);
/// All that the executor does and where everything lies: what a blob of weights has to fit. Not the program's own name.
std::string identity_of(const Program& p);

}  // namespace tc
