// The operators as a table for people: docs/operators.md and `tc-emit ops` print it.
#pragma once
#include <string>

namespace tc {

/// Markdown: one row per operator in the order of all_ops(): domain, name, opset version of the definition, attributes
/// with their defaults, and what is special. Ends with a newline.
std::string operator_table();
/// The same as JSON: a list of {"domain", "operator", "since", "attributes": {NAME: DEFAULT}, "note"}.
std::string operator_json();

}  // namespace tc
