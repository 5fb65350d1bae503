// Step 8: the converted, expanded model becomes a Graph. Names turn into pointers here; initializers and Constant nodes
// become constants, added when they are first used; bodies become closed regions: what they read from outside is
// appended to the node's inputs, except constants, which every region has for itself.
#include "importer/scope.h"
#include "importer/states.h"
#include "importer/tensors.h"
#include "importer/types.h"

namespace tc {

namespace importer {

namespace {

/// What a name stands for: a value of the graph being built, or a constant that no node has used yet.
struct Meaning {
  Value* value = nullptr;
  Constant constant;
};
using Scope = std::unordered_map<std::string, Meaning>;

Constant ints_constant(DType t, const Dims& dims, const google::protobuf::RepeatedField<int64_t>& v) {
  return make_constant(t, dims, v.data());
}

/// The value of a Constant node, null if it has none of the known attributes.
Constant constant_node(const Context& c, const onnx::NodeProto& n) {
  for (const auto& a : n.attribute()) {
    if (a.name() == "value" && a.has_t()) return constant_of(c, a.t());
    if (a.name() == "value_float") {
      const float v = a.f();
      return make_constant(DType::F32, {}, &v);
    }
    if (a.name() == "value_int") {
      const int64_t v = a.i();
      return make_constant(DType::I64, {}, &v);
    }
    if (a.name() == "value_ints") return ints_constant(DType::I64, {a.ints_size()}, a.ints());
    if (a.name() == "value_floats") return make_constant(DType::F32, {a.floats_size()}, a.floats().data());
    if (a.name() == "value_string" || a.name() == "value_strings") {
      TensorData d;
      d.dtype = DType::String;
      if (a.name() == "value_string") {
        d.strings = {a.s()};
      } else {
        d.strings.assign(a.strings().begin(), a.strings().end());
        d.dims = {a.strings_size()};
      }
      return std::make_shared<TensorData>(std::move(d));
    }
  }
  return nullptr;
}

class GraphBuilder {
 public:
  explicit GraphBuilder(Context& c) : c_(c) {}

  /// Fills `graph` from `g`; the names in `scope` are already known (captures and what an operator feeds to a body).
  void build(const onnx::GraphProto& g, Scope scope, Graph& graph) {
    for (const auto& t : g.initializer()) scope[t.name()].constant = constant_of(c_, t);
    const TypeScope types(g);
    for (const auto& n : g.node()) add_node(n, graph, scope, types);
    std::vector<Value*> outputs;
    for (const auto& o : g.output()) {
      Value* v = value_of(o.name(), graph, scope);
      if (!v) return;  // reported
      if (v->type.kind == ValueType::Kind::None) graph.set_type(v, value_type(o.type()));
      outputs.push_back(v);
    }
    graph.set_outputs(std::move(outputs));
  }

 private:
  Value* value_of(const std::string& name, Graph& graph, Scope& scope) {
    const auto it = scope.find(name);
    if (it == scope.end()) {
      c_.reject("TC0111", nullptr, "nothing defines " + quoted(name));
      return nullptr;
    }
    Meaning& m = it->second;
    if (!m.value) m.value = graph.add_constant(ModelText(name), m.constant);
    return m.value;
  }

  void add_node(const onnx::NodeProto& n, Graph& graph, Scope& scope, const TypeScope& types) {
    const std::string domain = domain_of(n.domain());
    if (domain.empty() && n.op_type() == "Constant" && n.output_size() == 1) {
      Constant value = constant_node(c_, n);
      if (!value) return c_.reject("TC0116", &n, "a Constant without a value");
      scope[n.output(0)].constant = std::move(value);
      return;
    }
    std::vector<Value*> inputs;
    for (const auto& name : n.input()) {
      inputs.push_back(name.empty() ? nullptr : value_of(name, graph, scope));
      if (!name.empty() && !inputs.back()) return;
    }
    std::vector<std::unique_ptr<Graph>> regions;
    const size_t operands = inputs.size();
    check_operand_types(c_, n, inputs);
    if (!add_regions(n, graph, scope, inputs, regions)) return;

    std::vector<ModelText> outputs;
    for (const auto& o : n.output()) outputs.emplace_back(o);
    Node* node = graph.append(n.op_type(), inputs, std::move(outputs), attributes(n), domain);
    node->name = ModelText(n.name());
    node->row = c_.own_row(domain, n.op_type());
    node->regions = std::move(regions);
    node->captures = int(inputs.size() - operands);
    if (!n.name().empty()) node->origins.emplace_back(n.name());
    for (int k = 0; k < n.output_size(); ++k) {
      Value* v = node->outputs[size_t(k)];
      if (!v || n.output(k).empty()) continue;
      if (const auto* t = types.type(n.output(k))) graph.set_type(v, value_type(*t));
      scope[n.output(k)] = {v, nullptr};
    }
  }

