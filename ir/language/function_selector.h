// Which functions a schedule is for, by what they compute on which shapes:
//
//   schedule for conv2d + bias + * (x: f32[1, *, *, 64], *) -> f32[1, 56, 56, 64]
//
// The stages in order, as the comment above a kernel lists them, then the operands and the results. '*' stands for any number of stages, for
// any size, or, at the end, for all further operands.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/language/source.h"
#include "ir/tensor_fn.h"

namespace tc {

struct FunctionSelector {
  struct Operand {
    std::string name;  // empty: any
    DType dtype = DType::F32;
    std::vector<std::optional<int64_t>> dims;  // null: any
    bool operator==(const Operand&) const = default;
  };
  struct Operands {
    std::vector<Operand> list;
    bool more = false;  // others may follow
    bool operator==(const Operands&) const = default;
  };
  std::vector<std::string> stages;  // "*": any number of them
  std::optional<Operands> inputs, outputs;

  /// `stages`: the names of those of fn.
  bool fits(const TensorFn& fn, const std::vector<std::string>& stages_of_fn) const;
  /// Whether it leaves nothing open: no '*' and no shape that is not said.
  bool is_exact() const;
  bool operator==(const FunctionSelector&) const = default;
};

/// The one that fits nothing else but functions of the same stages and shapes.
FunctionSelector selector_of(const TensorFn& fn, const std::vector<std::string>& stages_of_fn);

namespace language {

class TokenReader;

/// What follows "for". Throws Abandoned.
FunctionSelector read_selector(TokenReader& r);
/// "conv2d + bias (x: f32[1, 8, 8, 3], ..) -> f32[..]"
std::string print(const FunctionSelector& s);

}  // namespace language
}  // namespace tc
