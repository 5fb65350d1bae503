// Elements of constants as digits, and the words of types.
#pragma once
#include <optional>

#include "ir/language/formula_parser.h"
#include "ir/types.h"

namespace tc::language {

/// "1, 2.5, nan": all elements; nullopt where digits would not be read as the same bytes.
std::optional<std::string> elements_text(const TensorData& t);
/// Elements up to `closing`; an empty one: one element. Throws Abandoned. Null where problems are told.
Constant read_elements(TokenReader& r, DType t, const Dims& dims, std::string_view closing);

/// A single-precision number that is read as the same float: "0.1", "-inf".
std::string float_text(float v);
/// "inf", "nan" and digits, with '-' before them, as a double; `integer` is set where it is one ("lowest" is INT64_MIN).
struct NumberSyntax {
  double number = 0;
  std::optional<int64_t> integer;
};
NumberSyntax read_number(TokenReader& r, std::string_view what);

/// "f32[1, N <= 8, ?]", "sequence(f32[*])"; "?": none.
std::string type_text(const ValueType& t);
ValueType read_type(TokenReader& r, int depth = 0);

/// "conv1", "\"/a/b\"": a name as it is if it is one of the language and no keyword of graphs, else a text.
std::string name_text(std::string_view name);
/// A name or a text.
std::string read_name(TokenReader& r, std::string_view what);

}  // namespace tc::language
