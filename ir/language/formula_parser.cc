// Expressions: operators by their precedence, calls, accesses. How deep they nest is bounded, so that neither this nor
// anything that walks the tree runs out of stack.
#include "ir/language/formula_parser.h"

#include <algorithm>
#include <iterator>

#include "support/text.h"

namespace tc::language {
namespace {

constexpr int kMaxDepth = 200;

std::string_view kReductions[] = {"sum", "product", "max", "min", "all", "any", "fold"};

std::string found(const Token& t) {
  switch (t.kind) {
    case Token::Kind::End: return "the end of the file";
    case Token::Kind::Text: return "a text";
    case Token::Kind::Integer:
    case Token::Kind::Number: return "a number";
    default: return "'" + t.text + "'";
  }
}

class FormulaReader {
 public:
  explicit FormulaReader(TokenReader& r) : r_(r) {}

  /// Operators that bind at least as strongly as `least`.
  Formula binary(int least, int depth) {
    Formula left = unary(depth);
    int chain = depth;  // a sum of many terms is a deep tree, too
    for (;;) {
      const Token& t = r_.peek();
      const int own = t.kind == Token::Kind::Symbol ? precedence(t.text) : 0;
      // A line that begins with '*' or '-' goes on with the formula before it: nothing else begins so.
      if (own == 0 || own < least) return left;
      check_depth(++chain, t.at);
      Formula f{Formula::Kind::Binary, t.at, t.text};
      r_.take();
      f.args.push_back(std::move(left));
      f.args.push_back(binary(own + 1, chain));
      left = std::move(f);
    }
  }

 private:
  Formula unary(int depth) {
    const Token t = r_.peek();
    check_depth(depth, t.at);
    if (!(r_.is_symbol("-") || r_.is_symbol("!") || r_.is_symbol("~"))) return primary(depth);
    r_.take();
    Formula x = unary(depth + 1);
    if (t.text == "-" && x.kind == Formula::Kind::Integer) return x.integer = -x.integer, x.at = t.at, x;
    if (t.text == "-" && x.kind == Formula::Kind::Number) return x.number = -x.number, x.at = t.at, x;
    Formula f{Formula::Kind::Unary, t.at, t.text};
    f.args.push_back(std::move(x));
    return f;
  }

  Formula primary(int depth) {
    const Token t = r_.peek();
    if (t.kind == Token::Kind::Integer || t.kind == Token::Kind::Number || t.kind == Token::Kind::Text) {
      r_.take();
      Formula f{t.kind == Token::Kind::Integer  ? Formula::Kind::Integer
                : t.kind == Token::Kind::Number ? Formula::Kind::Number
                                                : Formula::Kind::Text,
                t.at};
      if (t.kind == Token::Kind::Text) f.word = t.text;
      f.integer = t.integer;
      f.number = t.number;
      return f;
    }
    if (r_.accept("(")) {
      Formula f = binary(1, depth + 1);
      r_.expect(")", "after the formula in parentheses");
      return f;
    }
    if (t.kind != Token::Kind::Name) r_.expected("a formula");
    if (begins_reduction(r_))
      r_.fail(t.at, "a reduction is a stage of its own: give it a name on a line before, and read that");
    r_.take();
    Formula f{Formula::Kind::Name, t.at, t.text};
    // What begins a line is the next statement.
    if (r_.peek().begins_line || !(r_.is_symbol("(") || r_.is_symbol("["))) return f;
    const bool call = r_.take().text == "(";
    f.kind = call ? Formula::Kind::Call : Formula::Kind::Load;
    f.args = list(call ? ")" : "]", call ? "after the arguments" : "after the index", depth + 1);
    return f;
  }

 public:
  Formulas list(std::string_view closing, std::string_view where, int depth) {
    Formulas l;
    if (r_.accept(closing)) return l;
    do l.push_back(item(depth));
    while (r_.accept(","));
    r_.expect(closing, where);
    return l;
  }

 private:
  Formula item(int depth) {
    if (!r_.is_symbol("*")) return binary(1, depth);
    Formula f{Formula::Kind::Spread, r_.take().at};
    f.word = r_.expect_name("the name of a list after '*'");
    return f;
  }

  void check_depth(int depth, const Place& at) const {
    if (depth > kMaxDepth)
      r_.fail(at,
              "the formula nests deeper than " + tc::to_text(int64_t(kMaxDepth)) + " levels; make stages of its parts");
  }

  TokenReader& r_;
};

}  // namespace

void TokenReader::expect(std::string_view symbol, std::string_view where) {
  if (!accept(symbol)) expected("'" + std::string(symbol) + "' " + std::string(where));
}

std::string TokenReader::expect_name(std::string_view what) {
  if (!is_name()) expected(std::string(what));
  return take().text;
}

std::string TokenReader::expect_text(std::string_view what) {
  if (peek().kind != Token::Kind::Text) expected(std::string(what));
  return take().text;
}

int64_t TokenReader::expect_integer(std::string_view what) {
  const bool negative = accept("-");
  if (peek().kind != Token::Kind::Integer) expected(std::string(what));
  const int64_t v = take().integer;
  return negative ? -v : v;
}

void TokenReader::expected(const std::string& what) const {
  fail(peek().at, "expected " + what + ", found " + found(peek()));
}

void TokenReader::fail(const Place& at, std::string message) const {
  tell(at, std::move(message));
  throw Abandoned();
}

bool begins_reduction(const TokenReader& r) {
  if (!r.is_name() || !r.is_symbol("(", 1)) return false;
  if (std::find(std::begin(kReductions), std::end(kReductions), r.peek().text) == std::end(kReductions)) return false;
  const bool axis = (r.is_name(2) && r.is_symbol(":", 3)) || (r.is_symbol("*", 2) && r.is_name(3));
  return axis || r.peek().text == "sum" || r.peek().text == "fold" || r.peek().text == "product" || r.is_symbol(")", 2);
}

Formula read_formula(TokenReader& r) { return FormulaReader(r).binary(1, 0); }

Formulas read_formulas(TokenReader& r, std::string_view closing, std::string_view where) {
  return FormulaReader(r).list(closing, where, 0);
}

}  // namespace tc::language
