// What operators on the text of strings share.
#pragma once
#include <string>
#include <vector>

#include "ir/ops/expansion.h"
#include "ir/ops/helpers.h"
#include "ir/ops/regex.h"

namespace tc {

inline Expr size_of(const Expr& s) { return apply(Op::TextSize, {s}); }
inline Expr byte_of(const Expr& s, const Expr& i) { return apply(Op::TextByte, {s, i}); }
/// Bytes from..to-1 of s.
inline Expr part_of(const Expr& s, const Expr& from, const Expr& to) {
  return apply(Op::TextFirst, {apply(Op::TextFrom, {s, from}), to - from});
}

/// The automaton of a pattern (regex.h). Rejects what is no pattern, and says what cannot be compiled.
inline Automaton automaton_of(const Expansion& e, const std::string& pattern) {
  RegexResult r = full_match_automaton(pattern);
  if (!r.problem.empty() && r.unsupported) e.unsupported("the pattern cannot be compiled: " + r.problem);
  if (!r.problem.empty()) e.reject("the pattern is no regular expression: " + r.problem);
  return std::move(r.automaton);
}

/// Its tables as constants: the class of each byte [256], the next state [states, classes], which states accept [states].
inline std::vector<Value*> tables_of(const Expansion& e, const Automaton& a) {
  const std::vector<uint8_t> accepts(a.accepts.begin(), a.accepts.end());
  return {e.constant(make_constant(DType::U8, {256}, a.class_of.data()), "_classes"),
          e.constant(make_constant(DType::I32, {a.states(), a.classes}, a.next.data()), "_next"),
          e.constant(make_constant(DType::Bool, {a.states()}, accepts.data()), "_accepts")};
}

}  // namespace tc
