// Text -> tokens. Blanks and comments (# to the end of the line) separate; a token knows whether it begins a line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/language/source.h"

namespace tc::language {

struct Token {
  enum class Kind { End, Name, Integer, Number, Text, Symbol } kind = Kind::End;
  Place at;
  bool begins_line = false;
  std::string text;  // of a name, a symbol, a text without its quotes
  int64_t integer = 0;
  double number = 0;
};

/// The tokens of a text with End as the last. What is no token is told to `problems`;
/// what was meant to be a number or a text stands there as one, so that nothing else is told of it.
std::vector<Token> tokens_of(std::string_view text, Problems& problems);

/// A name: a letter or '_', then letters, digits and '_'; "~2" at its end tells apart what has one name otherwise.
bool is_name(std::string_view text);

}  // namespace tc::language
