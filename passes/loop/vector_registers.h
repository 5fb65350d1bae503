// See vector_registers.cc.
#pragma once
#include "ir/program.h"

namespace tc {

/// Names of places of vectors in registers become their formulas.
Stmt with_places_by_formula(const Stmt& body);

/// Sets k.vectors and k.single_vectors from the body.
void find_vector_registers(Kernel& k);

}  // namespace tc
