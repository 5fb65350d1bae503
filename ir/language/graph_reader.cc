#include "ir/language/graph_reader.h"

#include "ir/language/function_text.h"
#include "ir/language/parser.h"
#include "ir/ops/op.h"
#include "support/text.h"

namespace tc::language {
namespace {

constexpr int kMaxDepth = 100;  // of regions
constexpr size_t kMaxProblems = 50;

std::string shown(const std::pair<std::string, int64_t>& name) {
  return "'" + printable(name.first, 80) + (name.second > 1 ? "~" + tc::to_text(name.second) : "") + "'";
}

// What verify() of ir/verify.h takes for granted: the operators that may stand in a graph.
bool is_control_flow(const Node& n) { return n.domain.empty() && (n.op == "If" || n.op == "Loop" || n.op == "Scan"); }

}  // namespace

// --- names
GraphReader::Reference GraphReader::reference() {
  Reference ref;
  ref.at = r_.peek().at;
  if (r_.peek().kind == Token::Kind::Text) {
    ref.name = {r_.take().text, 1};
    if (!r_.accept("~")) return ref;
    ref.name.second = r_.expect_integer("a number after '~'");
    return ref;
  }
  const std::string word = r_.expect_name("the name of a value");
  ref.absent = word == "_";
  const size_t at = std::min(word.find('~'), word.size());
  int64_t number = 1;
  for (size_t k = at + 1; k < word.size() && number < INT32_MAX; k++)
    number = (k == at + 1 ? 0 : number * 10) + (word[k] - '0');
  ref.name = {word.substr(0, at), number};
  return ref;
}

void GraphReader::definition(Definition& d) {
  d.value = reference();
  if (d.value.absent) return;
  r_.expect(":", "and a type after the name " + shown(d.value.name));
  d.type = read_type(r_);
}

Value* GraphReader::value(Scope& s, const Reference& ref) {
  if (ref.absent) return nullptr;
  const auto it = s.values.find(ref.name);
  if (it != s.values.end()) return it->second;
  if (s.lost.count(ref.name)) throw Abandoned();
  r_.fail(ref.at, "no value is called " + shown(ref.name) + " above");
}

void GraphReader::define(Scope& s, const Definition& d, Value* v) {
  v->name = ModelText(d.value.name.first);
  s.g.set_type(v, d.type);
  if (!s.values.emplace(d.value.name, v).second)
    r_.tell(d.value.at, shown(d.value.name) + " is defined already; others of that name are " +
                            shown({d.value.name.first, 2}) + " and so on");
}

// --- graphs
Graph GraphReader::graph(int depth) {
  if (depth > kMaxDepth)
    r_.fail(r_.peek().at, "graphs nest deeper than " + tc::to_text(int64_t(kMaxDepth)) + " levels");
  Scope s;
  RunTimeSizes sizes;
  header(s, sizes);
  const std::vector<Reference> names = outputs(sizes);
  r_.expect("{", "before the nodes of a graph");
  while (!r_.at_end() && !r_.is_symbol("}") && problems_.size() < kMaxProblems) statement(s, depth);
  if (problems_.size() >= kMaxProblems || (r_.at_end() && !problems_.empty())) throw Abandoned();
  r_.expect("}", "after the nodes of a graph");
  set_outputs(s, names, std::move(sizes));
  return std::move(s.g);
}

// [FACTOR of] NUMBER { plus [FACTOR of] NUMBER } [plus constant NUMBER]
SizeSum GraphReader::sum() {
  SizeSum s;
  do {
    if (r_.is_word("plus")) r_.take();
    const Place at = r_.peek().at;
    const bool constant = r_.is_word("constant");
    if (constant) r_.take();
    int64_t n = r_.expect_integer("the number of an input");
    if (constant) {
      s.addend = n;
      break;
    }
    SizeSum::Term t;
    if (r_.is_word("of")) {
      r_.take();
      t.factor = n;
      n = r_.expect_integer("the number of an input");
    }
    if (n < 0 || t.factor == 0) r_.fail(at, "inputs count from 0, and a factor is not 0");
    t.input = size_t(n);
    s.terms.push_back(t);
  } while (r_.is_word("plus"));
  return s;
}

// counted AXIS by [input] NUMBER
GraphReader::Counted GraphReader::counted() {
  Counted c;
  c.at = r_.take().at;
  const int64_t axis = r_.expect_integer("an axis after 'counted'");
  if (!r_.is_word("by")) r_.expected("'by' and the number of an output or input after the axis");
  r_.take();
  if (r_.is_word("input")) r_.take(), c.of_input = true;
  const Place number = r_.peek().at;
  c.sum = sum();
  if (c.sum.terms.empty()) r_.fail(number, "a size that is counted has an input in it");
  const auto by = int64_t(c.sum.terms[0].input);
  if (axis < 0 || axis > INT32_MAX || by < 0) r_.fail(c.at, "an axis and an output count from 0");
  c.axis = int(axis);
  c.by = size_t(by);
  return c;
}

// Outputs are named before they are defined.
std::vector<GraphReader::Reference> GraphReader::outputs(RunTimeSizes& sizes) {
  std::vector<Reference> names;
  r_.expect("(", "before the outputs");
  while (!r_.accept(")")) {
    names.push_back(reference());
    if (names.back().absent) r_.fail(names.back().at, "an output of a graph is a value");
    while (r_.is_word("counted")) {
      const Counted c = counted();
      if (!c.of_input && !c.sum.is_one()) r_.fail(c.at, "an output is counted by one output");
      sizes.outputs.push_back({names.size() - 1, c.axis, c.of_input ? 0 : c.by, c.of_input ? c.sum : SizeSum()});
    }
    if (!r_.is_symbol(")")) r_.expect(",", "or ')' after an output");
  }
  return names;
}

namespace {

/// Null: the input is no size.
const SizeInput* size_input(const RunTimeSizes& sizes, size_t input) {
  const auto it =
      std::find_if(sizes.chosen.begin(), sizes.chosen.end(), [&](const SizeInput& c) { return c.input == input; });
  return it == sizes.chosen.end() ? nullptr : &*it;
}

}  // namespace

/// Of an output that is counted by inputs: are these sizes, and is their sum never below 0?
void GraphReader::check_sum(const OutputSize& size, const RunTimeSizes& sizes, const Place& at) {
  auto least = double(size.sum.addend);
  for (const SizeSum::Term& t : size.sum.terms) {
    const SizeInput* chosen = size_input(sizes, t.input);
    if (!chosen) r_.fail(at, "input " + tc::to_text(int64_t(t.input)) + ", which counts the output, is no size");
    least += double(t.factor) * double(t.factor > 0 ? chosen->least : chosen->most);
  }
  if (least < 0) r_.fail(at, "what counts the output may be below 0");
}

void GraphReader::set_outputs(Scope& s, const std::vector<Reference>& names, RunTimeSizes sizes) {
  std::vector<Value*> values;
  for (const Reference& ref : names) values.push_back(value(s, ref));
  for (const OutputSize& size : sizes.outputs) {
    const Place at = names[size.output].at;
    const std::vector<Value*>& counts = size.of_inputs() ? s.g.inputs() : values;
    std::vector<size_t> by;
    for (const SizeSum::Term& t : size.sum.terms) by.push_back(t.input);
    if (!size.of_inputs()) by.push_back(size.count);
    for (const size_t k : by)
      if (k >= counts.size())
        r_.fail(at, (size.of_inputs() ? "there is no input " : "there is no output ") + tc::to_text(int64_t(k)));
    const ValueType& t = values[size.output]->type;
    if (!t.is_tensor() || size_t(size.axis) >= t.shape.size())
      r_.fail(at, "the output has no axis " + tc::to_text(int64_t(size.axis)));
    for (const size_t k : by)
      if (!(counts[k]->type == ValueType::tensor(DType::I64, {}))) r_.fail(at, "what counts an output is an i64[]");
    if (size.of_inputs()) check_sum(size, sizes, at);
  }
  for (const StatePair& p : sizes.states) {
    if (p.output >= values.size()) r_.fail(r_.peek().at, "there is no output " + tc::to_text(int64_t(p.output)));
    const Value *before = s.g.inputs()[p.input], *after = values[p.output];
    const bool known = before->type.is_static_tensor() && after->type.is_static_tensor();  // else sizes are bound later
    if (known ? !(before->type == after->type) : before->type.dtype != after->type.dtype)
      r_.fail(names[p.output].at, "what is kept as " + shown({before->name.raw(), 1}) + " has another type");
  }
  s.g.set_outputs(std::move(values));
  s.g.set_sizes(std::move(sizes));
}

// kept as OUTPUT
void GraphReader::kept(RunTimeSizes& sizes, size_t number) {
  r_.take();
  if (!r_.is_word("as")) r_.expected("'as' and the number of an output");
  r_.take();
  const Place at = r_.peek().at;
  const int64_t output = r_.expect_integer("the number of an output");
  if (output < 0) r_.fail(at, "outputs count from 0");
  sizes.states.push_back({number, size_t(output)});
}

// from LEAST to MOST [then SUM]
void GraphReader::range(const Definition& d, RunTimeSizes& sizes, size_t number) {
  const Place at = r_.take().at;
  const int64_t least = r_.expect_integer("the least size after 'from'");
  if (!r_.is_word("to")) r_.expected("'to' and the largest size");
  r_.take();
  const int64_t most = r_.expect_integer("the largest size after 'to'");
  if (least < 0 || most < least || !(d.type == ValueType::tensor(DType::I64, {})))
    r_.fail(at, "a size is an i64[] from one number to another that is no smaller");
  sizes.chosen.push_back({number, least, most});
  if (!r_.is_word("then")) return;
  r_.take();
  sizes.chosen.back().next = sum();
}

// NAME: TYPE { counted AXIS by SUM } [kept as OUTPUT] [from LEAST to MOST [then SUM]]
void GraphReader::input(Scope& s, RunTimeSizes& sizes) {
  Definition d;
  definition(d);
  if (d.value.absent) r_.fail(d.value.at, "an input of a graph has a name");
  const size_t number = s.g.inputs().size();
  define(s, d, s.g.add_input(ModelText(), {}));
  while (r_.is_word("counted")) {
    const Counted c = counted();
    if (!d.type.is_tensor() || size_t(c.axis) >= d.type.shape.size() || c.of_input)
      r_.fail(c.at, "an input is counted along one of its axes by another input");
    sizes.inputs.push_back({number, c.axis, c.sum});
  }
  if (r_.is_word("kept")) kept(sizes, number);
  if (r_.is_word("from")) range(d, sizes, number);
}

void GraphReader::check_inputs(const Graph& g, const RunTimeSizes& sizes) {
  const auto check = [&](const SizeSum& sum, size_t input) {
    for (const SizeSum::Term& t : sum.terms)
      if (!size_input(sizes, t.input))
        r_.fail(r_.peek().at, "input " + tc::to_text(int64_t(t.input)) + ", which counts " +
                                  shown({g.inputs()[input]->name.raw(), 1}) + ", is no size");
  };
  for (const InputSize& i : sizes.inputs) check(i.count, i.input);
  for (const SizeInput& c : sizes.chosen)
    if (c.next) check(*c.next, c.input);
}

void GraphReader::header(Scope& s, RunTimeSizes& sizes) {
  if (!r_.is_word("graph")) r_.expected("a graph");
  r_.take();
  if (!r_.is_symbol("(")) s.g = Graph(ModelText(read_name(r_, "the name of the graph, or '('")));
  r_.expect("(", "before the inputs");
  while (!r_.accept(")")) {
    input(s, sizes);
    if (!r_.is_symbol(")")) r_.expect(",", "or ')' after an input");
  }
  check_inputs(s.g, sizes);
  r_.expect("->", "and the outputs after the inputs");
}

void GraphReader::statement(Scope& s, int depth) {
  const size_t begin = r_.position();
  try {
    if (!r_.peek().begins_line) r_.expected("the end of the line");
    if (r_.is_word("fn")) return function(s);
    if (begins_graph(r_)) {
      Graph region = graph(depth + 1);
      if (s.last) s.last->regions.push_back(std::make_unique<Graph>(std::move(region)));
      return;
    }
    defining_line(s);
  } catch (const Abandoned&) {
    skip_line(s, begin);
  } catch (const Error& e) {  // sizes beyond 64 bits
    r_.tell(r_.peek().at, e.diagnostic().message);
    skip_line(s, begin);
  }
}

// A mistake is told once: what is left of its line says nothing, and neither does what is in braces behind it.
void GraphReader::skip_line(Scope& s, size_t begin) {
  s.last = nullptr;
  if (r_.position() == begin && !r_.at_end()) r_.take();
  int open = 0;
  while (!r_.at_end() && (open > 0 || !r_.peek().begins_line)) {
    if (r_.is_symbol("{") || r_.is_symbol("}")) open += r_.is_symbol("{") ? 1 : -1;
    r_.take();
  }
}

void GraphReader::defining_line(Scope& s) {
  std::vector<Definition> results;
  try {
    if (!r_.is_symbol("=")) do
        definition(results.emplace_back());
      while (r_.accept(","));
    r_.expect("=", "and an operator or 'const' after the results");
    if (r_.is_word("const")) {
      if (results.size() != 1 || results[0].value.absent) r_.fail(r_.peek().at, "one constant stands on a line");
      return constant_line(s, results[0]);
    }
    node_line(s, results);
  } catch (...) {
    for (const Definition& d : results)
      if (!s.values.count(d.value.name)) s.lost.insert(d.value.name);
    throw;
  }
}

void GraphReader::constant_line(Scope& s, const Definition& d) {
  const Place at = r_.peek().at;
  const Constant c = constant(&d.type);
  if (!c) r_.fail(at, "the elements of a constant are missing");
  define(s, d, s.g.add_constant(ModelText(), c));
  s.last = nullptr;
}

void GraphReader::node_line(Scope& s, const std::vector<Definition>& results) {
  const Place at = r_.peek().at;
  const auto [domain, name] = op();
  std::vector<Value*> inputs;
  r_.expect("(", "before the operands");
  while (!r_.accept(")")) {
    inputs.push_back(value(s, reference()));
    if (!r_.is_symbol(")")) r_.expect(",", "or ')' after an operand");
  }
  Attrs attrs;
  if (r_.is_symbol("{")) attrs = attributes();
  std::vector<ModelText> outputs;
  for (const Definition& d : results) outputs.emplace_back(d.value.absent ? "" : "y");
  Node* n = s.g.append(name, std::move(inputs), std::move(outputs), std::move(attrs), domain);
  if (!results.empty() && results[0].value.absent) s.g.drop_output(n, 0);
  s.last = n;
  for (size_t k = 0; k < results.size(); k++)
    if (n->outputs[k]) define(s, results[k], n->outputs[k]);
  names(*n);
  check_op(at, *n);
}

void GraphReader::check_op(const Place& at, Node& n) const {
  for (const OwnRow& row : rows_)
    if (row->domain == n.domain && row->name == n.op) n.row = row;
  const bool fused = n.domain == "tc" && n.op == "fused";
  if (!fused && !is_control_flow(n) && !row_of(n))
    r_.tell(at, "no operator is called " + (n.domain.empty() ? "" : n.domain + ".") + n.op +
                    "; one of your own is defined above the graph, as in docs/language.md");
}

void GraphReader::function(Scope& s) {
  const Place at = r_.peek().at;
  Node* n = s.last;
  const size_t before = problems_.size();
  const language::Definition d = read_function(r_, problems_);
  if (!n) return;  // of a line with a mistake
  if (n->domain != "tc" || n->op != "fused" || n->fn) r_.fail(at, "one function stands behind a node tc.fused");
  if (problems_.size() > before) return;
  if (auto fn = function_of(d, problems_)) n->fn = std::make_shared<const TensorFn>(std::move(*fn));
}

}  // namespace tc::language
