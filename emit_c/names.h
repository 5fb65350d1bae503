// The C names of a program's values: one table per scope, made once, used by every file of the package.
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace tc {

/// "DIGITS" of "digits"; what is no letter of ASCII stays.
std::string in_capitals(std::string s);

struct ProgramNames {
  explicit ProgramNames(const Program& p);
  std::vector<std::string> inputs, outputs;  // fields of the structs
  std::vector<std::string> slots, weights;   // after NAME_AT_ and NAME_W_
  std::string self;                          // the instance, as a parameter: "m", or what is free
  std::string lower, upper;                  // "digits", "DIGITS"
};

}  // namespace tc
