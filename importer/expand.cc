// Step 7: operators without a row in the operator table, but with a definition by other operators in ONNX's schema,
// become the nodes of that definition; so do calls of model-local functions that are written for another operator set
// version.
//
//   y = HardSwish(x)   ->   "y/HS_X" = HardSigmoid<alpha = 1/6, beta = 0.5>(x)   y = Mul(x, "y/HS_X")
//
// One node at a time: its definition becomes a model of its own, whose inputs have the types of the node's operands.
// That model takes the same way as the whole one (inline, convert, infer, expand), then its nodes take the place of the
// node. Needs: types inferred, defaults filled in. Leaves: nodes with rows, and those that nothing defines.
#include <onnx/defs/schema.h>

#include <algorithm>
#include <map>

#include "importer/functions.h"
#include "importer/norms.h"
#include "importer/splice.h"
#include "importer/types.h"

namespace tc::importer {

namespace {

/// Definitions inside definitions; ONNX's own nest three deep.
constexpr int kMaxExpansionDepth = kMaxCallDepth;

const onnx::OpSchema* newest_schema(const onnx::ModelProto& m, const onnx::NodeProto& n) {
  const std::string domain = domain_of(n.domain());
  const int64_t version = domain.empty() ? newest_opset() : opset_of(m.opset_import(), domain);
  return onnx::OpSchemaRegistry::Schema(n.op_type(), int(version), domain);
}

bool has_definition(const onnx::OpSchema* s) { return s && (s->HasFunction() || s->HasContextDependentFunction()); }

/// The largest version that is not newer than the newest operator set, 0 if there is none.
int pick_version(const std::vector<int>& versions) {
  int best = 0;
  for (const int v : versions)
    if (v <= newest_opset()) best = std::max(best, v);
  return best;
}

class Expander {
 public:
  Expander(Context& c, onnx::ModelProto& m, int depth) : c_(c), model_(m), table_(m), depth_(depth) {
    names_.add_graph(*m.mutable_graph());
  }

  bool run(onnx::GraphProto& g, const TypeScope* outer) {
    const TypeScope scope(g, outer);
    std::map<int, Nodes> definitions;  // by the number of the node; `scope` points into the nodes until all are known
    for (int i = 0; i < g.node_size(); ++i) {
      // The node itself before its bodies: a definition may put a body in its own place, as it was written.
      Nodes made;
      bool replaced = false;
      if (!expand(g.node(i), scope, made, replaced)) return false;
      if (replaced) {
        definitions.emplace(i, std::move(made));
        continue;
      }
      for (onnx::GraphProto* body : mutable_bodies_of(*g.mutable_node(i)))
        if (!run(*body, &scope)) return false;
    }
    if (!definitions.empty()) replace(*g.mutable_node(), definitions);
    return true;
  }

  /// A node has been replaced by its definition.
  bool expanded() const { return expanded_; }

 private:
  static void replace(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, std::map<int, Nodes>& definitions) {
    Nodes out;
    for (int i = 0; i < nodes.size(); ++i) {
      const auto definition = definitions.find(i);
      if (definition == definitions.end()) {
        *out.Add() = std::move(nodes[i]);
        continue;
      }
      for (auto& b : definition->second) *out.Add() = std::move(b);
    }
    nodes.Swap(&out);
  }

  bool expand(const onnx::NodeProto& n, const TypeScope& scope, Nodes& made, bool& replaced) {
    onnx::FunctionProto f;
    if (const onnx::FunctionProto* local = table_.find(n)) {
      if (!call_ok(c_, *local, n)) return false;
      f = *local;
    } else if (c_.has_row(domain_of(n.domain()), n.op_type()) || !definition_of(n, scope, f)) {
      return true;
    }
    replaced = expanded_ = true;
    if (depth_ >= kMaxExpansionDepth) {
      c_.error("TC0142", ExitCode::Limit, &n, "definitions of operators nest too deep");
      return false;
    }
    if (!c_.charge_nodes(f.node_size() + 1, &n)) return false;
    onnx::FunctionProto newest;
    if (!specialise(f, n, scope, newest)) return false;
    made = instantiate(newest, n, {&names_, call_prefix(n)});
    return true;
  }

