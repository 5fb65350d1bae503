#include "ir/language/user_ops.h"

#include <algorithm>
#include <set>

#include "ir/language/bind.h"
#include "ir/language/elaborate.h"
#include "ir/language/parser.h"
#include "support/text.h"

namespace tc {
namespace {

using namespace language;

/// A row with the texts that it refers to.
struct UserOp {
  SourceText source;
  Definition definition;
  std::string operands;
  OpRow row;
};

Attr default_of(const Attribute& a) {
  if (auto* i = std::get_if<int64_t>(&a.otherwise)) return *i;
  if (auto* d = std::get_if<double>(&a.otherwise)) return float(*d);
  if (auto* s = std::get_if<std::string>(&a.otherwise)) return *s;
  if (auto* l = std::get_if<std::vector<int64_t>>(&a.otherwise)) return *l;
  if (auto* l = std::get_if<std::vector<double>>(&a.otherwise)) return std::vector<float>(l->begin(), l->end());
  return {};
}

void check_requirements(const Definition& d, const Names& names, const SourceText& source, const OpBuilder& b) {
  for (const Requirement& q : d.requirements) {
    if (Evaluator(names, Mode::Op).truth(q.condition)) continue;
    b.reject((q.message.empty() ? full_name(d) + " requires " + language::to_text(q.condition) : q.message) + " (" +
             place_text(source, q.at) + ")");
  }
}

// The meaning of a node: what the stages of its definition are for its sizes and types.
void define(const UserOp& op, OpBuilder& b) {
  const Definition& d = op.definition;
  try {
    const Names names = bind_node(d, op.source, b);
    check_requirements(d, names, op.source, b);
    Problems problems;
    Elaborated e = elaborate(d, names, Mode::Op, problems);
    if (!problems.empty()) throw FormulaError{problems[0]};
    int scan = -1;
    for (Stage& s : e.stages) {
      if (s.scan != scan && scan >= 0) b.end_scan();
      if (s.scan != scan && s.scan >= 0) b.begin_scan();
      scan = s.scan;
      b.add(std::move(s));
    }
    if (scan >= 0) b.end_scan();
    for (size_t k = 0; k < e.outputs.size(); k++) b.output(int(k), Tensor(e.outputs[k]));
  } catch (const FormulaError& e) {
    b.reject(e.problem.message + " (" + place_text(op.source, e.problem.at) + ")", e.problem.input);
  }
}

/// Looks at one definition without a node.
class DefinitionChecker {
 public:
  DefinitionChecker(const Definition& d, Problems& problems) : d_(d), problems_(problems) {}

  void run() {
    try {
      if (!d_.is_op) fail(d_.at, "a file of operators holds definitions that begin with 'op'");
      if (d_.domain.empty() || d_.domain == "ai.onnx" || d_.domain == "tc")
        fail(d_.at, "an operator stands in a domain of its own, as in my." + d_.name);
      for (const Operand& o : d_.inputs)
        if (o.operand >= 0) fail(o.at, "operands of an op are in order; leave '@' out");
      if (find_op(d_.domain, d_.name)) fail(d_.at, "the tool has an operator " + full_name(d_) + " already");
      const std::map<std::string, DType> first = first_types();
      trial(first);
      for (const TypeParameter& p : d_.types)
        for (const DType t : types_of(p)) {
          std::map<std::string, DType> types = first;
          types[p.name] = t;
          if (problems_.empty()) trial(types, ", where " + p.name + " is " + std::string(info(t).name));
        }
    } catch (const FormulaError& e) {
      problems_.push_back(e.problem);
    }
  }

 private:
  std::map<std::string, DType> first_types() const {
    std::map<std::string, DType> types;
    for (const TypeParameter& p : d_.types) {
      const bool bound = std::any_of(d_.inputs.begin(), d_.inputs.end(),
                                     [&](const Operand& o) { return o.type == p.name && !o.optional; });
      if (!bound)
        fail(p.at, "no operand that is always there has the type '" + p.name + "', so that nothing says what it is");
      if (element_type_of(p.name)) fail(p.at, "'" + p.name + "' is an element type already");
      if (!types.emplace(p.name, types_of(p).at(0)).second) fail(p.at, "'" + p.name + "' is a type already");
    }
    return types;
  }

  void trial(const std::map<std::string, DType>& types, const std::string& when = "") {
    const Names names = bind_samples(d_, types);
    Problems found;
    for (const Requirement& q : d_.requirements) (void)Evaluator(names, Mode::Trial).truth(q.condition);
    (void)elaborate(d_, names, Mode::Trial, found);
    for (Problem& p : found) {
      p.message += when;
      problems_.push_back(std::move(p));
    }
  }

  const Definition& d_;
  Problems& problems_;
};

OwnRow row_of(const std::string& file, Definition d) {
  const auto op = std::make_shared<UserOp>();
  op->source.file = file;  // messages name places in it
  op->definition = std::move(d);
  std::vector<std::string> names;
  std::vector<AttrSpec> attrs;
  for (const Operand& o : op->definition.inputs) names.push_back(make_identifier(o.name, 40));
  for (const Attribute& a : op->definition.attributes) attrs.push_back({a.name, default_of(a)});
  op->operands = join(names, " ");
  op->row.name = op->definition.name;
  op->row.domain = op->definition.domain;
  op->row.definition = language::to_text(op->definition);
  op->row.operands = op->operands;
  op->row.since = 1;
  op->row.attrs = std::move(attrs);
  op->row.define = [self = op.get()](OpBuilder& b) { define(*self, b); };
  return OwnRow(op, &op->row);
}

}  // namespace

std::vector<OwnRow> user_ops(std::vector<language::Definition> definitions, const std::string& file,
                             const std::vector<OwnRow>& rows, Problems& found) {
  std::set<std::string> names;
  for (const OwnRow& row : rows) names.insert(std::string(row->domain) + "." + std::string(row->name));
  const size_t before = found.size();
  for (const Definition& d : definitions) {
    Problems of_one;
    if (!names.insert(full_name(d)).second)
      of_one.push_back({d.at, "the operator " + full_name(d) + " is defined already"});
    DefinitionChecker(d, of_one).run();
    found.insert(found.end(), of_one.begin(), of_one.end());
  }
  if (found.size() > before) return {};
  std::vector<OwnRow> made;
  for (Definition& d : definitions) made.push_back(row_of(file, std::move(d)));
  return made;
}

std::vector<OwnRow> user_ops(const SourceText& source, const std::vector<OwnRow>& rows,
                             std::vector<std::string>& problems) {
  Problems found;
  std::vector<Definition> definitions = parse(source.text, found);
  if (found.empty() && definitions.empty()) found.push_back({{}, "the file defines no operator"});
  std::vector<OwnRow> made;
  if (found.empty()) made = user_ops(std::move(definitions), source.file, rows, found);
  std::stable_sort(found.begin(), found.end(), [](const Problem& a, const Problem& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  for (const Problem& p : found) problems.push_back(render(source, p));
  return made;
}

}  // namespace tc
