// TensorFns in the language: a fn says everything, so that what is read equals what was printed (ir/identity.h).
//
//   fn f(x: f32[2, 8]) -> relu: f32[2, 8]
//     relu: f32[i: 2, j: 8] = max(x[i, j], 0.0)
#pragma once
#include <optional>
#include <string>

#include "ir/language/syntax.h"
#include "ir/tensor_fn.h"

namespace tc::language {

struct FunctionText {
  std::string text;     // empty where the language does not have it
  std::string why_not;  // "stage top_k is made of loops"
};
FunctionText function_text(const TensorFn& fn, const std::string& name = "f");

/// The same for a graph: without a name, its stages in braces.
FunctionText braced_function_text(const TensorFn& fn);
/// nullopt where problems are told.
std::optional<TensorFn> function_of(const Definition& d, Problems& problems);

/// One fn; nullopt where problems are told.
std::optional<TensorFn> parse_function(std::string_view text, Problems& problems);

}  // namespace tc::language
