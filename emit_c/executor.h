// The graph executor, one call a line: in NAME.c beside the life of an instance, or, in packages for several processors, in
// NAME_graph.c, which is compiled for each of them.
#pragma once
#include <optional>

#include "emit_c/names.h"
#include "emit_c/source_writer.h"

namespace tc {

/// The text of NAME.c of a package for one processor. `layout_id`: of the weights that it accepts (Program::weights_layout).
std::string executor_source(const Program& p, const ProgramNames& n, uint64_t layout_id);

/// The text of NAME_graph.c, or, for one of Program::variants, of NAME_graph_v3.c.
std::string graph_source(const Program& p, const ProgramNames& n, std::optional<size_t> variant = {});

/// A comment with the names of the model's nodes, escaped, and text of our own.
void print_origins(SourceWriter& out, const std::vector<ModelText>& names, const std::string& note);

}  // namespace tc
