// Sizes that follow from others, as people and exporters write them: past + seq, 2*batch - 1.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/error.h"

namespace tc {

/// A sum of named sizes, each times a factor, and an addend. A name stands in it once.
struct SizeExpression {
  std::vector<std::pair<std::string, int64_t>> terms;  // in the order in which they are met
  int64_t addend = 0;
  bool operator==(const SizeExpression&) const = default;
};

/// Names begin with a letter or '_' and go on with these, digits and '.'; terms are NAME, N, N*NAME or NAME*N, with + or -
/// between them. Nothing for other texts, for one without a name, and for numbers beyond 32 bits.
std::optional<SizeExpression> parse_size_expression(std::string_view text);
std::string to_text(const SizeExpression& e);  // "past + 2 * seq - 1"

}  // namespace tc
