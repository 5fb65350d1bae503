// Step 2: the model is what the format says it is, before ONNX's library sees it: versions, names, order, attributes,
// functions. Tensors follow in step 3.
#include "importer/validate.h"

#include "importer/tensors.h"

namespace tc::importer {

namespace {

constexpr int64_t kNewestIr = onnx::Version::IR_VERSION;

bool check_header(Context& c, onnx::ModelProto& m) {
  const int before = c.errors;
  if (!m.has_graph()) {
    c.reject("TC0106", nullptr, "the model has no graph");
    return false;
  }
  if (m.ir_version() < 1) c.reject("TC0106", nullptr, "the model states no IR version");
  if (m.ir_version() > kNewestIr)
    c.error("TC0107", ExitCode::Unsupported, nullptr,
            "IR version " + to_text(m.ir_version()) + " is newer than " + to_text(kNewestIr) +
                ", the newest one known here",
            {"export the model for an older version of ONNX"});
  // Models before IR version 3 state no operator set: it is version 1.
  if (m.opset_import_size() == 0 && m.ir_version() < 3) m.add_opset_import()->set_version(1);
  if (m.opset_import_size() == 0) c.reject("TC0106", nullptr, "the model imports no operator set");
  std::map<std::string, int64_t> versions;
  for (const auto& o : m.opset_import()) {
    const std::string domain = domain_of(o.domain());
    // Some converters repeat themselves, which says nothing wrong.
    if (!versions.emplace(domain, o.version()).second && versions[domain] != o.version())
      c.reject("TC0106", nullptr, "operator set " + quoted(domain.empty() ? "ai.onnx" : domain) + " is imported twice");
    if (o.version() < 1) c.reject("TC0106", nullptr, "operator set " + quoted(o.domain()) + " has no valid version");
    if (domain.empty() && o.version() > newest_opset())
      c.error("TC0107", ExitCode::Unsupported, nullptr,
              "operator set version " + to_text(o.version()) + " is newer than " + to_text(int64_t(newest_opset())) +
                  ", the newest one known here",
              {"export the model with opset_version=" + to_text(int64_t(newest_opset())) + " or lower"});
  }
  return c.errors == before;
}

/// Types of a graph's inputs: present (in the main graph), element types known, sizes that can be sizes.
void check_type(Context& c, const onnx::ValueInfoProto& v, const char* what) {
  const std::string who = std::string(what) + " " + quoted(v.name()) + ": ";
  const onnx::TypeProto* t = &v.type();
  // Containers nest as deep as the parser allows: a loop, not recursion.
  while (t->has_sequence_type() || t->has_optional_type())
    t = t->has_sequence_type() ? &t->sequence_type().elem_type() : &t->optional_type().elem_type();
  if (t->has_map_type() && t == &v.type()) return;  // list_inputs.cc looks into it
  if (t->has_map_type() || t->has_opaque_type() || t->has_sparse_tensor_type())
    return c.error("TC0153", ExitCode::Unsupported, nullptr,
                   who + "lists of maps, sparse tensors and opaque types are not supported");
  if (!t->has_tensor_type()) return c.reject("TC0153", nullptr, who + "it has no type");
  const auto& tensor = t->tensor_type();
  if (element_type(tensor.elem_type()) == DType::Undefined)
    return c.error("TC0122", tensor.elem_type() == 0 ? ExitCode::Rejected : ExitCode::Unsupported, nullptr,
                   who + "element type " + element_type_name(tensor.elem_type()) + " is not supported");
  if (tensor.shape().dim_size() > kMaxRank)
    c.error("TC0121", ExitCode::Limit, nullptr, who + "it has more than " + to_text(int64_t(kMaxRank)) + " dims");
}

void check_graph(Context& c, onnx::GraphProto& g, const NameScope* outer, const NodeRules& rules, int depth);

void check_nodes(Context& c, google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const NameScope& scope,
                 const NodeRules& rules, int depth) {
  for (auto& n : nodes) {
    check_node(c, n, rules);
    for (onnx::GraphProto* body : mutable_bodies_of(n)) check_graph(c, *body, &scope, rules, depth + 1);
  }
}

void check_graph(Context& c, onnx::GraphProto& g, const NameScope* outer, const NodeRules& rules, int depth) {
  if (depth > kMaxSubgraphDepth)
    return c.error("TC0105", ExitCode::Limit, nullptr,
                   "subgraphs nest deeper than " + to_text(int64_t(kMaxSubgraphDepth)) + " levels");
  NameScope scope{{}, outer};
  const bool unique = check_definitions(c, g, scope);
  for_each_definition(g, [&](const std::string& name) { scope.names.insert(name); });
  if (unique) check_uses(c, g, scope);
  std::set<std::string> outputs;
  for (const auto& o : g.output())
    if (!outputs.insert(o.name()).second && depth == 0)
      c.reject("TC0114", nullptr, "output " + quoted(o.name()) + " is listed twice");
  if (depth == 0) {
    std::set<std::string> initializers;
    for (const auto& t : g.initializer()) initializers.insert(t.name());
    for (const auto& v : g.input())
      if (!initializers.count(v.name())) check_type(c, v, "input");
    if (g.output_size() == 0) c.reject("TC0114", nullptr, "the graph has no output");
  }
  check_nodes(c, *g.mutable_node(), scope, rules, depth);
}

/// A function's nodes see its inputs and nothing else; its bodies nest like those of a graph. Its nodes are put into a
/// graph for the checks and taken back, sorted.
void check_function(Context& c, onnx::FunctionProto& f, const NodeRules& model_rules) {
  onnx::GraphProto g;
  g.set_name(f.name());
  for (const auto& i : f.input()) g.add_input()->set_name(i);
  for (const auto& o : f.output()) g.add_output()->set_name(o);
  g.mutable_node()->Swap(f.mutable_node());
  rename_hiding_inputs(c, g);
  NameScope scope;
  const bool unique = check_definitions(c, g, scope);
  for_each_definition(g, [&](const std::string& name) { scope.names.insert(name); });
  if (unique) check_uses(c, g, scope);
  NodeRules rules = model_rules;
  rules.opsets = &f.opset_import();
  rules.in_function = true;
  check_nodes(c, *g.mutable_node(), scope, rules, 0);
  f.mutable_node()->Swap(g.mutable_node());
}

}  // namespace

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain_of(domain) + "::" + name + (overload.empty() ? "" : ":" + overload);
}

void validate_model(Context& c, onnx::ModelProto& m) {
  if (!check_header(c, m) && !m.has_graph()) return;
  if (m.functions_size() > kMaxFunctions)
    return c.error("TC0142", ExitCode::Limit, nullptr,
                   "the model has more than " + to_text(int64_t(kMaxFunctions)) + " functions");
  std::set<std::string> functions;
  for (auto& f : *m.mutable_functions()) {
    if (f.name().empty()) c.reject("TC0140", nullptr, "a function without a name");
    if (!functions.insert(function_key(f.domain(), f.name(), f.overload())).second)
      c.reject("TC0140", nullptr, "function " + quoted(f.name()) + " is defined twice");
    // A function that imports nothing sees what the model imports.
    if (f.opset_import_size() == 0) *f.mutable_opset_import() = m.opset_import();
  }
  const NodeRules rules{&m.opset_import(), &functions, false};
  rename_hiding_inputs(c, *m.mutable_graph());
  check_graph(c, *m.mutable_graph(), nullptr, rules, 0);
  for (auto& f : *m.mutable_functions()) check_function(c, f, rules);
}

}  // namespace tc::importer
