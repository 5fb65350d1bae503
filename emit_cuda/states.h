// States of a CUDA package: tensors in the memory of the device, the numbers of their elements on the host.
//
// Kernels read these numbers in the memory of the device, where every run stores them before its first graph: so a graph that is
// captured once serves all tokens.
#pragma once
#include <string>

#include "emit_c/names.h"

namespace tc {

/// How functions reach the numbers, where the instance is a pointer, or a reference.
constexpr const char* kCountsOfPointer = "d->counts.";
constexpr const char* kCounts = "d.counts.";

/// Is one of these a size that the instance counts, other in every run?
bool is_counted(const Program& p, const std::vector<SizeSum>& sizes);

/// Parts of NAME.cu; all empty for a program without states.
struct DeviceStates {
  std::string counts;     // a type: the numbers
  std::string members;    // of the instance
  std::string next;       // a function: the numbers after a run
  std::string dropped;    // a condition: there is less than was written
  std::string drop;       // what makes it hold, where the instance is a pointer
  std::string functions;  // what runs do with states
  std::string test_room;  // of run, where the instance is a pointer
  std::string begin_run, end_run;
  std::string keep, forget;                          // sizes that stay the same: of run_async, and of reset
  std::string refuse_captured, execute = "execute";  // of run_async: the function that enqueues
  std::string api;                                   // NAME_reset, NAME_rewind, NAME_state
  std::string comment;                               // of NAME_cuda.h: what holds for a stream, how one saves
};
DeviceStates device_states(const Program& p, const ProgramNames& n);

}  // namespace tc
