// Definitions and statements.
#include "ir/language/parser.h"

#include <limits>

#include "ir/language/formula_parser.h"
#include "support/text.h"

namespace tc::language {
namespace {

constexpr size_t kMaxProblems = 50;  // of one file

bool is_attribute_type(const std::string& s) {
  return s == "int" || s == "float" || s == "string" || s == "ints" || s == "floats";
}

class Parser {
 public:
  Parser(TokenReader& r, Problems& problems) : r_(r), problems_(problems) {}

  std::vector<Definition> run() {
    std::vector<Definition> all;
    while (!r_.at_end() && !begins_graph(r_) && problems_.size() < kMaxProblems) {
      try {
        if (!begins_definition()) r_.expected("a definition, which begins with 'op'");
        all.push_back(header());
      } catch (const Abandoned&) {
        while (!r_.at_end() && !begins_definition() && !begins_graph(r_)) r_.take();
        continue;
      }
      body(all.back());
    }
    return all;
  }

  Definition function() {
    Definition d = header();
    r_.expect("{", "before the stages of a function in a graph");
    braced_ = true;
    body(d);
    r_.expect("}", "after the stages of a function");
    return d;
  }

 private:
  bool begins_definition() const {
    if (!r_.peek().begins_line) return false;
    return (r_.is_word("op") && r_.is_name(1)) || (r_.is_word("fn") && (r_.is_name(1) || r_.is_symbol("(", 1)));
  }

  // op my.Correlate<T: f32 | f64>(x: T[N], k: int = 1) -> y: T[N]
  Definition header() {
    Definition d;
    d.is_op = r_.take().text == "op";
    d.at = r_.peek().at;
    if (d.is_op || r_.is_name()) d.name = r_.expect_name("the name of the operator");
    while (r_.accept(".")) {
      d.domain += (d.domain.empty() ? "" : ".") + d.name;
      d.name = r_.expect_name("the rest of the name after '.'");
    }
    if (r_.accept("<")) {
      do d.types.push_back(type_parameter());
      while (r_.accept(","));
      r_.expect(">", "after the types");
    }
    r_.expect("(", "before the operands");
    if (!r_.accept(")")) {
      do parameter(d);
      while (r_.accept(","));
      r_.expect(")", "after the operands");
    }
    r_.expect("->", "and the results after the operands");
    do d.outputs.push_back(read_operand(r_));
    while (r_.accept(","));
    return d;
  }

  TypeParameter type_parameter() {
    TypeParameter t;
    t.at = r_.peek().at;
    t.name = r_.expect_name("the name of a type");
    r_.expect(":", "and its element types after the name of a type");
    do t.types.push_back(r_.expect_name("an element type"));
    while (r_.accept("|"));
    return t;
  }

  void parameter(Definition& d) {
    if (r_.is_name() && r_.is_symbol(":", 1) && r_.is_name(2) && is_attribute_type(r_.peek(2).text) &&
        !r_.is_symbol("[", 3))
      d.attributes.push_back(attribute());
    else
      d.inputs.push_back(read_operand(r_));
  }

  Attribute attribute() {
    Attribute a;
    a.at = r_.peek().at;
    a.name = r_.take().text;
    r_.take();
    a.type = r_.take().text;
    if (r_.accept("=")) a.otherwise = value_of(a);
    return a;
  }

  Attribute::Value value_of(const Attribute& a) {
    if (a.type == "int") return r_.expect_integer("a whole number");
    if (a.type == "float") return number();
    if (a.type == "string") return r_.expect_text("a text in double quotes");
    r_.expect("[", "before the default, a list");
    std::vector<int64_t> ints;
    std::vector<double> numbers;
    while (!r_.accept("]")) {
      if (a.type == "ints")
        ints.push_back(r_.expect_integer("a whole number"));
      else
        numbers.push_back(number());
      if (!r_.is_symbol("]")) r_.expect(",", "or ']' after an element of the list");
    }
    if (a.type == "ints") return ints;
    return numbers;
  }

  double number() {
    const bool negative = r_.accept("-");
    const Token t = r_.peek();
    double v = t.kind == Token::Kind::Integer ? double(t.integer) : t.number;
    if (r_.is_word("inf"))
      v = std::numeric_limits<double>::infinity();
    else if (t.kind != Token::Kind::Integer && t.kind != Token::Kind::Number)
      r_.expected("a number");
    r_.take();
    return negative ? -v : v;
  }

  // --- statements
  void body(Definition& d) {
    scan_ = -1;
    scans_ = 0;
    const auto ends = [&] {
      return braced_ ? scan_ < 0 && r_.is_symbol("}") : begins_definition() || begins_graph(r_);
    };
    while (!r_.at_end() && !ends() && problems_.size() < kMaxProblems) {
      const size_t begin = r_.position();
      try {
        if (!r_.peek().begins_line && !r_.is_symbol("}")) r_.expected("the end of the line");
        statement(d);
      } catch (const Abandoned&) {
        // A mistake is told once: what is left of its line says nothing.
        if (r_.position() == begin) r_.take();
        while (!r_.at_end() && !r_.peek().begins_line) r_.take();
      }
    }
    if (scan_ >= 0) r_.tell(r_.peek().at, "the '}' of a scan is missing");
  }

