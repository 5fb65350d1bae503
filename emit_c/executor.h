// NAME.c: the graph executor, one call a line, and the life of an instance.
#pragma once
#include "emit_c/names.h"
#include "emit_c/source_writer.h"

namespace tc {

/// The text of NAME.c. `layout_id`: of the weights that it accepts (Program::weights_layout).
std::string executor_source(const Program& p, const ProgramNames& n, uint64_t layout_id);

/// A hash of everything in the text that the weights must fit: shapes, types, packing, order.

/// A comment with the names of the model's nodes, escaped, and text of our own.
void print_origins(SourceWriter& out, const std::vector<ModelText>& names, const std::string& note);
/// The cases of NAME_strerror.
std::string strerror_rows(const ProgramNames& n, bool makes_strings = false);

}  // namespace tc
