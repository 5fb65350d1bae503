// Sums of products of integers of 8 bits with zero points, in the form that tensor cores multiply.
#pragma once
#include "templates/cuda/contraction.h"

namespace tc {

/// The same sum with factors of 8 bits each: sum(k) (x - z) w = sum(k) x w - z sum(k) w, where w is known while compiling.
/// The factors' `zero` holds what is to be taken away; where x is read outside of its bounds, it is z. Nothing, if a factor
/// has another form.
std::optional<CudaContraction> factors_of_bytes(const CudaContraction& m);

/// Takes the zeros away in the epilogue. Adds the sums of the known factor to `s`.
void subtract_zeros(CudaContraction& m, Scheduled& s);

}  // namespace tc
