// Step 5: calls of model-local functions become the nodes of their bodies, in the main graph, in bodies and in
// functions themselves. ONNX's own inliner throws on absent optional operands, on nested calls and inside bodies, so
// this is ours.
//
//   y = my.silu(x)    function silu(a) => (b) { s = Sigmoid(a)  b = Mul(a, s) }
//   ->  "silu/s" = Sigmoid(x)   y = Mul(x, "silu/s")
//
// Needs: a validated model. Leaves: a model without calls, except calls of functions that are written for another
// version of the default operator set; these are converted with the types of their operands known, see expand.cc.
#include <algorithm>

#include "importer/functions.h"
#include "importer/splice.h"
#include "importer/validate.h"

namespace tc::importer {

FunctionTable::FunctionTable(const onnx::ModelProto& m) {
  for (const auto& f : m.functions()) table_[function_key(f.domain(), f.name(), f.overload())] = &f;
}

const onnx::FunctionProto* FunctionTable::find(const onnx::NodeProto& n) const {
  const auto it = table_.find(function_key(n.domain(), n.op_type(), n.overload()));
  return it == table_.end() ? nullptr : it->second;
}

namespace {

/// What some nodes call, bodies included, and what they cost: attributes can be large, so a node counts more than once
/// if it takes more than a kilobyte.
struct Calls {
  std::vector<const onnx::FunctionProto*> callees;
  int64_t cost = 0;
};

Calls calls_of(const Nodes& nodes, const FunctionTable& table) {
  Calls out;
  std::vector<const onnx::NodeProto*> work;
  for (const auto& n : nodes) {
    work.push_back(&n);
    out.cost += int64_t(n.ByteSizeLong() / 1024);
  }
  for (size_t i = 0; i < work.size(); ++i) {
    ++out.cost;
    if (const auto* callee = table.find(*work[i])) out.callees.push_back(callee);
    for (const onnx::GraphProto* body : bodies_of(*work[i]))
      for (const auto& n : body->node()) work.push_back(&n);
  }
  return out;
}

/// Depth of the calls below every function and the size of what they become, by a depth-first walk with its own stack.
/// Reports recursion, calls that nest too deep, and a model that would grow too large, before anything is copied.
bool check_calls(Context& c, const onnx::ModelProto& m, const FunctionTable& table) {
  enum class State { New, Open, Done };
  struct Frame {
    const onnx::FunctionProto* f;
    Calls calls;
    size_t at = 0;
  };
  std::map<const onnx::FunctionProto*, State> state;  // looked up only, never iterated
  std::map<const onnx::FunctionProto*, int> depth;
  std::map<const onnx::FunctionProto*, int64_t> cost;
  const int64_t enough = c.options.max_nodes + 1;  // sums stop here
  for (const auto& root : m.functions()) {
    if (state[&root] != State::New) continue;
    std::vector<Frame> stack{{&root, calls_of(root.node(), table)}};
    state[&root] = State::Open;
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.at < top.calls.callees.size()) {
        const onnx::FunctionProto* callee = top.calls.callees[top.at++];
        if (state[callee] == State::Open) {
          c.reject("TC0141", nullptr,
                   "function " + quoted(callee->name()) + " calls itself, directly or through others");
          return false;
        }
        if (state[callee] == State::New) {
          state[callee] = State::Open;
          stack.push_back({callee, calls_of(callee->node(), table)});
        }
        continue;
      }
      int below = 0;
      int64_t total = top.calls.cost;
      for (const auto* callee : top.calls.callees) {
        below = std::max(below, depth[callee]);
        total = std::min(enough, total + cost[callee]);
      }
      depth[top.f] = below + 1;
      cost[top.f] = total;
      state[top.f] = State::Done;
      if (below + 1 > kMaxCallDepth) {
        c.error("TC0142", ExitCode::Limit, nullptr,
                "functions call each other more than " + to_text(int64_t(kMaxCallDepth)) + " levels deep");
        return false;
      }
      stack.pop_back();
    }
  }
  int64_t total = 0;
  for (const auto* callee : calls_of(m.graph().node(), table).callees) total = std::min(enough, total + cost[callee]);
  return c.charge_nodes(total, nullptr);
}

