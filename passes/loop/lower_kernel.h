// From a template's result to a kernel in printable form: the lists of loop passes.
#pragma once
#include "ir/program.h"
#include "passes/loop/loop_pass.h"
#include "passes/schedule/schedule.h"

namespace tc {

/// A scheduled function in printable form: body, parameters and scratch are set; name and description are the caller's.
/// Parameters: inputs, prologue outputs (weights), outputs, scratch, status. `title`: what dumps call it.
Kernel lower_kernel(const Scheduled& s, const std::string& title, LoopPassRunner& passes);
/// The same for a GPU: the body is the host's part, the functions of the device are beside it. `s` is of the form that
/// templates/cuda/template.h describes.
Kernel lower_cuda_kernel(const Scheduled& s, const std::string& title, LoopPassRunner& passes);
/// Runs last_loop_passes() over a kernel that has its name.
void finish_kernel(Kernel& k, LoopPassRunner& passes);

}  // namespace tc
