// For tests: a function is printed, read, and equal. Functions that the language has no words for are passed over; why is
// what function_text_test.cc says.
#pragma once
#include <gtest/gtest.h>

#include "ir/identity.h"
#include "ir/language/function_text.h"

namespace tc::language::testing {

inline void expect_round_trip(const TensorFn& fn) {
  const FunctionText printed = function_text(fn);
  if (printed.text.empty()) {
    EXPECT_FALSE(printed.why_not.empty());
    return;
  }
  Problems problems;
  const std::optional<TensorFn> read = parse_function(printed.text, problems);
  for (const Problem& p : problems) ADD_FAILURE() << render({"fn", printed.text}, p) << printed.text;
  if (!read) return;
  EXPECT_TRUE(identity_of(*read) == identity_of(fn)) << printed.text << "is read as\n" << function_text(*read).text;
}

}  // namespace tc::language::testing
