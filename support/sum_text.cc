#include "support/sum_text.h"

#include <cstdlib>

#include "support/text.h"

namespace tc {

std::string sum_text(const std::vector<std::pair<std::string, int64_t>>& terms, int64_t addend) {
  std::string s;
  const auto sign = [&](int64_t n) { return s.empty() ? (n < 0 ? "-" : "") : n < 0 ? " - " : " + "; };
  for (const auto& [term, factor] : terms) {
    s += sign(factor);
    s += (std::abs(factor) == 1 ? "" : to_text(std::abs(factor)) + " * ") + term;
  }
  return addend == 0 ? s : s + sign(addend) + to_text(std::abs(addend));
}

}  // namespace tc
