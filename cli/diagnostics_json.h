// Messages as data: --diagnostics json.
#pragma once
#include <string>
#include <vector>

#include "support/error.h"

namespace tc {

/// One line: {"code", "severity": "error"|"warning", "exit_code", "file", "node", "op", "value", "input", "message",
/// "notes"}. Names are the model's own, bytes that are no UTF-8 become U+FFFD; what a message does not tell is null.
std::string diagnostic_json(const Diagnostic& d);

/// Whether the words of a command line ask for it, also where they make no sense otherwise.
bool wants_json_diagnostics(const std::vector<std::string>& args);

}  // namespace tc
