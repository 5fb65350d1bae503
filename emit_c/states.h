// NAME_rewind() and NAME_state(), wherever a target has its states.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "emit_c/names.h"

namespace tc {

/// How the functions reach what an instance keeps, by the number of the input.
struct StateMemory {
  std::function<std::string(size_t)> data;   // the address, of bytes
  std::function<std::string(size_t)> count;  // the number, of an input that the instance counts
};

/// What NAME_reset() sets to zeros: counts where they lie in the workspace like tensors, and states that do not grow.
std::vector<size_t> emptied_by_zeros(const Program& p);

/// `begin`, `end`: lines in front and behind; `refused`: a condition besides that there are fewer elements. Empty if the
/// instance counts nothing, or states grow in no proportion.
std::string rewind_function(const Program& p, const ProgramNames& n, const StateMemory& memory,
                            const std::string& begin, const std::string& refused, const std::string& end = "");
/// `begin`: lines in front.
std::string state_function(const Program& p, const ProgramNames& n, const StateMemory& memory,
                           const std::string& begin = "");

}  // namespace tc
