// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// Stands in for CUDA's header of this name where TC_CUDA_ON_CPU builds a package without CUDA.
#ifndef TC_CUDA_RUNTIME_ON_CPU_H
#define TC_CUDA_RUNTIME_ON_CPU_H
#include "cuda_on_cpu.h"
#include "cuda_on_cpu_api.h"
#endif
