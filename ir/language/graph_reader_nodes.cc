// What stands behind the '=' of a line in a graph: operators, attributes, elements of constants.
#include "ir/language/graph_reader.h"
#include "support/text.h"

namespace tc::language {

// Conv, tc.fused, com.microsoft.Gelu, "a domain".Op
std::pair<std::string, std::string> GraphReader::op() {
  std::string domain, name = read_name(r_, "an operator");
  while (r_.accept(".")) {
    domain += (domain.empty() ? "" : ".") + name;
    name = read_name(r_, "the rest of the operator's name after '.'");
  }
  return {domain, name};
}

void GraphReader::names(Node& n) {
  if (r_.is_word("captures")) {
    const Place at = r_.take().at;
    const int64_t count = r_.expect_integer("how many operands are captures");
    if (count < 0 || size_t(count) > n.inputs.size()) r_.fail(at, "more captures than operands");
    n.captures = int(count);
  }
  const bool named = r_.is_word("as");
  if (named) {
    r_.take();
    n.name = ModelText(read_name(r_, "the node's name after 'as'"));
  }
  if (!r_.is_word("from")) return;
  r_.take();
  do n.origins.emplace_back(r_.expect_text("the name of a node of the model, a text"));
  while (r_.accept(","));
  if (!named) n.name = n.origins.back();
}

Attrs GraphReader::attributes() {
  Attrs all;
  r_.expect("{", "before the attributes");
  do {
    const Place at = r_.peek().at;
    const std::string name = read_name(r_, "the name of an attribute");
    r_.expect("=", "and a value after the attribute's name");
    if (!all.emplace(name, attribute()).second) r_.fail(at, "the attribute " + quoted(name) + " stands here twice");
  } while (r_.accept(","));
  r_.expect("}", "after the attributes");
  return all;
}

Attr GraphReader::attribute() {
  if (r_.peek().kind == Token::Kind::Text) return r_.take().text;
  if (r_.is_symbol("[")) return list("");
  if (r_.is_word("const")) return constant(nullptr);
  for (const char* kind : {"ints", "floats", "strings"})
    if (r_.is_word(kind)) return list(r_.take().text);
  if (r_.is_word("none")) {
    r_.take();
    return std::monostate();
  }
  const NumberSyntax n = read_number(r_, "an attribute: a number, a text, a list, a constant or none");
  if (n.integer) return *n.integer;
  return float(n.number);
}

// Of one kind: whole numbers, numbers or texts; an empty one says which.
Attr GraphReader::list(const std::string& kind) {
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  r_.expect("[", "before the elements of a list");
  const Place at = r_.peek().at;
  size_t n = 0;
  for (; !r_.accept("]"); n++) {
    if (r_.peek().kind == Token::Kind::Text) {
      strings.push_back(r_.take().text);
    } else {
      const NumberSyntax e = read_number(r_, "an element of a list: a number or a text");
      if (e.integer)
        ints.push_back(*e.integer);
      else
        floats.push_back(float(e.number));
    }
    if (!r_.is_symbol("]")) r_.expect(",", "or ']' after an element of the list");
  }
  if (n == 0 && kind.empty()) r_.fail(at, "an empty list says of what: ints[], floats[] or strings[]");
  if (ints.size() != n && floats.size() != n && strings.size() != n)
    r_.fail(at, "a list has elements of one kind; 1.0 is a number beside others, 1 is not");
  if (!strings.empty() || kind == "strings") return strings;
  if (!floats.empty() || kind == "floats") return floats;
  return ints;
}

// const [1, 2], const f32[2] [1.0, 2.0] as @1, const @1; null: const none.
Constant GraphReader::constant(const ValueType* type) {
  r_.take();
  const Place at = r_.peek().at;
  if (r_.is_word("none")) return r_.take(), nullptr;
  if (r_.accept("@")) {
    const auto it = shared_.find(r_.expect_integer("the number of a constant after '@'"));
    if (it == shared_.end()) r_.fail(at, "no constant has this number above");
    return it->second;
  }
  ValueType own = type ? *type : ValueType();
  const bool typed = r_.is_name() && r_.is_symbol("[", 1);
  if (typed) own = read_type(r_);
  if (!own.is_static_tensor()) r_.fail(at, "the type of the elements is needed, as in const f32[2] [1.0, 2.0]");
  const Constant c = elements(own.dtype, static_dims(own.shape));
  if (!r_.is_word("as")) return c;
  r_.take();
  r_.expect("@", "and a number after 'as'");
  const Place number_at = r_.peek().at;
  if (!shared_.emplace(r_.expect_integer("a number after '@'"), c).second)
    r_.fail(number_at, "another constant has this number already");
  return c;
}

Constant GraphReader::elements(DType t, const Dims& dims) {
  if (r_.is_word("data")) return data(t, dims);
  const bool list = r_.accept("[");
  if (!list && !dims.empty()) r_.expected("the elements in brackets, or data(...)");
  return read_elements(r_, t, dims, list ? "]" : "");
}

// data(OFFSET, BYTES, "HASH")
Constant GraphReader::data(DType t, const Dims& dims) {
  const Place at = r_.take().at;
  if (!r_.accept("("))
    r_.fail(at, "the elements of this constant are not in this text, which shows a graph; --write-ir keeps them");
  DataPlace place;
  const int64_t offset = r_.expect_integer("an offset in the file of data");
  r_.expect(",", "and the number of bytes after the offset");
  const int64_t bytes = r_.expect_integer("the number of bytes");
  if (r_.accept(",")) place.hash = r_.expect_text("the hash of the elements, a text");
  r_.expect(")", "after the place of the elements");
  if (offset < 0 || t == DType::String || bytes != checked_mul(num_elements(dims), info(t).bytes))
    r_.fail(at, "the place of the elements has not the size of the type");
  place.offset = size_t(offset);
  place.bytes = size_t(bytes);
  std::string why_not = "there is no file of data";
  const Constant c = data_ ? data_(place, t, dims, why_not) : nullptr;
  if (!c) r_.fail(at, why_not);
  return c;
}

}  // namespace tc::language
