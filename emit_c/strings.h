// Strings in a package: their type, and constants as tables of views.
#pragma once
#include <string>
#include <string_view>

#include "emit_c/names.h"

namespace tc {

/// Is any tensor of strings?
bool has_strings(const Program& p);

/// The declaration of tc_string, which NAME.h and tc_string.h share under one guard.
std::string string_type();

/// The C name of the table that holds weight `i`, a constant of strings.
std::string table_name(const ProgramNames& n, size_t i);

/// NAME_strings.h: "static const tc_string NAME_text_labels[] = {{"setosa", 6}, ...};" for every constant of strings. Empty
/// if there is none. Strings too long for a literal of C99 are arrays of bytes.
std::string string_tables(const Program& p, const ProgramNames& n);

}  // namespace tc
