// The README.md of a package.
#pragma once
#include "emit_c/names.h"
#include "emit_c/variants.h"

namespace tc {

/// README.md of a package: what the model takes and gives, how to build and to call it.
std::string package_readme(const Program& p, const ProgramNames& n, const std::vector<Variant>& variants);
/// What CMake compiles a CUDA package for unless the user says otherwise, as a list of CMake and in words.
struct CudaArchitectures {
  std::string list, words;
};
CudaArchitectures cuda_architectures(const Program& p);
std::string cuda_package_readme(const Program& p, const ProgramNames& n);

}  // namespace tc
