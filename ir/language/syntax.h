// The language as a tree: what the parser makes and what is printed. docs/language.md says what each part means.
// parse(to_text(d)) is d again.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/language/source.h"

namespace tc::language {

/// An expression. Its depth is bounded by the parser, so that walking it may recurse.
struct Formula {
  enum class Kind {
    Integer,  // integer
    Number,   // number
    Text,     // word
    Name,     // word: an axis, a size, an attribute, a constant
    Spread,   // *word: a list of axes or sizes
    Load,     // word[args]
    Call,     // word(args)
    Unary,    // word args[0]
    Binary,   // args[0] word args[1]
  } kind = Kind::Integer;
  Place at = {};
  std::string word = {};
  int64_t integer = 0;
  double number = 0;
  std::vector<Formula> args = {};
  bool operator==(const Formula& o) const;
};
using Formulas = std::vector<Formula>;

/// "n", "n: N", "*i", "*i: *S"
struct AxisSyntax {
  Place at;
  std::string name;
  bool spread = false;
  std::optional<Formula> extent = {};
  bool operator==(const AxisSyntax&) const = default;
};

/// What a stage defines: its name, and its element type where that is said.
struct Target {
  Place at;
  std::string name, type;
  bool operator==(const Target&) const = default;
};

/// A tensor: "x: f32[N, C]", "*S" among the sizes for any number of them.
struct Operand {
  Place at;
  std::string name, type;
  Formulas sizes;
  bool optional = false;
  int operand = -1;  // fn: which operand of the node it is; -1: not said
  bool operator==(const Operand&) const = default;
};

/// A statement of a stage that is made of loops. Its depth is bounded like that of formulas.
struct LoopSyntax {
  // clang-format off
  enum class Kind {
    Store,  // word[args] how= values[0]
    For,    // for how word: values[0] from values[1]
    While,  // while values[0]
    If,     // if values[0]
    Let,    // let word: type = values[0]
    Alloc,  // alloc word: type[args] in how
    Note,   // note "word"
  } kind = Kind::Store;
  // clang-format on
  Place at = {};
  std::string word = {}, type = {};
  std::string how = {};  // of a store: what joins the value with the element, empty: nothing; a kind of loop; a scope
  Formulas args = {}, values = {};
  std::vector<LoopSyntax> body = {}, otherwise = {};
  bool operator==(const LoopSyntax&) const = default;
};

/// targets[axes] as label = reduction(raxes) values from init by lhs, rhs => result
struct StageSyntax {
  Place at;
  std::vector<Target> targets;
  std::vector<AxisSyntax> axes;
  std::string label;      // the stage's name; empty: that of its first target
  std::string reduction;  // "sum", "product", "max", "min", "all", "any", "fold"; empty: none
  std::vector<AxisSyntax> raxes;
  Formulas values, init;
  std::vector<std::string> lhs, rhs;  // fold: the names of the two tuples that `result` joins
  Formulas result;
  int scan = -1;                 // the number of the scan that the stage belongs to
  std::vector<Operand> results;  // loops (results) as label { ... }; targets has their names, too
  std::vector<LoopSyntax> loops;
  bool operator==(const StageSyntax&) const = default;
};

struct Attribute {
  using Value = std::variant<std::monostate, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;
  Place at;
  std::string name, type;  // int, float, string, ints, floats
  Value otherwise = {};    // monostate: it has to be given
  bool operator==(const Attribute&) const = default;
};

/// "T: f32 | f64"
struct TypeParameter {
  Place at;
  std::string name;
  std::vector<std::string> types;  // or sets of types: float, int, number
  bool operator==(const TypeParameter&) const = default;
};

struct Requirement {
  Place at;
  Formula condition;
  std::string message;
  bool operator==(const Requirement&) const = default;
};

/// An operator of the user's (op) or one function with everything said (fn).
struct Definition {
  Place at;
  bool is_op = true;
  std::string domain, name;  // "my", "Correlate"; of a fn: no domain
  std::vector<TypeParameter> types;
  std::vector<Operand> inputs;
  std::vector<Attribute> attributes;
  std::vector<Operand> outputs;
  std::vector<Requirement> requirements;
  std::vector<StageSyntax> stages;
  bool operator==(const Definition&) const = default;
};

std::string to_text(const Formula& f);
std::string to_text(const Definition& d);

/// "my.Correlate"
std::string full_name(const Definition& d);

/// How strongly an infix operator binds, as in C; 0: none of the language.
int precedence(std::string_view symbol);

}  // namespace tc::language
