#include "ir/language/lexer.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "support/text.h"

namespace tc::language {
namespace {

constexpr size_t kMaxBytes = size_t(1) << 20;  // of a file
constexpr size_t kMaxName = 80;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::string_view kPairs[] = {"->", "=>", "==", "!=", "<=", ">=", "&&", "||", "//"};
constexpr std::string_view kSingles = "()[]{}<>,:=+-*/%!~&|^?.@";

size_t name_length(std::string_view s) {
  size_t n = 0;
  while (n < s.size() && (is_letter(s[n]) || (n > 0 && is_digit(s[n])))) n++;
  if (n == 0 || n + 1 >= s.size() || s[n] != '~' || !is_digit(s[n + 1])) return n;
  for (n++; n < s.size() && is_digit(s[n]);) n++;
  return n;
}

class Lexer {
 public:
  Lexer(std::string_view text, Problems& problems) : text_(text), problems_(problems) {}

  std::vector<Token> run() {
    if (text_.size() > kMaxBytes) {
      problems_.push_back({{}, "the file has more than " + to_text(int64_t(kMaxBytes)) + " bytes"});
      text_ = {};
    }
    while (skip_blanks()) token();
    tokens_.push_back({Token::Kind::End, place(), true, "", 0, 0});
    return std::move(tokens_);
  }

 private:
  Place place() const { return {line_, int(at_ - line_start_) + 1}; }

  bool skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '\n') {
        at_++;
        line_++;
        line_start_ = at_;
        fresh_ = true;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        at_++;
      } else {
        return true;
      }
    }
    return false;
  }

  void token() {
    const std::string_view rest = text_.substr(at_);
    Token t;
    t.at = place();
    t.begins_line = fresh_;
    fresh_ = false;
    if (is_letter(rest[0])) {
      t.kind = Token::Kind::Name;
      const size_t n = name_length(rest);
      t.text = rest.substr(0, n);
      at_ += n;
      if (n > kMaxName) return problem(t, "a name has at most " + to_text(int64_t(kMaxName)) + " characters");
    } else if (is_digit(rest[0])) {
      number(t, rest);
    } else if (rest[0] == '"') {
      text(t, rest);
    } else if (!symbol(t, rest)) {
      at_++;
      return problem(t, "no part of the language: '" + printable(rest.substr(0, 1)) + "'");
    }
    tokens_.push_back(std::move(t));
  }

  void number(Token& t, std::string_view rest) {
    size_t n = 0;
    while (n < rest.size() && is_digit(rest[n])) n++;
    const auto digits = [&](size_t from) {
      while (from < rest.size() && is_digit(rest[from])) from++;
      return from;
    };
    const bool whole = !(n < rest.size() && (rest[n] == '.' || rest[n] == 'e' || rest[n] == 'E'));
    if (n < rest.size() && rest[n] == '.') n = digits(n + 1);
    if (n < rest.size() && (rest[n] == 'e' || rest[n] == 'E')) {
      size_t e = n + 1;
      if (e < rest.size() && (rest[e] == '+' || rest[e] == '-')) e++;
      n = digits(e) > e ? digits(e) : n;
    }
    at_ += n;
    const char *from = rest.data(), *to = rest.data() + n;
    t.kind = whole ? Token::Kind::Integer : Token::Kind::Number;
    const std::from_chars_result r = whole ? std::from_chars(from, to, t.integer) : std::from_chars(from, to, t.number);
    if (r.ec == std::errc::result_out_of_range) {
      problem(t, whole ? "an integer has at most 63 bits" : "the number is too large or too small for 64 bits");
      return;
    }
    if (r.ec != std::errc() || r.ptr != to || (n < rest.size() && is_letter(rest[n]))) {
      problem(t, "this is no number");
      at_ += name_length(rest.substr(n));
    }
  }

  void text(Token& t, std::string_view rest) {
    const size_t end = rest.find_first_of("\"\n", 1);
    if (end == rest.npos || rest[end] == '\n') {
      at_ += std::min(end, rest.size());
      problem(t, "the closing '\"' of this text is missing");
      t.kind = Token::Kind::Text;
      return;
    }
    t.kind = Token::Kind::Text;
    t.text = rest.substr(1, end - 1);
    at_ += end + 1;
  }

  bool symbol(Token& t, std::string_view rest) {
    t.kind = Token::Kind::Symbol;
    const auto pair = std::find(std::begin(kPairs), std::end(kPairs), rest.substr(0, 2));
    if (pair == std::end(kPairs) && kSingles.find(rest[0]) == kSingles.npos) return false;
    t.text = rest.substr(0, pair == std::end(kPairs) ? 1 : 2);
    at_ += t.text.size();
    return true;
  }

  void problem(const Token& t, std::string message) { problems_.push_back({t.at, std::move(message)}); }

  std::string_view text_;
  Problems& problems_;
  std::vector<Token> tokens_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  bool fresh_ = true;  // nothing stands on this line yet
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text, Problems& problems) { return Lexer(text, problems).run(); }

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && name_length(text) == text.size();
}

}  // namespace tc::language
