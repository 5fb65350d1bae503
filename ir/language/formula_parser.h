// The part of the parser that reads expressions, and what its other part (parser.cc) shares with it.
#pragma once
#include <deque>
#include <string_view>

#include "ir/language/lexer.h"
#include "ir/language/syntax.h"

namespace tc::language {

/// Ends the reading of a statement; the problem is told already.
struct Abandoned {};

/// The tokens of a text, read from the front.
class TokenReader {
 public:
  TokenReader(std::string_view text, Problems& problems, size_t max_bytes = Lexer::kMaxBytes)
      : lexer_(text, problems, max_bytes), problems_(problems) {}

  const Token& peek(size_t ahead = 0) const {
    while (ahead_.size() <= ahead) ahead_.push_back(lexer_.next());
    return ahead_[ahead];
  }
  /// How many were taken.
  size_t position() const { return taken_; }
  bool at_end() const { return peek().kind == Token::Kind::End; }
  bool is_symbol(std::string_view s, size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::Symbol && peek(ahead).text == s;
  }
  bool is_name(size_t ahead = 0) const { return peek(ahead).kind == Token::Kind::Name; }
  bool is_word(std::string_view w, size_t ahead = 0) const { return is_name(ahead) && peek(ahead).text == w; }
  Token take() {
    Token t = peek();
    ahead_.pop_front();
    taken_++;
    return t;
  }
  /// Takes the symbol if it comes next.
  bool accept(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    take();
    return true;
  }
  /// `where` says what for: "after the sizes".
  void expect(std::string_view symbol, std::string_view where);
  std::string expect_name(std::string_view what);
  std::string expect_text(std::string_view what);
  int64_t expect_integer(std::string_view what);  // '-' may stand before it
  /// "expected ')' after the operands, found '['"
  [[noreturn]] void expected(const std::string& what) const;
  [[noreturn]] void fail(const Place& at, std::string message) const;
  void tell(const Place& at, std::string message) const { problems_.push_back({at, std::move(message)}); }

 private:
  mutable Lexer lexer_;
  mutable std::deque<Token> ahead_;  // looked at, not taken
  size_t taken_ = 0;
  Problems& problems_;
};

/// An expression. Throws Abandoned.
Formula read_formula(TokenReader& r);
/// Expressions up to the closing symbol, which is taken; separated by commas.
Formulas read_formulas(TokenReader& r, std::string_view closing, std::string_view where);
/// "loops (y: f32[4]) as sorted { ... }" as a stage: results, label, statements. Throws Abandoned.
StageSyntax read_nest(TokenReader& r);
/// "x @ 3: f32[8]?"
Operand read_operand(TokenReader& r);

/// "sum(" and the first axis: a reduction, not a call.
bool begins_reduction(const TokenReader& r);

}  // namespace tc::language
