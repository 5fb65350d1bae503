// Stages that are made of loops.
#include <algorithm>
#include <iterator>
#include <limits>

#include "ir/language/formula_parser.h"

namespace tc::language {
namespace {

constexpr int kMaxDepth = 200;
constexpr std::string_view kKeywords[] = {"for", "while", "if", "let", "alloc"};

class LoopReader {
 public:
  explicit LoopReader(TokenReader& r) : r_(r) {}

  std::vector<LoopSyntax> block(int depth) {
    r_.expect("{", "before statements");
    if (depth > kMaxDepth) r_.fail(r_.peek().at, "the statements nest too deep");
    std::vector<LoopSyntax> list;
    while (!r_.at_end() && !r_.is_symbol("}")) {
      if (!r_.peek().begins_line) r_.expected("the end of the line");
      list.push_back(statement(depth));
    }
    r_.expect("}", "after statements");
    return list;
  }

 private:
  LoopSyntax statement(int depth) {
    LoopSyntax l;
    l.at = r_.peek().at;
    const bool keyword = r_.is_name() && !r_.is_symbol("[", 1) &&
                         std::find(std::begin(kKeywords), std::end(kKeywords), r_.peek().text) != std::end(kKeywords);
    if (r_.is_word("note") && r_.peek(1).kind == Token::Kind::Text) {
      r_.take();
      l.kind = LoopSyntax::Kind::Note;
      l.word = r_.take().text;
    } else if (keyword) {
      head(l, r_.take().text);
    } else {
      store(l);
      return l;
    }
    l.body = block(depth + 1);
    if (l.kind == LoopSyntax::Kind::If && r_.is_word("else")) {
      r_.take();
      l.otherwise = block(depth + 1);
    }
    return l;
  }

  void head(LoopSyntax& l, const std::string& word) {
    using Kind = LoopSyntax::Kind;
    if (word == "while" || word == "if") {
      l.kind = word == "if" ? Kind::If : Kind::While;
      l.values = {read_formula(r_)};
      return;
    }
    l.kind = word == "for" ? Kind::For : word == "let" ? Kind::Let : Kind::Alloc;
    l.word = r_.expect_name("a name");
    if (l.kind == Kind::For && r_.is_name()) {
      l.how = l.word;
      l.word = r_.expect_name("a variable");
    }
    r_.expect(":", "after the name");
    if (l.kind == Kind::For) {
      l.values = {read_formula(r_)};
      if (!r_.is_word("from")) return;
      r_.take();
      l.values.push_back(read_formula(r_));
      return;
    }
    l.type = r_.expect_name("an element type");
    if (l.kind == Kind::Let) {
      r_.expect("=", "and a value after the type");
      l.values = {read_formula(r_)};
      return;
    }
    r_.expect("[", "and the sizes after the element type");
    l.args = read_formulas(r_, "]", "after the sizes");
    if (!r_.is_word("in")) r_.expected("'in' and where the tensor lies");
    r_.take();
    l.how = r_.expect_name("where the tensor lies: workspace, stack or register");
  }

  // x[i] = e, x[i] += e, x[i] max= e
  void store(LoopSyntax& l) {
    l.word = r_.expect_name("a statement");
    r_.expect("[", "and an index: only elements are assigned to");
    l.args = read_formulas(r_, "]", "after the index");
    if (!r_.is_symbol("=") && (r_.is_name() || r_.peek().kind == Token::Kind::Symbol)) l.how = r_.take().text;
    r_.expect("=", "after the element");
    l.values = {read_formula(r_)};
  }

  TokenReader& r_;
};

}  // namespace

Operand read_operand(TokenReader& r) {
  Operand o;
  o.at = r.peek().at;
  o.name = r.expect_name("the name of a tensor");
  if (r.accept("@")) {
    if (r.peek().kind != Token::Kind::Integer || r.peek().integer > std::numeric_limits<int>::max())
      r.expected("the number of an operand after '@'");
    o.operand = int(r.take().integer);
  }
  r.expect(":", "and a type after the name '" + o.name + "'");
  o.type = r.expect_name("an element type");
  r.expect("[", "and the sizes after the element type; a scalar is " + o.type + "[]");
  o.sizes = read_formulas(r, "]", "after the sizes");
  o.optional = r.accept("?");
  return o;
}

StageSyntax read_nest(TokenReader& r) {
  StageSyntax s;
  s.at = r.take().at;
  r.expect("(", "before the results");
  do s.results.push_back(read_operand(r));
  while (r.accept(","));
  r.expect(")", "after the results");
  for (const Operand& o : s.results) s.targets.push_back({o.at, o.name, o.type});
  if (r.is_word("as")) {
    r.take();
    s.label = r.expect_name("the stage's name after 'as'");
  }
  s.loops = LoopReader(r).block(0);
  return s;
}

}  // namespace tc::language