  /// The definition of an operator in ONNX's schema, false if it has none (or none for these types).
  bool definition_of(const onnx::NodeProto& n, const TypeScope& scope, onnx::FunctionProto& f) {
    const onnx::OpSchema* schema = newest_schema(model_, n);
    if (!has_definition(schema)) return false;
    int version = 0;
    try {
      if (schema->HasFunction()) {
        version = pick_version(schema->function_opset_versions());
        if (version > 0) f = *schema->GetFunction(version);
      } else {
        version = pick_version(schema->context_dependent_function_opset_versions());
        std::vector<onnx::TypeProto> types(size_t(n.input_size()));
        for (int i = 0; i < n.input_size(); ++i)
          if (const auto* t = scope.type(n.input(i))) types[size_t(i)] = *t;
        const onnx::FunctionBodyBuildContextImpl context(n, types);
        if (version > 0 && !schema->BuildContextDependentFunction(context, f, version)) version = 0;
      }
    } catch (const std::exception& e) {
      c_.error("TC0171", ExitCode::Unsupported, &n,
               "its definition by other operators cannot be built: " + reason_of(e));
      return false;
    }
    // Definitions of other domains do not say which default operator set they use: it is that of the model.
    if (version > 0 && opset_of(f.opset_import(), "") == 0)
      f.add_opset_import()->set_version(domain_of(n.domain()).empty() ? version : newest_opset());
    return version > 0;
  }

  /// `f` for the operands of `n`, as a function at the newest operator set without calls and without unknown operators.
  bool specialise(const onnx::FunctionProto& f, const onnx::NodeProto& n, const TypeScope& scope,
                  onnx::FunctionProto& out) {
    onnx::ModelProto m;
    m.set_ir_version(onnx::Version::IR_VERSION);
    *m.mutable_opset_import() = f.opset_import();
    if (table_.find(n)) *m.mutable_functions() = model_.functions();
    onnx::GraphProto& g = *m.mutable_graph();
    g.set_name(f.name());
    onnx::NodeProto formal = n;  // the call with formal names
    UniqueNames local;
    for (int i = 0; i < f.input_size(); ++i) local.add(f.input(i));
    for (const auto& b : f.node())
      for (const auto& o : b.output()) local.add(o);
    for (int i = 0; i < n.input_size() && i < f.input_size(); ++i)
      if (!n.input(i).empty()) formal.set_input(i, add_operand(g, f.input(i), n.input(i), scope));
    for (int k = 0; k < n.output_size() && k < f.output_size(); ++k)
      if (!n.output(k).empty()) {
        formal.set_output(k, local.make(f.output(k) + "/out"));
        g.add_output()->set_name(formal.output(k));
      }
    Nodes body = instantiate(f, formal, {});
    g.mutable_node()->Swap(&body);
    if (!inline_functions(c_, m) || !convert_to_newest(c_, m)) {
      report_unsupported(c_, m);
      if (c_.errors == 0)
        c_.error("TC0171", ExitCode::Unsupported, &n, "its definition by other operators cannot be used");
      return false;
    }
    if (!Expander(c_, m, depth_ + 1).run(*m.mutable_graph(), nullptr)) return false;
    import_domains(m);
    as_function(f, n, formal, m.graph(), out);
    return true;
  }

  /// An operand as an input of the definition; a small constant also gives its value.
  static std::string add_operand(onnx::GraphProto& g, const std::string& name, const std::string& actual,
                                 const TypeScope& scope) {
    auto* v = g.add_input();
    v->set_name(name);
    if (const auto* t = scope.type(actual)) *v->mutable_type() = *t;
    if (const auto* value = scope.constant(actual)) {
      *g.add_initializer() = *value;
      g.mutable_initializer(g.initializer_size() - 1)->set_name(name);
    }
    return name;
  }

