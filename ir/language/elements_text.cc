#include "ir/language/elements_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "support/sum_text.h"
#include "support/text.h"

namespace tc::language {
namespace {

constexpr std::string_view kKeywords[] = {"_", "as", "captures", "const", "counted", "fn", "from", "graph", "op"};

constexpr size_t kLongestName = 64;  // with the '~2' of another of that name it still is one

std::string number_text(double v, bool narrow) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  const std::string s = narrow ? tc::to_text(float(v)) : tc::to_text(v);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

std::string integer_text(int64_t v) {
  return v == std::numeric_limits<int64_t>::min() ? "lowest" : tc::to_text(v);  // digits have 63 bits
}

std::string element_text(const TensorData& t, int64_t i) {
  if (t.dtype == DType::String) return quoted(t.strings.at(size_t(i)));
  if (t.dtype == DType::Bool) return t.as_int(i) != 0 ? "true" : "false";
  if (is_float(t.dtype)) return number_text(t.as_double(i), t.dtype != DType::F64);
  return integer_text(t.as_int(i));
}

void put_element(MutableTensor& m, int64_t i, const NumberSyntax& n) {
  const DType t = m.data.dtype;
  const size_t bytes = size_t(info(t).bytes);
  uint8_t* at = m.bytes + size_t(i) * bytes;
  if (t == DType::F32) {
    const float v = float(n.number);
    std::memcpy(at, &v, bytes);
  } else if (t == DType::F64) {
    std::memcpy(at, &n.number, bytes);
  } else if (is_float(t)) {
    const uint16_t bits = double_to_narrow_float(t, n.number, false);
    std::memcpy(at, &bits, bytes);  // little endian hosts
  } else {
    std::memcpy(at, &*n.integer, bytes);
  }
}

void read_element(TokenReader& r, MutableTensor& m, int64_t i) {
  if (m.data.dtype == DType::String) {
    m.data.strings[size_t(i)] = r.expect_text("an element, a text in double quotes");
    return;
  }
  if (m.data.dtype == DType::Bool) {
    if (!r.is_word("true") && !r.is_word("false")) r.expected("true or false");
    m.bytes[i] = r.take().text == "true";
    return;
  }
  const Place at = r.peek().at;
  const NumberSyntax n = read_number(r, "an element");
  const bool whole = !is_float(m.data.dtype);
  if (whole && !n.integer) r.fail(at, "an element of " + std::string(info(m.data.dtype).name) + " is a whole number");
  put_element(m, i, n);
  if (whole && info(m.data.dtype).bytes < 8 && m.data.as_int(i) != *n.integer)
    r.fail(at, tc::to_text(*n.integer) + " is no " + std::string(info(m.data.dtype).name));
}

// (0 <= past <= 48) + 2 * (1 <= seq <= 16) - 1
std::string bounded_sum(const Dim& d) {
  std::vector<std::pair<std::string, int64_t>> parts;
  for (const DimTerm& t : d.terms)
    parts.emplace_back("(" + tc::to_text(t.least) + " <= " + name_text(t.symbol) + " <= " + tc::to_text(t.most) + ")",
                       t.factor);
  const std::string s = sum_text(parts, d.addend);
  return sum_of(d.terms, d.addend).value == d.value ? s : s + " <= " + tc::to_text(d.value);
}

std::string dim_text(const Dim& d) {
  if (!d.terms.empty()) return bounded_sum(d);
  if (d.symbol.empty()) return d.value < 0 ? "?" : tc::to_text(d.value);
  return (d.least > 0 ? tc::to_text(d.least) + " <= " : "") + name_text(d.symbol) +
         (d.value < 0 ? "" : " <= " + tc::to_text(d.value));
}

// What stands in parentheses, and the ')'.
DimTerm read_term(TokenReader& r, int64_t factor) {
  DimTerm t;
  t.factor = factor;
  t.least = r.expect_integer("the least size");
  r.expect("<=", "between the least size and its name");
  t.symbol = read_name(r, "a size");
  r.expect("<=", "between a size and the largest one");
  const Place at = r.peek().at;
  t.most = r.expect_integer("the largest size");
  if (t.least < 0 || t.most < t.least) r.fail(at, "the largest size is below the least one");
  r.expect(")", "after the largest size");
  return t;
}

// The rest of a sum whose first term is `d`'s only one.
Dim read_sum(TokenReader& r, Dim d) {
  while (r.is_symbol("+") || r.is_symbol("-")) {
    const Place at = r.peek().at;
    int64_t factor = r.accept("+") ? 1 : (r.take(), -1);
    if (!r.accept("(")) {
      factor = checked_mul(factor, r.expect_integer("a factor, or what is added"));
      if (!r.accept("*")) {
        d.addend = checked_add(d.addend, factor);
        continue;
      }
      r.expect("(", "before a size in a sum");
    }
    if (factor == 0) r.fail(at, "a factor of 0");
    d.terms.push_back(read_term(r, factor));
  }
  Dim sum = sum_of(std::move(d.terms), d.addend);
  if (r.accept("<=")) sum.value = std::max<int64_t>(0, r.expect_integer("the largest size after '<='"));
  return sum;
}

Dim read_dim(TokenReader& r) {
  if (r.accept("?")) return {};
  int64_t least = 0, factor = 1;
  if (r.accept("-")) factor = -1;
  const bool number = r.peek().kind == Token::Kind::Integer;
  if (number) least = r.take().integer;
  if (number ? r.is_symbol("*") : r.is_symbol("(")) {
    if (number) r.take(), r.expect("(", "before a size in a sum"), factor = checked_mul(factor, least);
    if (!number) r.take();
    if (factor == 0) r.fail(r.peek().at, "a factor of 0");
    Dim d;
    d.terms.push_back(read_term(r, factor));
    return read_sum(r, std::move(d));
  }
  if (factor < 0) r.expected("a size in parentheses");
  if (number && !r.accept("<=")) return Dim(least);
  if (!r.is_name() && r.peek().kind != Token::Kind::Text) r.expected("a size: a number, a name or '?'");
  Dim d = Dim::symbolic(read_name(r, "a size"));
  d.least = least;
  const Place at = r.peek().at;
  if (r.accept("<=")) d.value = std::max<int64_t>(0, r.expect_integer("the largest size after '<='"));
  if (d.value >= 0 && d.value < d.least) r.fail(at, "the largest size is below the least one");
  return d;
}

std::optional<DType> dtype_named(std::string_view name) {
  for (int k = 1; k <= int(DType::I2); k++)
    if (info(DType(k)).name == name) return DType(k);
  return name == "undefined" ? std::optional(DType::Undefined) : std::nullopt;
}

}  // namespace

std::optional<std::string> elements_text(const TensorData& t) {
  if (is_complex(t.dtype) || t.dtype == DType::Undefined) return std::nullopt;
  std::vector<std::string> parts;
  for (int64_t i = 0; i < t.size(); i++) parts.push_back(element_text(t, i));
  std::string text = join(parts, ", ");
  const std::string closed = text + "]";
  Problems problems;
  TokenReader r(closed, problems, closed.size());
  try {
    const Constant again = read_elements(r, t.dtype, t.dims, "]");
    const bool same = again && again->strings == t.strings && again->num_bytes == t.num_bytes &&
                      (t.num_bytes == 0 || std::memcmp(again->bytes.get(), t.bytes.get(), t.num_bytes) == 0);
    return same ? std::optional(std::move(text)) : std::nullopt;
  } catch (const Abandoned&) {
    return std::nullopt;
  }
}

Constant read_elements(TokenReader& r, DType t, const Dims& dims, std::string_view closing) {
  if (is_complex(t) || t == DType::Undefined) r.fail(r.peek().at, "elements of this type stand in the file of data");
  const Place at = r.peek().at;
  const int64_t n = num_elements(dims);
  MutableTensor m;
  std::vector<uint8_t> bytes;  // grows with what is read, not with what is announced
  const size_t each = t == DType::String ? 0 : size_t(info(t).bytes);
  std::vector<std::string> strings;
  int64_t i = 0;
  MutableTensor one = new_tensor(t, {1});
  while (closing.empty() ? i < 1 : !r.is_symbol(closing)) {
    read_element(r, one, 0);
    if (t == DType::String)
      strings.push_back(one.data.strings[0]);
    else
      bytes.insert(bytes.end(), one.bytes, one.bytes + each);
    i++;
    if (!closing.empty() && !r.is_symbol(closing)) r.expect(",", "or ']' after an element");
  }
  if (!closing.empty()) r.expect(closing, "after the elements");
  if (i != n) r.fail(at, "the type has " + tc::to_text(n) + " elements, here are " + tc::to_text(i));
  return t == DType::String ? string_constant(dims, std::move(strings)) : make_constant(t, dims, bytes.data());
}

std::string float_text(float v) {
  const std::string s = number_text(double(v), true);
  Problems problems;
  TokenReader r(s, problems);
  const float again = float(read_number(r, "").number);
  return std::memcmp(&again, &v, sizeof v) == 0 ? s : number_text(double(v), false);
}

NumberSyntax read_number(TokenReader& r, std::string_view what) {
  const bool negative = r.accept("-");
  NumberSyntax n;
  if (r.peek().kind == Token::Kind::Integer) {
    n.integer = negative ? -r.peek().integer : r.peek().integer;
    n.number = double(r.peek().integer);
  } else if (r.peek().kind == Token::Kind::Number) {
    n.number = r.peek().number;
  } else if (r.is_word("inf")) {
    n.number = std::numeric_limits<double>::infinity();
  } else if (r.is_word("nan")) {
    n.number = std::numeric_limits<double>::quiet_NaN();
  } else if (r.is_word("lowest") && !negative) {
    n.integer = std::numeric_limits<int64_t>::min();
    n.number = double(*n.integer);
  } else {
    r.expected(std::string(what));
  }
  r.take();
  if (negative) n.number = -n.number;
  return n;
}

std::string type_text(const ValueType& t) {
  const auto inner = [&] { return "(" + (t.element ? type_text(*t.element) : "?") + ")"; };
  switch (t.kind) {
    case ValueType::Kind::None: return "?";
    case ValueType::Kind::Sequence: return "sequence" + inner();
    case ValueType::Kind::Optional: return "optional" + inner();
    case ValueType::Kind::Tensor: break;
  }
  const std::string name(t.dtype == DType::Undefined ? "undefined" : info(t.dtype).name);
  std::vector<std::string> sizes;
  for (const Dim& d : t.shape) sizes.push_back(dim_text(d));
  return name + "[" + (t.has_rank ? join(sizes, ", ") : "*") + "]";
}

ValueType read_type(TokenReader& r, int depth) {
  if (r.accept("?")) return {};
  const Place at = r.peek().at;
  if (depth > 8) r.fail(at, "the type nests too deep");
  const std::string word = r.expect_name("a type, as in f32[2, 3]");
  if (word == "sequence" || word == "optional") {
    r.expect("(", "before the type of the elements");
    ValueType t;
    t.kind = word == "sequence" ? ValueType::Kind::Sequence : ValueType::Kind::Optional;
    if (!r.accept("?")) t.element = std::make_shared<const ValueType>(read_type(r, depth + 1));
    r.expect(")", "after the type of the elements");
    return t;
  }
  const std::optional<DType> dtype = dtype_named(word);
  if (!dtype) r.fail(at, "no element type is called '" + word + "'");
  ValueType t = ValueType::tensor(*dtype, {});
  r.expect("[", "and the sizes after the element type; a scalar is " + word + "[]");
  if (r.accept("*")) {
    t.has_rank = false;
    r.expect("]", "after '*'");
    return t;
  }
  if (r.accept("]")) return t;
  do t.shape.push_back(read_dim(r));
  while (r.accept(","));
  r.expect("]", "after the sizes");
  return t;
}

std::string name_text(std::string_view name) {
  const bool plain = is_name(name) && name.size() <= kLongestName && name.find('~') == name.npos &&
                     std::find(std::begin(kKeywords), std::end(kKeywords), name) == std::end(kKeywords);
  return plain ? std::string(name) : quoted(name);
}

std::string read_name(TokenReader& r, std::string_view what) {
  if (r.peek().kind == Token::Kind::Text) return r.take().text;
  return r.expect_name(std::string(what));
}

}  // namespace tc::language
