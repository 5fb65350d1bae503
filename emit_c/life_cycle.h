// The functions of the API that are no graph: NAME_init, NAME_free, NAME_check_weights, NAME_strerror.
#pragma once
#include "emit_c/variants.h"

namespace tc {

/// "if (!m || !in || !out || !in->image) return NAME_E_ARG;": how NAME_run begins.
std::vector<std::string> argument_tests(const Program& p, const ProgramNames& n);
/// The functions themselves; with `variants` NAME_init_cpu, which chooses among them, and NAME_run, too.
std::string life_cycle(const Program& p, const ProgramNames& n, uint64_t layout_id,
                       const std::vector<Variant>& variants);
/// The text of NAME.c of a package for several processors.
std::string api_source(const Program& p, const ProgramNames& n, uint64_t layout_id,
                       const std::vector<Variant>& variants);
/// NAME_workspace_bytes, of programs with sizes that have no upper bound; empty: there are none.
std::string workspace_functions(const Program& p, const ProgramNames& n);
/// The cases of NAME_strerror.
std::string strerror_rows(const Program& p, const ProgramNames& n, bool tests_cpu = false);

}  // namespace tc
