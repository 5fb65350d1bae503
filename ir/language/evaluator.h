// Formulas -> Loop IR expressions, where all names have a meaning: sizes are numbers, tensors are buffers.
//
// Sizes, attributes and literals have no element type; they take the one of what they meet: in x[i] * 2, of x. Arithmetic
// among them is done here, exactly for integers. In an op, elements of narrow floats are read as f32, and integers that
// are an index become i64; in a fn nothing is converted but by its own words.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "ir/language/bounds.h"
#include "ir/language/syntax.h"

namespace tc::language {

/// What a formula stands for: an expression, or a constant without an element type.
using Meaning = std::variant<Expr, int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>>;

/// What is wrong with a formula; ends its evaluation.
struct FormulaError {
  Problem problem;
};
[[noreturn]] void fail(const Place& at, std::string message);

/// What the names in formulas stand for.
struct Names {
  std::map<std::string, Meaning> constants;  // sizes and attributes
  std::map<std::string, Dims> lists;         // *S
  std::map<std::string, DType> types;        // T
  std::map<std::string, Buffer> tensors;     // those that may be read; null: an operand that is absent
  std::map<std::string, Exprs> axes;         // one, or those of *i
  std::set<std::string> spread;              // those of `axes` that are lists
  std::set<std::string> later;               // tensors that are defined further below
  std::set<std::string> optional;            // operands that may be absent
};

enum class Mode {
  Op,     // sizes and types of a node
  Trial,  // an op without a node: sizes are samples, so that only types and names are looked at
  Fn,
};

class Evaluator {
 public:
  /// Called for every access; throws FormulaError where it must not be.
  using Access = std::function<void(const Place& at, const Buffer& b, const Exprs& index, const KnownFacts& facts)>;

  Evaluator(const Names& names, Mode mode, KnownFacts facts = {}, Access access = {})
      : names_(names), mode_(mode), facts_(std::move(facts)), access_(std::move(access)) {}

  Meaning meaning(const Formula& f);
  /// As an expression of an element type; untyped constants take it. Undefined: the type that the formula has.
  Expr value(const Formula& f, DType type);
  /// A whole number that is known while compiling: sizes, extents.
  int64_t integer(const Formula& f);
  /// Sizes with lists in place; none is negative.
  Dims sizes(const Formulas& list);
  bool truth(const Formula& f);

 private:
  Meaning name(const Formula& f);
  Meaning load(const Formula& f);
  Meaning element(const Formula& f);
  Meaning call(const Formula& f);
  Meaning unary(const Formula& f);
  Meaning binary(const Formula& f);
  Meaning logic(const Formula& f);
  Meaning where(const Formula& f);
  Meaning converted(const Formula& f, DType to);
  Meaning function(const Formula& f, Op op);
  Meaning apply(const Formula& f, Op op, Meaning a, Meaning b);
  Exprs index(const Formula& f);
  Expr index_value(const Formula& f);
  Expr as_type(const Meaning& m, DType type, const Place& at) const;
  std::optional<DType> type_named(const std::string& name) const;
  void presume(const Formula& condition);

  const Names& names_;
  Mode mode_;
  KnownFacts facts_;
  Access access_;
  std::set<std::string> present_;  // optional operands that has() found
};

/// The element type of this name, as in "f32"; those that formulas cannot compute with have none. Strings and what is
/// done with them are for functions of the compiler's.
std::optional<DType> element_type_of(const std::string& name, Mode mode = Mode::Op);
/// The operation that a function of the language or an infix operator is.
std::optional<Op> function_named(const std::string& name, Mode mode = Mode::Op);
std::optional<Op> infix_named(const std::string& symbol, bool unary);
/// "f32", "a number": what a formula stands for, in messages.
std::string kind_of(const Meaning& m);

}  // namespace tc::language
