// Tokens -> definitions: a parser by recursive descent. It goes on after a mistake, at the next line or definition, so that
// one run tells all of them; the tree that comes with problems is not complete.
#pragma once
#include "ir/language/formula_parser.h"
#include "ir/language/syntax.h"

namespace tc::language {

/// All definitions of a text, in order. Never throws for what the text says.
std::vector<Definition> parse(std::string_view text, Problems& problems);

/// Definitions up to the end of the text or to a graph, whose word is left.
std::vector<Definition> read_definitions(TokenReader& r, Problems& problems);
/// A fn whose stages stand in braces, as in a graph. Throws Abandoned.
Definition read_function(TokenReader& r, Problems& problems);
/// "graph(", "graph net("
bool begins_graph(const TokenReader& r);

}  // namespace tc::language
