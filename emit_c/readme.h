// The README.md of a package.
#pragma once
#include "emit_c/names.h"
#include "emit_c/variants.h"

namespace tc {

/// README.md of a package: what the model takes and gives, how to build and to call it.
std::string package_readme(const Program& p, const ProgramNames& n, const std::vector<Variant>& variants);
std::string cuda_package_readme(const Program& p, const ProgramNames& n);

}  // namespace tc
