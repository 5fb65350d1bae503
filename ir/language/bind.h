// What the names of a definition stand for in one node, or in a trial without one.
#pragma once
#include "ir/language/evaluator.h"
#include "ir/ops/op.h"

namespace tc::language {

/// The element types of a type parameter, in the order of the text. Throws FormulaError.
std::vector<DType> types_of(const TypeParameter& t);

/// Operands, sizes, types and attributes of a node; refuses what does not fit through OpBuilder::reject.
Names bind_node(const Definition& d, const SourceText& source, OpBuilder& b);

/// Every size a sample, every attribute its default or a sample; `types` gives each type parameter.
/// Throws FormulaError where a size or a type has no meaning.
Names bind_samples(const Definition& d, const std::map<std::string, DType>& types);

}  // namespace tc::language
