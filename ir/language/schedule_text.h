// Schedules as text: what a template chose for a function, which may be changed and given back.
//
//   schedule "conv2d_bias_relu_58x58x64_56x56x64_k3" on "x86-64-v3" of "91c3d2e4f0a1b2c3"
//     contraction()
//     tile(rows = 6, columns = 16, row_blocks = 1, ...)
//
// Each line is a decision with its numbers, in the order in which they are made, or a step over loops, with what it is told and
// what its results are called:
//
//     split(i, 8) as i_o, i_i
//
// `of` is a hash of the function; without it, and with '*' in the signature, a schedule is for every function that fits. Instead of the
// signature it may say what is computed (function_selector.h):
//
//   schedule for conv2d + bias + relu (x: f32[1, 58, 58, 64], *)
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/language/function_selector.h"
#include "ir/language/source.h"
#include "ir/tensor_fn.h"

namespace tc {

/// What a step is told: the name of a loop or a buffer, a word ("block.x", "register"), a number, a text in quotes, or a list
/// of these.
struct StepArg {
  using List = std::vector<StepArg>;
  struct Text {
    std::string text;
    bool operator==(const Text&) const = default;
  };
  std::variant<std::string, int64_t, Text, List> value;
  language::Place at = {};
  bool operator==(const StepArg&) const = default;
};

/// `rows = 4` of a decision, and where that is written.
struct PlanNumber {
  std::string name;
  int64_t value = 0;
  language::Place at = {};
  bool operator==(const PlanNumber&) const = default;
};

/// A line: `name(number = 4)` or, if it is a step, `name(i, 8) as i_o, i_i`.
struct PlanLine {
  std::string name;
  std::vector<PlanNumber> numbers;
  language::Place at = {};
  std::vector<StepArg> args = {};
  std::vector<std::string> results = {};
  bool is_step() const { return !args.empty(); }
  bool operator==(const PlanLine&) const = default;
};

struct FunctionPlan {
  std::string signature;       // with '*' for any characters
  std::string processor = {};  // the row of --cpu; empty: any
  std::string function = {};   // function_hash(); empty: any
  std::vector<PlanLine> lines = {};
  language::Place at = {};
  bool recorded =
      false;  // of --records: where it fits no function, or cannot be, the model decides. No part of the text
  std::optional<FunctionSelector> selects = {};  // instead of the signature

  /// Whether it is for the function of that signature and hash.
  bool fits(const std::string& of_signature, const std::string& of_function) const;
  /// `"conv2d_*"`, or `for conv2d + *`.
  std::string shown() const;
};

/// A file of --schedules.
struct StatedSchedules {
  language::SourceText source;
  std::vector<FunctionPlan> plans;
};

/// A function as records keep it: what the language prints, empty where it does not have it, and a 'k' for each operand that
/// is known while compiling, a '-' for others.
struct FunctionDefinition {
  std::string text, known;
  /// 16 hex digits: the function_hash() of what is defined.
  std::string hash() const;
};
FunctionDefinition definition_of(const TensorFn& fn, const std::vector<bool>& constant_input);

/// 16 hex digits of what the language prints for the function, and of which operands are known while compiling; of the
/// function's identity where the language does not have it. Names of functions of one model may be equal, these are not.
std::string function_hash(const TensorFn& fn, const std::vector<bool>& constant_input);

namespace language {

/// Every mistake goes to `problems`; the list then means nothing. A schedule that begins with a step is one of the plain
/// loops: the line `naive()` is put before it.
std::vector<FunctionPlan> read_schedules(std::string_view text, Problems& problems);
std::string print(const PlanLine& line);
std::string print(const FunctionPlan& plan);

}  // namespace language
}  // namespace tc
