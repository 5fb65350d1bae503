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

/// Takes a text apart, one token at a time, so that what is read from it is all that takes memory.
class Lexer {
 public:
  static constexpr size_t kMaxBytes = size_t(1) << 20;  // of a file of definitions

  /// What is no token is told to `problems`; what was meant to be a number or a text stands there as one, so that nothing
  /// else is told of it. A text of more than `max_bytes` is told and has no tokens. `text` has to stay.
  Lexer(std::string_view text, Problems& problems, size_t max_bytes = kMaxBytes);
  /// The next token; at the end End, as often as it is asked.
  Token next();

 private:
  Place place() const { return {line_, int(at_ - line_start_) + 1}; }
  bool skip_blanks();
  bool token(Token& t);
  void number(Token& t, std::string_view rest);
  void text(Token& t, std::string_view rest);
  bool symbol(Token& t, std::string_view rest);
  void problem(const Place& at, std::string message) { problems_.push_back({at, std::move(message)}); }

  std::string_view text_;
  Problems& problems_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  bool fresh_ = true;  // nothing stands on this line yet
};

/// A name: a letter or '_', then letters, digits and '_'; "~2" at its end tells apart what has one name otherwise.
bool is_name(std::string_view text);

/// In double quotes: printable ASCII as it is but for \" and \\, other bytes as \n or \xNN.
std::string quoted(std::string_view text);

}  // namespace tc::language
