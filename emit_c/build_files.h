// Makefile and CMakeLists.txt of a package of C.
#pragma once
#include "emit_c/names.h"
#include "emit_c/variants.h"
#include "support/output_dir.h"

namespace tc {

/// `stems`: what is compiled beside NAME.c, once or, with `variants`, for each of them too: "digits_graph", "kernels/...".
std::vector<OutputFile> build_files(const Program& p, const ProgramNames& n, const std::vector<std::string>& stems,
                                    const std::vector<Variant>& variants);

}  // namespace tc
