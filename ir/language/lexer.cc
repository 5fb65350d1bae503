#include "ir/language/lexer.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "support/text.h"

namespace tc::language {
namespace {

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

// The byte behind a backslash at s[at], and where it ends; nothing if there is no such escape.
std::optional<std::pair<char, size_t>> escaped(std::string_view s, size_t at) {
  const char c = at + 1 < s.size() ? s[at + 1] : 0;
  if (c == '"' || c == '\\') return {{c, at + 2}};
  if (c == 'n') return {{'\n', at + 2}};
  unsigned char byte = 0;
  if (c != 'x' || at + 4 > s.size()) return {};
  const char* end = s.data() + at + 4;
  if (std::from_chars(s.data() + at + 2, end, byte, 16).ptr != end) return {};
  return {{char(byte), at + 4}};
}

}  // namespace

Lexer::Lexer(std::string_view text, Problems& problems, size_t max_bytes) : text_(text), problems_(problems) {
  if (text_.size() <= max_bytes) return;
  problem({}, "the file has more than " + to_text(int64_t(max_bytes)) + " bytes");
  text_ = {};
}

Token Lexer::next() {
  Token t;
  while (skip_blanks())
    if (token(t)) return t;
  return {Token::Kind::End, place(), true, "", 0, 0};
}

bool Lexer::skip_blanks() {
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

bool Lexer::token(Token& t) {
  const std::string_view rest = text_.substr(at_);
  t = {};
  t.at = place();
  t.begins_line = fresh_;
  fresh_ = false;
  if (is_letter(rest[0])) {
    t.kind = Token::Kind::Name;
    const size_t n = name_length(rest);
    t.text = rest.substr(0, n);
    at_ += n;
    if (n > kMaxName) problem(t.at, "a name has at most " + to_text(int64_t(kMaxName)) + " characters");
    return n <= kMaxName;
  }
  if (is_digit(rest[0]))
    number(t, rest);
  else if (rest[0] == '"')
    text(t, rest);
  else if (!symbol(t, rest)) {
    at_++;
    problem(t.at, "no part of the language: '" + printable(rest.substr(0, 1)) + "'");
    return false;
  }
  return true;
}

void Lexer::number(Token& t, std::string_view rest) {
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
    problem(t.at, whole ? "an integer has at most 63 bits" : "the number is too large or too small for 64 bits");
    return;
  }
  if (r.ec != std::errc() || r.ptr != to || (n < rest.size() && is_letter(rest[n]))) {
    problem(t.at, "this is no number");
    at_ += name_length(rest.substr(n));
  }
}

void Lexer::text(Token& t, std::string_view rest) {
  t.kind = Token::Kind::Text;
  size_t k = 1;
  while (k < rest.size() && rest[k] != '"' && rest[k] != '\n') {
    const auto special = rest[k] == '\\' ? escaped(rest, k) : std::pair(rest[k], k + 1);
    if (!special) problem({line_, t.at.column + int(k)}, "a backslash stands before \", \\, n or xNN in a text");
    t.text += special ? special->first : rest[k];
    k = special ? special->second : k + 1;
  }
  const bool closed = k < rest.size() && rest[k] == '"';
  at_ += closed ? k + 1 : k;
  if (!closed) problem(t.at, "the closing '\"' of this text is missing");
}

bool Lexer::symbol(Token& t, std::string_view rest) {
  t.kind = Token::Kind::Symbol;
  const auto pair = std::find(std::begin(kPairs), std::end(kPairs), rest.substr(0, 2));
  if (pair == std::end(kPairs) && kSingles.find(rest[0]) == kSingles.npos) return false;
  t.text = rest.substr(0, pair == std::end(kPairs) ? 1 : 2);
  at_ += t.text.size();
  return true;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && name_length(text) == text.size();
}

std::string quoted(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      s += std::string("\\") + c;
    else if (c == '\n')
      s += "\\n";
    else if (c >= ' ' && c <= '~')
      s += c;
    else
      s += std::string("\\x") + kDigits[uint8_t(c) >> 4] + kDigits[uint8_t(c) & 15];
  }
  return s + "\"";
}

}  // namespace tc::language
