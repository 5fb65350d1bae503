// Makefile and CMakeLists.txt of a package of C.
#pragma once
#include "emit_c/names.h"
#include "emit_c/variants.h"
#include "support/output_dir.h"

namespace tc {

/// `graph`: what is compiled beside NAME.c, once or, with `variants`, for each of them too: "digits_graph", "kernels/..."; of a
/// list of processors for those that the file says. `pool`: and tc_pool.c.
std::vector<OutputFile> build_files(const Program& p, const ProgramNames& n, const std::vector<GraphFile>& graph,
                                    const std::vector<Variant>& variants, bool pool);

}  // namespace tc
