// The printer of definitions.
#include "ir/language/syntax.h"

#include <bit>
#include <cmath>
#include <map>

#include "ir/language/lexer.h"
#include "support/text.h"

namespace tc::language {
namespace {

constexpr int kUnary = 13;

std::string number_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  const std::string s = tc::to_text(v);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

std::string formula_text(const Formula& f, int parent);

std::string list_text(const Formulas& l) {
  std::vector<std::string> parts;
  for (const Formula& f : l) parts.push_back(formula_text(f, 0));
  return join(parts, ", ");
}

std::string formula_text(const Formula& f, int parent) {
  const auto enclosed = [&](const std::string& s, int own) { return own < parent ? "(" + s + ")" : s; };
  switch (f.kind) {
    case Formula::Kind::Integer: return tc::to_text(f.integer);
    case Formula::Kind::Number: return number_text(f.number);
    case Formula::Kind::Text: return quoted(f.word);
    case Formula::Kind::Name: return f.word;
    case Formula::Kind::Spread: return "*" + f.word;
    case Formula::Kind::Load: return f.word + "[" + list_text(f.args) + "]";
    case Formula::Kind::Call: return f.word + "(" + list_text(f.args) + ")";
    case Formula::Kind::Unary: return enclosed(f.word + formula_text(f.args[0], kUnary), kUnary);
    case Formula::Kind::Binary: {
      const int own = precedence(f.word);
      return enclosed(formula_text(f.args[0], own) + " " + f.word + " " + formula_text(f.args[1], own + 1), own);
    }
  }
  return "";
}

std::string axes_text(const std::vector<AxisSyntax>& axes) {
  std::vector<std::string> parts;
  for (const AxisSyntax& a : axes)
    parts.push_back((a.spread ? "*" : "") + a.name + (a.extent ? ": " + to_text(*a.extent) : ""));
  return join(parts, ", ");
}

std::string tuple_text(const Formulas& l) { return l.size() == 1 ? list_text(l) : "(" + list_text(l) + ")"; }

std::string operand_text(const Operand& o) {
  return o.name + (o.operand >= 0 ? " @ " + tc::to_text(int64_t(o.operand)) : "") + ": " + o.type + "[" +
         list_text(o.sizes) + "]" + (o.optional ? "?" : "");
}

std::string attribute_text(const Attribute& a) {
  const auto list = [](const auto& values, const auto& text) {
    std::vector<std::string> parts;
    for (const auto& v : values) parts.push_back(text(v));
    return "[" + join(parts, ", ") + "]";
  };
  const auto integer = [](int64_t v) { return tc::to_text(v); };
  std::string s = a.name + ": " + a.type;
  if (auto* i = std::get_if<int64_t>(&a.otherwise)) s += " = " + integer(*i);
  if (auto* d = std::get_if<double>(&a.otherwise)) s += " = " + number_text(*d);
  if (auto* t = std::get_if<std::string>(&a.otherwise)) s += " = " + quoted(*t);
  if (auto* l = std::get_if<std::vector<int64_t>>(&a.otherwise)) s += " = " + list(*l, integer);
  if (auto* l = std::get_if<std::vector<double>>(&a.otherwise)) s += " = " + list(*l, number_text);
  return s;
}

std::string stage_text(const StageSyntax& s) {
  std::vector<std::string> targets;
  for (const Target& t : s.targets) targets.push_back(t.name + (t.type.empty() ? "" : ": " + t.type));
  std::string text = targets.size() == 1 ? targets[0] : "(" + join(targets, ", ") + ")";
  text += "[" + axes_text(s.axes) + "]" + (s.label.empty() ? "" : " as " + s.label) + " = ";
  if (!s.reduction.empty()) text += s.reduction + "(" + axes_text(s.raxes) + ") ";
  text += tuple_text(s.values);
  if (!s.init.empty()) text += " from " + tuple_text(s.init);
  if (!s.result.empty())
    text += " by (" + join(s.lhs, ", ") + "), (" + join(s.rhs, ", ") + ") => " + tuple_text(s.result);
  return text;
}

std::string head_text(const LoopSyntax& l) {
  using Kind = LoopSyntax::Kind;
  switch (l.kind) {
    case Kind::Store: {
      const std::string how = l.how.empty() ? " = " : " " + l.how + "= ";
      return l.word + "[" + list_text(l.args) + "]" + how + to_text(l.values[0]);
    }
    case Kind::For:
      return "for " + (l.how.empty() ? "" : l.how + " ") + l.word + ": " + to_text(l.values[0]) +
             (l.values.size() > 1 ? " from " + to_text(l.values[1]) : "");
    case Kind::While: return "while " + to_text(l.values[0]);
    case Kind::If: return "if " + to_text(l.values[0]);
    case Kind::Let: return "let " + l.word + ": " + l.type + " = " + to_text(l.values[0]);
    case Kind::Alloc: return "alloc " + l.word + ": " + l.type + "[" + list_text(l.args) + "] in " + l.how;
    case Kind::Note: return "note " + quoted(l.word);
  }
  return "";
}

void loops_text(const std::vector<LoopSyntax>& loops, const std::string& indent, std::string& text) {
  for (const LoopSyntax& l : loops) {
    text += indent + head_text(l) + (l.kind == LoopSyntax::Kind::Store ? "\n" : " {\n");
    if (l.kind == LoopSyntax::Kind::Store) continue;
    loops_text(l.body, indent + "  ", text);
    if (!l.otherwise.empty()) {
      text += indent + "} else {\n";
      loops_text(l.otherwise, indent + "  ", text);
    }
    text += indent + "}\n";
  }
}

std::string nest_text(const StageSyntax& s, const std::string& indent) {
  std::vector<std::string> results;
  for (const Operand& o : s.results) results.push_back(operand_text(o));
  std::string text = "loops (" + join(results, ", ") + ")" + (s.label.empty() ? "" : " as " + s.label) + " {\n";
  loops_text(s.loops, indent + "  ", text);
  return text + indent + "}";
}

std::string types_text(const Definition& d) {
  std::vector<std::string> parts;
  for (const TypeParameter& t : d.types) parts.push_back(t.name + ": " + join(t.types, " | "));
  return parts.empty() ? "" : "<" + join(parts, ", ") + ">";
}

}  // namespace

// Numbers are equal by their bits: -0.0 is not 0.0, and one NaN is the other.
bool Formula::operator==(const Formula& o) const {
  return kind == o.kind && word == o.word && integer == o.integer && args == o.args &&
         std::bit_cast<uint64_t>(number) == std::bit_cast<uint64_t>(o.number);
}

int precedence(std::string_view symbol) {
  static const std::map<std::string_view, int> table = {
      {"||", 4}, {"&&", 5},  {"|", 6},  {"^", 7},  {"&", 8},  {"==", 9}, {"!=", 9},  {"<", 10}, {"<=", 10},
      {">", 10}, {">=", 10}, {"+", 11}, {"-", 11}, {"*", 12}, {"/", 12}, {"//", 12}, {"%", 12}};
  const auto row = table.find(symbol);
  return row == table.end() ? 0 : row->second;
}

std::string full_name(const Definition& d) { return d.domain.empty() ? d.name : d.domain + "." + d.name; }

std::string to_text(const Formula& f) { return formula_text(f, 0); }

std::string to_text(const Definition& d) {
  std::vector<std::string> parameters, outputs;
  for (const Operand& o : d.inputs) parameters.push_back(operand_text(o));
  for (const Attribute& a : d.attributes) parameters.push_back(attribute_text(a));
  for (const Operand& o : d.outputs) outputs.push_back(operand_text(o));
  std::string text = (d.is_op          ? "op "
                      : d.name.empty() ? "fn"
                                       : "fn ") +
                     full_name(d) + types_text(d) + "(" + join(parameters, ", ") + ") -> " + join(outputs, ", ") + "\n";
  for (const Requirement& r : d.requirements)
    text += "  require " + to_text(r.condition) + (r.message.empty() ? "" : ", " + quoted(r.message)) + "\n";
  int scan = -1;
  for (const StageSyntax& s : d.stages) {
    if (s.scan != scan && scan >= 0) text += "  }\n";
    if (s.scan != scan && s.scan >= 0) text += "  scan " + tc::to_text(int64_t(s.scan)) + " {\n";
    scan = s.scan;
    const std::string indent = scan >= 0 ? "    " : "  ";
    text += indent + (s.results.empty() ? stage_text(s) : nest_text(s, indent)) + "\n";
  }
  return text + (scan >= 0 ? "  }\n" : "");
}

}  // namespace tc::language
