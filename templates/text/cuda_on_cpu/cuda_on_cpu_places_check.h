// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// What the checks ask about addresses of the program.
#ifndef TC_CUDA_ON_CPU_PLACES_CHECK_H
#define TC_CUDA_ON_CPU_PLACES_CHECK_H
#include <string>

#include "cuda_on_cpu_parts.h"

namespace tc_cpu {

// "file:line" of a call's return address; the module and an offset where nobody knows.
std::string place_of(const void *pc);
// Is it memory of the program that nobody can write?
bool is_constant(const void *p);

}  // namespace tc_cpu
#endif