  void statement(Definition& d) {
    if (r_.is_word("require") && !r_.is_symbol("[", 1) && !r_.is_symbol(":", 1)) return requirement(d);
    if (r_.is_word("scan") && (r_.is_symbol("{", 1) || r_.peek(1).kind == Token::Kind::Integer)) return begin_scan();
    if (r_.is_symbol("}")) {
      if (scan_ < 0) r_.fail(r_.peek().at, "no scan is open here");
      r_.take();
      scan_ = -1;
      return;
    }
    const bool nest = r_.is_word("loops") && r_.is_symbol("(", 1);
    d.stages.push_back(nest ? read_nest(r_) : stage());
    d.stages.back().scan = scan_;
  }

  void begin_scan() {
    const Place at = r_.take().at;
    if (scan_ >= 0) r_.fail(at, "scans do not nest");
    int64_t number = scans_;
    if (r_.peek().kind == Token::Kind::Integer) number = r_.take().integer;
    if (number < scans_ || number > 1'000'000) r_.fail(at, "the numbers of scans grow");
    r_.expect("{", "after 'scan'");
    scan_ = int(number);
    scans_ = scan_ + 1;
  }

  void requirement(Definition& d) {
    Requirement q;
    q.at = r_.take().at;
    q.condition = read_formula(r_);
    if (r_.accept(",")) q.message = r_.expect_text("a text that says what is required");
    d.requirements.push_back(std::move(q));
  }

  StageSyntax stage() {
    StageSyntax s;
    s.at = r_.peek().at;
    if (r_.accept("(")) {
      do s.targets.push_back(target());
      while (r_.accept(","));
      r_.expect(")", "after the names of the results");
    } else {
      s.targets.push_back(target());
    }
    r_.expect("[", "and the axes after the name");
    s.axes = axes("]", "after the axes");
    if (r_.is_word("as")) {
      r_.take();
      s.label = r_.expect_name("the stage's name after 'as'");
    }
    r_.expect("=", "after the axes");
    if (begins_reduction(r_)) {
      s.reduction = r_.take().text;
      r_.take();
      s.raxes = axes(")", "after the axes of the reduction");
    }
    s.values = s.reduction == "fold" ? tuple("the values of a fold") : Formulas{read_formula(r_)};
    if (r_.is_word("from") && !s.reduction.empty()) {
      r_.take();
      s.init = s.reduction == "fold" ? tuple("what a fold begins with") : Formulas{read_formula(r_)};
    }
    if (s.reduction == "fold") combiner(s);
    return s;
  }

  void combiner(StageSyntax& s) {
    if (!r_.is_word("by")) r_.expected("'by (a, ...), (b, ...) => (...)' after the values of a fold");
    r_.take();
    s.lhs = names();
    r_.expect(",", "between the two tuples that a fold joins");
    s.rhs = names();
    r_.expect("=>", "and the joined tuple after 'by (...), (...)'");
    s.result = tuple("the joined tuple");
  }

  std::vector<std::string> names() {
    std::vector<std::string> l;
    r_.expect("(", "before the names of a tuple");
    do l.push_back(r_.expect_name("a name"));
    while (r_.accept(","));
    r_.expect(")", "after the names of a tuple");
    return l;
  }

  // One value needs no parentheses.
  Formulas tuple(const std::string& what) {
    if (!r_.is_symbol("(")) return {read_formula(r_)};
    r_.take();
    Formulas l = read_formulas(r_, ")", "after " + what);
    if (l.empty()) r_.expected("a formula");
    return l;
  }

  Target target() {
    Target t;
    t.at = r_.peek().at;
    t.name = r_.expect_name("a stage, as in y[i] = ...");
    if (r_.accept(":")) t.type = r_.expect_name("an element type");
    return t;
  }

  std::vector<AxisSyntax> axes(std::string_view closing, std::string_view where) {
    std::vector<AxisSyntax> l;
    if (r_.accept(closing)) return l;
    do {
      AxisSyntax a;
      a.at = r_.peek().at;
      a.spread = r_.accept("*");
      a.name = r_.expect_name("the name of an axis");
      if (r_.accept(":")) a.extent = extent();
      l.push_back(std::move(a));
    } while (r_.accept(","));
    r_.expect(closing, where);
    return l;
  }

  Formula extent() {
    if (!r_.is_symbol("*")) return read_formula(r_);
    Formula f{Formula::Kind::Spread, r_.take().at};
    f.word = r_.expect_name("the name of a list of sizes after '*'");
    return f;
  }

  TokenReader& r_;
  Problems& problems_;
  int scan_ = -1, scans_ = 0;
  bool braced_ = false;  // the statements stand in braces
};

}  // namespace

bool begins_graph(const TokenReader& r) {
  return r.peek().begins_line && r.is_word("graph") &&
         (r.is_symbol("(", 1) || r.is_name(1) || r.peek(1).kind == Token::Kind::Text);
}

std::vector<Definition> read_definitions(TokenReader& r, Problems& problems) { return Parser(r, problems).run(); }

Definition read_function(TokenReader& r, Problems& problems) { return Parser(r, problems).function(); }

std::vector<Definition> parse(std::string_view text, Problems& problems) {
  TokenReader r(text, problems);
  std::vector<Definition> all = read_definitions(r, problems);
  if (begins_graph(r)) r.tell(r.peek().at, "a graph has no place among definitions");
  return all;
}

}  // namespace tc::language
