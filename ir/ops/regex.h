// Regular expressions in RE2's syntax as automata over bytes: what RegexFullMatch means, decided while compiling.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tc {

/// Deterministic: from state s, byte b leads to next[s * classes + class_of[b]]; it starts in state 0, and a whole string
/// matches if it ends in an accepting state. The work is linear in the string.
struct Automaton {
  std::vector<uint8_t> class_of = std::vector<uint8_t>(256);
  int classes = 1;
  std::vector<int32_t> next;
  std::vector<bool> accepts;

  int states() const { return int(accepts.size()); }
};

struct RegexResult {
  Automaton automaton;
  std::string problem;       // empty: none
  bool unsupported = false;  // the problem is a feature that is missing, or a limit, not a syntax error
};

/// The strings that `pattern` matches as a whole. Patterns and strings are UTF-8: "." is a code point, and bytes that are
/// no UTF-8 match nothing. Not supported: flags, \p, \Q, \C, more than 2000 states.
RegexResult full_match_automaton(const std::string& pattern);

}  // namespace tc
