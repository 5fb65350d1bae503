// The part of the parser that reads expressions, and what its other part (parser.cc) shares with it.
#pragma once
#include <algorithm>
#include <string_view>

#include "ir/language/lexer.h"
#include "ir/language/syntax.h"

namespace tc::language {

/// Ends the reading of a statement; the problem is told already.
struct Abandoned {};

/// A list of tokens, read from the front.
class TokenReader {
 public:
  TokenReader(std::vector<Token> tokens, Problems& problems) : tokens_(std::move(tokens)), problems_(problems) {}

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  size_t position() const { return at_; }
  bool at_end() const { return peek().kind == Token::Kind::End; }
  bool is_symbol(std::string_view s, size_t ahead = 0) const {
    return peek(ahead).kind == Token::Kind::Symbol && peek(ahead).text == s;
  }
  bool is_name(size_t ahead = 0) const { return peek(ahead).kind == Token::Kind::Name; }
  bool is_word(std::string_view w, size_t ahead = 0) const { return is_name(ahead) && peek(ahead).text == w; }
  Token take() {
    const Token t = peek();
    if (!at_end()) at_++;
    return t;
  }
  /// Takes the symbol if it comes next.
  bool accept(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    at_++;
    return true;
  }
  /// `where` says what for: "after the sizes".
  void expect(std::string_view symbol, std::string_view where);
  std::string expect_name(std::string_view what);
  /// "expected ')' after the operands, found '['"
  [[noreturn]] void expected(const std::string& what) const;
  [[noreturn]] void fail(const Place& at, std::string message) const;
  void tell(const Place& at, std::string message) const { problems_.push_back({at, std::move(message)}); }

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  Problems& problems_;
};

/// An expression. Throws Abandoned.
Formula read_formula(TokenReader& r);
/// Expressions up to the closing symbol, which is taken; separated by commas.
Formulas read_formulas(TokenReader& r, std::string_view closing, std::string_view where);
/// "sum(" and the first axis: a reduction, not a call.
bool begins_reduction(const TokenReader& r);

}  // namespace tc::language
