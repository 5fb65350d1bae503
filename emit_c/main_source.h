// The main.c of a package.
#pragma once
#include "emit_c/names.h"

namespace tc {

/// main.c: the model as a table for tc_main.h.
std::string main_source(const Program& p, const ProgramNames& n);
/// NAME_profile.h: what each kernel has to do, as --profile compares its time with. `traces_calls`: it makes steps of the calls
/// in NAME.c, too; CUDA's executor does that by itself.
std::string profile_header(const Program& p, const ProgramNames& n, bool traces_calls);

}  // namespace tc
