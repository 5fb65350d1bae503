// NAME.c: the graph executor, one call a line, and the life of an instance.
#pragma once
#include "emit_c/names.h"

namespace tc {

std::string executor_source(const Program& p, const ProgramNames& n, uint64_t layout_id);

/// A hash of everything in the text that the weights must fit: shapes, types, packing, order.
uint64_t weights_layout_id(const Program& p);

}  // namespace tc
