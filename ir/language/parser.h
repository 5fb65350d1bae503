// Tokens -> definitions: a parser by recursive descent. It goes on after a mistake, at the next line or definition, so that
// one run tells all of them; the tree that comes with problems is not complete.
#pragma once
#include "ir/language/syntax.h"

namespace tc::language {

/// All definitions of a text, in order. Never throws for what the text says.
std::vector<Definition> parse(std::string_view text, Problems& problems);

}  // namespace tc::language
