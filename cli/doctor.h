// What of the machine tc-emit's commands need: compilers, CUDA, references.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tc {

struct Finding {
  std::string_view group;    // "C", "CUDA", "references"
  std::string_view name;     // "C compiler"
  std::string found;         // "cc: gcc 12.2.0"; "": it is not there
  std::string_view serves;   // what for
  std::string_view way_out;  // how to have it
};

/// Looks on PATH and tries what it finds: a compiler counts if it makes a program that runs.
std::vector<Finding> examine_machine();

/// Of --version: the first line that has a version, without what is no use to a reader. "" if there is none.
std::string version_line(std::string_view printed);

}  // namespace tc