  /// Builds the bodies of `n` and appends to `inputs` what they read from outside. The depth of the recursion is that
  /// of the bodies, which is limited.
  bool add_regions(const onnx::NodeProto& n, Graph& graph, Scope& scope, std::vector<Value*>& inputs,
                   std::vector<std::unique_ptr<Graph>>& regions) {
    std::vector<const onnx::GraphProto*> bodies = bodies_of(n);
    if (bodies.empty()) return true;
    // then_branch comes before else_branch, whatever their order in the file.
    if (n.op_type() == "If")
      for (const auto& a : n.attribute())
        if (a.has_g() && bodies.size() == 2) bodies[a.name() == "then_branch" ? 0 : 1] = &a.g();
    // Outer values that the bodies read, in order of first use over all bodies; constants are not captured.
    std::vector<std::string> captured, constants;
    std::unordered_set<std::string> seen;
    for (const onnx::GraphProto* body : bodies)
      for (const std::string& name : free_names(*body)) {
        if (!seen.insert(name).second) continue;
        const auto it = scope.find(name);
        if (it == scope.end())
          return c_.reject("TC0111", &n, "a body reads " + quoted(name) + ", which nothing defines"), false;
        (it->second.constant ? constants : captured).push_back(name);
      }
    for (const std::string& name : captured) inputs.push_back(value_of(name, graph, scope));
    for (const onnx::GraphProto* body : bodies) {
      auto region = std::make_unique<Graph>(ModelText(body->name()));
      Scope inner;
      for (const std::string& name : constants) inner[name].constant = scope[name].constant;
      for (const auto& v : body->input())
        inner[v.name()].value = region->add_input(ModelText(v.name()), value_type(v.type()));
      for (const std::string& name : captured)
        inner[name].value = region->add_input(ModelText(name), scope[name].value->type);
      build(*body, std::move(inner), *region);
      regions.push_back(std::move(region));
    }
    return true;
  }

  Attrs attributes(const onnx::NodeProto& n) {
    Attrs out;
    for (const auto& a : n.attribute()) {
      using P = onnx::AttributeProto;
      switch (a.type()) {
        case P::INT: out[a.name()] = int64_t(a.i()); break;
        case P::FLOAT: out[a.name()] = a.f(); break;
        case P::STRING: out[a.name()] = a.s(); break;
        case P::INTS: out[a.name()] = std::vector<int64_t>(a.ints().begin(), a.ints().end()); break;
        case P::FLOATS: out[a.name()] = std::vector<float>(a.floats().begin(), a.floats().end()); break;
        case P::STRINGS: out[a.name()] = std::vector<std::string>(a.strings().begin(), a.strings().end()); break;
        case P::TENSOR: out[a.name()] = constant_of(c_, a.t()); break;
        case P::TYPE_PROTO: out[a.name()] = to_text(value_type(a.tp())); break;
        case P::GRAPH:
        case P::GRAPHS: break;  // regions
        default:
          c_.error("TC0116", ExitCode::Unsupported, &n,
                   "attribute " + quoted(a.name()) + " has a type that is not supported");
      }
    }
    return out;
  }

  Context& c_;
};

}  // namespace

ValueType value_type(const onnx::TypeProto& t) {
  if (t.has_sequence_type() || t.has_optional_type()) {
    ValueType v;
    v.kind = t.has_sequence_type() ? ValueType::Kind::Sequence : ValueType::Kind::Optional;
    const auto& element = t.has_sequence_type() ? t.sequence_type().elem_type() : t.optional_type().elem_type();
    v.element = std::make_shared<const ValueType>(value_type(element));
    return v;
  }
  if (!t.has_tensor_type() || element_type(t.tensor_type().elem_type()) == DType::Undefined) return {};
  ValueType v = ValueType::tensor(element_type(t.tensor_type().elem_type()), {});
  v.has_rank = t.tensor_type().has_shape();
  // Sizes that are still symbolic are results of the data; what is known of them is found later.
  for (const auto& d : t.tensor_type().shape().dim())
    v.shape.push_back(d.has_dim_value() && d.dim_value() >= 0 ? Dim(d.dim_value()) : Dim());
  return v;
}

Graph to_graph(Context& c, const onnx::ModelProto& m) {
  const onnx::GraphProto& g = m.graph();
  Graph graph(ModelText(c.options.name.empty() ? g.name() : c.options.name));
  RunTimeSizes sizes;
  sizes.states = find_states(c, g, false);
  Scope scope;
  for (const auto& v : g.input()) {
    ValueType t = value_type(v.type());
    for (size_t k = 0; k < t.shape.size(); ++k) {
      const auto it = c.ranges.find(v.type().tensor_type().shape().dim(int(k)).dim_param());
      if (it == c.ranges.end() || t.shape[k].is_const()) continue;
      t.shape[k] = it->second;
    }
    scope[v.name()].value = graph.add_input(ModelText(v.name()), std::move(t));
  }
  GraphBuilder(c).build(g, std::move(scope), graph);
  if (!sizes.states.empty()) graph.set_sizes(std::move(sizes));
  return graph;
}

}  // namespace importer

}  // namespace tc
