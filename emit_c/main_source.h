// The main.c of a package.
#pragma once
#include "emit_c/names.h"
#include "emit_c/variants.h"

namespace tc {

/// main.c: the model as a table for tc_main.h. `threads`: kernels have chunks, so that --threads reaches tc_parallel.h.
std::string main_source(const Program& p, const ProgramNames& n, const std::vector<Variant>& variants = {},
                        bool threads = false);
/// Which calls of kernels NAME_profile.h makes steps of: none, as CUDA's executor does it by itself; those of NAME.c; those of
/// NAME_graph.c, where a kernel may have the name of a variant.
enum class TracedCalls : uint8_t { None, Plain, Variants };

/// NAME_profile.h: what each kernel has to do, as --profile compares its time with, and what makes steps of calls.
std::string profile_header(const Program& p, const ProgramNames& n, TracedCalls calls);

}  // namespace tc
