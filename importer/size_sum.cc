#include "importer/size_sum.h"

#include <algorithm>
#include <cctype>

#include "support/sum_text.h"

namespace tc {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<SizeExpression> run() {
    SizeExpression e;
    for (bool first = true; first || !ended(); first = false) {
      int64_t sign = 1;
      if (accept('-'))
        sign = -1;
      else if (!accept('+') && !first)
        return std::nullopt;
      if (!term(e, sign)) return std::nullopt;
    }
    std::erase_if(e.terms, [](const auto& t) { return t.second == 0; });
    return e.terms.empty() ? std::nullopt : std::optional(e);
  }

 private:
  bool ended() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
    return at_ == text_.size();
  }
  bool accept(char c) {
    if (ended() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  template <class F>
  std::string_view take(const F& goes_on) {
    const size_t from = at_;
    while (at_ < text_.size() && goes_on(static_cast<unsigned char>(text_[at_]))) at_++;
    return text_.substr(from, at_ - from);
  }
  std::optional<int64_t> number() {
    const std::string_view digits = ended() ? "" : take([](unsigned char c) { return std::isdigit(c) != 0; });
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    int64_t n = 0;
    for (const char c : digits) n = n * 10 + (c - '0');
    return n;
  }
  std::string name() {
    if (ended() || (std::isalpha(static_cast<unsigned char>(text_[at_])) == 0 && text_[at_] != '_')) return "";
    return std::string(take([](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; }));
  }

  bool term(SizeExpression& e, int64_t sign) {
    if (ended()) return false;
    std::string symbol = name();
    int64_t factor = 1;
    if (symbol.empty()) {
      const auto n = number();
      if (!n) return false;
      factor = *n;
      if (!accept('*')) {
        e.addend += sign * factor;
        return true;
      }
      symbol = name();
      if (symbol.empty()) return false;
    } else if (accept('*')) {
      const auto n = number();
      if (!n) return false;
      factor = *n;
    }
    const auto known = std::find_if(e.terms.begin(), e.terms.end(), [&](const auto& t) { return t.first == symbol; });
    if (known == e.terms.end())
      e.terms.emplace_back(symbol, sign * factor);
    else
      known->second += sign * factor;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<SizeExpression> parse_size_expression(std::string_view text) {
  return text.size() <= 1000 ? Parser(text).run() : std::nullopt;
}

std::string to_text(const SizeExpression& e) { return sum_text(e.terms, e.addend); }

}  // namespace tc
