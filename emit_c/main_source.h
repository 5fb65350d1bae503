// The main.c of a package.
#pragma once
#include "emit_c/names.h"

namespace tc {

/// main.c: the model as a table for tc_main.h.
std::string main_source(const Program& p, const ProgramNames& n);

}  // namespace tc
