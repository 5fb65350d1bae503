// The operators as a table for people: docs/operators.md and `tc-emit ops` print it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tc {

struct OpRow;
/// Rows of the user's, listed behind those of the table.
using OwnRows = std::vector<std::shared_ptr<const OpRow>>;

/// Markdown: one row per operator in the order of all_ops(): domain, name, opset version of the definition, attributes
/// with their defaults, and what is special. Ends with a newline. `word`: only those that have it in domain and name, in
/// letters of any case.
std::string operator_table(std::string_view word = "", const OwnRows& own = {});
/// The same as JSON: a list of {"domain", "operator", "since", "attributes": {NAME: DEFAULT}, "note"}.
std::string operator_json(std::string_view word = "", const OwnRows& own = {});
/// Whether an operator has the word in domain and name.
bool has_operator(std::string_view word, const OwnRows& own = {});

}  // namespace tc
