// How fast a processor could be at most.
#pragma once
#include "ir/program.h"
#include "templates/cpu/cpu_model.h"

namespace tc {

/// Backend::floor_ns for a row of --cpu: the longer of
///   the products, at the rate of its vector units, and
///   the operands, at the bandwidth of one core to where they lie: the results of other kernels in the smallest cache that
///   holds all operands of the call, weights, which are read once a run, in the smallest that holds all that a run touches.
/// Text for any processor has the floors of x86-64-v4, the fastest that it is compiled for. 0 for "generic", which stands for no
/// processor.
double floor_ns(const KernelWork& work, int64_t run_bytes, const CpuModel& cpu);

}  // namespace tc
