#pragma once
#include "ir/program.h"
#include "passes/schedule/schedule.h"

namespace tc {

/// A scheduled function in printable form: body, parameters and scratch are set; name and words are the caller's.
/// Parameters: inputs, prologue outputs (weights), outputs, scratch, status.
Kernel lower_kernel(const Scheduled& s);

}  // namespace tc