class Inliner {
 public:
  Inliner(Context& c, onnx::ModelProto& m, const FunctionTable& table) : c_(c), model_(m), table_(table) {
    names_.add_graph(*m.mutable_graph());
    opset_ = opset_of(m.opset_import(), "");
  }

  /// False after a bad call. Recursion: into bodies (limited) and calls (limited).
  bool run(Nodes& nodes) {
    Nodes out;
    for (auto& n : nodes) {
      for (onnx::GraphProto* body : mutable_bodies_of(n))
        if (!run(*body->mutable_node())) return false;
      const onnx::FunctionProto* f = table_.find(n);
      if (!f || !call_ok(c_, *f, n) || !same_version(*f)) {
        *out.Add() = std::move(n);
        continue;
      }
      import_domains(*f);
      Nodes body = instantiate(*f, n, {&names_, call_prefix(n)});
      if (!run(body)) return false;
      for (auto& b : body) *out.Add() = std::move(b);
    }
    nodes.Swap(&out);
    return true;
  }

 private:
  bool same_version(const onnx::FunctionProto& f) const {
    const int64_t version = opset_of(f.opset_import(), "");
    return version == 0 || version == opset_;
  }
  /// The body may use operator sets that the model itself does not import.
  void import_domains(const onnx::FunctionProto& f) {
    for (const auto& o : f.opset_import())
      if (opset_of(model_.opset_import(), domain_of(o.domain())) == 0) *model_.add_opset_import() = o;
  }

  Context& c_;
  onnx::ModelProto& model_;
  const FunctionTable& table_;
  UniqueNames names_;
  int64_t opset_ = 0;
};

/// The value that an attribute of the call has, or else its default; null without one.
const onnx::AttributeProto* value_of(const onnx::FunctionProto& f, const onnx::NodeProto& call,
                                     const std::string& name) {
  for (const auto* list : {&call.attribute(), &f.attribute_proto()})
    for (const auto& a : *list)
      if (a.name() == name) return &a;
  return nullptr;
}

/// Attributes of the function's nodes that refer to those of the call get values which such attributes may have.
/// The depth of the recursion is that of the bodies, which is limited.
bool bindings_ok(Context& c, const onnx::FunctionProto& f, const Nodes& nodes, const onnx::NodeProto& call) {
  for (const auto& n : nodes)
    for (const auto& a : n.attribute()) {
      if (a.has_g() && !bindings_ok(c, f, a.g().node(), call)) return false;
      const onnx::AttributeProto* value = a.ref_attr_name().empty() ? nullptr : value_of(f, call, a.ref_attr_name());
      if (!value) continue;
      if (a.type() != onnx::AttributeProto::UNDEFINED && a.type() != value->type()) {
        c.reject("TC0143", &call,
                 "attribute " + quoted(value->name()) + " has another type than in function " + quoted(f.name()));
        return false;
      }
      onnx::AttributeProto bound = *value;
      bound.set_name(a.name());
      if (domain_of(n.domain()).empty() && !check_range(c, call, bound)) return false;
    }
  return true;
}

}  // namespace

bool call_ok(Context& c, const onnx::FunctionProto& f, const onnx::NodeProto& call) {
  if (call.input_size() <= f.input_size() && call.output_size() <= f.output_size())
    return bindings_ok(c, f, f.node(), call);
  c.reject("TC0143", &call, "the call has more inputs or outputs than function " + quoted(f.name()));
  return false;
}

bool inline_functions(Context& c, onnx::ModelProto& m) {
  if (m.functions_size() == 0) return true;
  const int before = c.errors;
  const FunctionTable table(m);
  if (!check_calls(c, m, table)) return false;
  Inliner inliner(c, m, table);
  return inliner.run(*m.mutable_graph()->mutable_node()) && c.errors == before;
}

}  // namespace tc::importer