  static void as_function(const onnx::FunctionProto& f, const onnx::NodeProto& n, const onnx::NodeProto& formal,
                          const onnx::GraphProto& g, onnx::FunctionProto& out) {
    std::unordered_set<std::string> operands(f.input().begin(), f.input().end());
    *out.mutable_input() = f.input();
    // Outputs keep their places: those that the node does not have come last in the schema and are left out here.
    for (int k = 0; k < n.output_size() && k < f.output_size(); ++k) out.add_output(formal.output(k));
    for (const auto& t : g.initializer()) {
      if (operands.count(t.name())) continue;
      onnx::NodeProto& constant = *out.add_node();
      constant.set_op_type("Constant");
      constant.add_output(t.name());
      auto* a = constant.add_attribute();
      a->set_name("value");
      a->set_type(onnx::AttributeProto::TENSOR);
      *a->mutable_t() = t;
    }
    for (const auto& b : g.node()) *out.add_node() = b;
  }

  void import_domains(const onnx::ModelProto& m) {
    for (const auto& o : m.opset_import())
      if (opset_of(model_.opset_import(), domain_of(o.domain())) == 0) *model_.add_opset_import() = o;
  }

  Context& c_;
  onnx::ModelProto& model_;
  FunctionTable table_;
  int depth_;
  bool expanded_ = false;
  UniqueNames names_;
};

}  // namespace

bool expand_functions(Context& c, onnx::ModelProto& m) {
  const int before = c.errors;
  Expander expander(c, m, 0);
  if (!expander.run(*m.mutable_graph(), nullptr) || c.errors != before) return false;
  m.clear_functions();
  if (expander.expanded()) infer_shapes(c, m);
  return c.errors == before;
}

namespace {

/// Why an operator is none that code is emitted for; "" where it only lacks a row.
std::string_view nature_of(const onnx::NodeProto& n) {
  if (n.op_type() == "ImageDecoder")
    return ": files of pictures are read by libraries, not by loops; decode them before";
  if (n.op_type() == "Gradient") return ": it asks for the derivative of a graph, and training is not compiled";
  return "";
}

}  // namespace

void report_unsupported(Context& c, const onnx::ModelProto& m) {
  const FunctionTable table(m);
  auto visit = [&](const onnx::NodeProto& n) {
    const std::string domain = domain_of(n.domain());
    if (n.op_type().empty() || table.find(n) || c.has_row(domain, n.op_type())) return;
    if (domain.empty() && (n.op_type() == "Constant" || is_named_otherwise(n))) return;
    const int64_t version = opset_of(m.opset_import(), domain);
    const onnx::OpSchema* newest = newest_schema(m, n);
    if (has_definition(newest)) return;
    // Operators that newer sets replaced (Scatter) have a rule.
    const bool replaced = newest && newest->Deprecated() && version < newest_opset();
    if (domain.empty() && replaced && onnx::OpSchemaRegistry::Schema(n.op_type(), int(version), domain)) return;
    const std::string which = domain.empty()
                                  ? "opset " + to_text(version)
                                  : "domain " + quoted(domain) + (version ? " version " + to_text(version) : "");
    std::vector<std::string> notes;
    if (domain.empty() && !newest)
      notes.push_back("ONNX has no operator of this name; was it meant to be in another domain?");
    else if (domain == "com.microsoft.nchwc")
      notes.push_back(
          "this is a layout for one processor; let ONNX Runtime save the model at ORT_ENABLE_EXTENDED, or take the "
          "model before it was optimised");
    else if (!domain.empty() && !newest)
      notes.push_back("export the model so that this operator is a model-local function, or without it");
    else
      notes.push_back("export the model without this operator, or replace it by simpler ones");
    const std::string makes = !n.name().empty() && n.output_size() > 0 ? "; it makes " + quoted(n.output(0)) : "";
    c.error("TC0170", ExitCode::Unsupported, &n,
            "operator " + printable(n.op_type(), 80) + " (" + which + ") is not supported" + std::string(nature_of(n)) +
                makes,
            std::move(notes));
  };
  for_each_graph(const_cast<onnx::GraphProto&>(m.graph()), [&](onnx::GraphProto& g) {
    for (const auto& n : g.node()) visit(n);
  });
  for (const auto& f : m.functions())
    for (const auto& n : f.node()) {
      visit(n);
      for (const onnx::GraphProto* body : bodies_of(n))
        for_each_graph(const_cast<onnx::GraphProto&>(*body), [&](onnx::GraphProto& g) {
          for (const auto& b : g.node()) visit(b);
        });
    }
}

}  // namespace tc::importer
