// Operators of the user's: definitions in a text become rows of the operator table.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ir/language/syntax.h"
#include "ir/ops/op.h"

namespace tc {

using OwnRow = std::shared_ptr<const OpRow>;

/// The rows that `source` defines. Every definition is checked without a node: names, element types over the set of each
/// type parameter, domains (one that neither the table nor `rows` has an operator of that name in). What is wrong goes to
/// `problems`, ready to print; where it does not stay empty, nothing of the text should be used.
std::vector<OwnRow> user_ops(const language::SourceText& source, const std::vector<OwnRow>& rows,
                             std::vector<std::string>& problems);

/// The same of definitions that were read from `file`; mistakes go to `found` with their places.
std::vector<OwnRow> user_ops(std::vector<language::Definition> definitions, const std::string& file,
                             const std::vector<OwnRow>& rows, language::Problems& found);

}  // namespace tc
