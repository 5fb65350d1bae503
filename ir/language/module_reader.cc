// Files with a graph: header, operators of the user's, graph; then what has to hold of a graph that anybody may have written.
#include "ir/graph/bodies.h"
#include "ir/language/graph_reader.h"
#include "ir/language/parser.h"
#include "ir/verify.h"
#include "ir/verify_accesses.h"
#include "support/text.h"

namespace tc::language {
namespace {

ModuleHeader read_header(TokenReader& r) {
  ModuleHeader h;
  r.take();
  const Place at = r.peek().at;
  if (const int64_t v = r.expect_integer("the version of the language after 'ir'"); v != kLanguageVersion)
    r.fail(at, "this is version " + tc::to_text(v) + " of the language; this tc-emit reads version " +
                   tc::to_text(int64_t(kLanguageVersion)));
  for (;;) {
    if (r.is_word("after")) {
      r.take();
      h.after = r.expect_text("the label of a pass, a text");
    } else if (r.is_word("option")) {
      r.take();
      std::string flag = r.expect_text("an option, a text");
      h.options.emplace_back(std::move(flag), r.expect_text("the option's value, a text"));
    } else {
      return h;
    }
  }
}

std::string label(const Node& n) { return "node \"" + printable(n.name.raw()) + "\" (tc.fused): "; }

// The function of a node has the operands and results of the node, and reads nothing outside of them.
void check_function(const Node& n) {
  const auto need = [&](bool ok, const std::string& what) {
    if (!ok) throw InternalError(label(n) + what);
  };
  need(n.fn != nullptr, "its function is missing");
  const auto agree = [&](const std::vector<Value*>& values, const std::vector<Buffer>& buffers,
                         const std::string& what) {
    need(values.size() == buffers.size(), "its function has another number of " + what);
    for (size_t k = 0; k < values.size(); k++)
      need(values[k] && values[k]->type == ValueType::tensor(buffers[k]->dtype, buffers[k]->shape),
           what + " " + tc::to_text(int64_t(k)) + " of its function have another type");
  };
  agree(n.inputs, n.fn->inputs, "operands");
  agree(n.outputs, n.fn->outputs, "results");
  need(n.fn->operands.empty(), "'@' is for functions that stand alone");
  verify(*n.fn);
  verify_accesses(lower_naive(*n.fn));
}

void check_graph(const Graph& g, bool imported) {
  verify(g, !imported);
  for (const Graph* next : with_bodies(g))
    for (const auto& n : next->nodes())
      if (n->domain == "tc" && n->op == "fused") check_function(*n);
}

Module read(TokenReader& r, const SourceText& source, const DataReader& data, Problems& problems) {
  Module m;
  if (r.is_word("ir")) m.header = read_header(r);
  const std::vector<OwnRow> rows = user_ops(read_definitions(r, problems), source.file, {}, problems);
  if (!begins_graph(r)) r.expected("a graph, as in graph net(x: f32[2]) -> (y) { ... }");
  GraphReader graphs(r, problems, data, rows);
  m.graph = graphs.graph();
  if (!r.at_end()) r.expected("the end of the file behind the graph");
  if (!problems.empty()) return m;
  m.graph.renumber();
  check_graph(m.graph, m.header.after.empty());
  return m;
}

}  // namespace

std::optional<Module> parse_module(const SourceText& source, const DataReader& data, Problems& problems) {
  TokenReader r(source.text, problems, kMaxModuleBytes);
  const Place begin = r.peek().at;
  try {
    Module m = read(r, source, data, problems);
    if (problems.empty()) return m;
  } catch (const Abandoned&) {
  } catch (const Error& e) {
    problems.push_back({begin, e.diagnostic().message});
  } catch (const InternalError& e) {
    problems.push_back({begin, std::string("the graph is not sound: ") + e.what()});
  }
  return std::nullopt;
}

}  // namespace tc::language
