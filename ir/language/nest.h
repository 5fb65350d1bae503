// The statements of a stage that is made of loops -> Loop IR.
#pragma once
#include "ir/language/evaluator.h"
#include "ir/language/syntax.h"

namespace tc::language {

/// `names` has the tensors that may be read and written. Throws FormulaError.
Stmt nest_of(const std::vector<LoopSyntax>& loops, Names names);

/// "workspace"; of the places that a tensor of a nest may lie in.
std::optional<Scope> scope_named(const std::string& name);
/// "unroll"; empty: serial.
std::optional<ForKind> loop_kind_named(const std::string& name);

}  // namespace tc::language
