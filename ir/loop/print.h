// Loop IR as text: what tests show and --print-ir-after prints. Deterministic; variables of one name are told apart by
// a suffix in order of appearance.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "ir/loop/ir.h"

namespace tc {

/// "serial", "block.x"
std::string_view kind_name(ForKind k);
/// "shared"
std::string scope_name(Scope s);

std::string to_text(const Expr& e);
std::string to_text(const Stmt& s, int indent = 0);

/// What to_text(s) calls each variable and buffer. Looked up by identity only.
std::map<const void*, std::string> printed_names(const Stmt& s);

}  // namespace tc
