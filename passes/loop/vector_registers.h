// See vector_registers.cc.
#pragma once
#include "ir/program.h"

namespace tc {

/// Sets k.vectors and k.single_vectors from the body.
void find_vector_registers(Kernel& k);

}  // namespace tc
