// Inputs of bodies that hide a name of a graph around them get a name of their own: some exporters give what a loop
// carries the name of its start. What is meant is clear, though the format forbids it, and later steps rely on one
// definition of each name. Definitions inside a body that hide a name stay, and are refused (check_definitions).
#include "importer/validate.h"

namespace tc::importer {

namespace {

using Renames = std::unordered_map<std::string, std::string>;

void rename_uses(onnx::GraphProto& g, const Renames& names);

void rename_uses(onnx::NodeProto& n, const Renames& names) {
  for (auto& i : *n.mutable_input())
    if (const auto it = names.find(i); it != names.end()) i = it->second;
  for (onnx::GraphProto* body : mutable_bodies_of(n)) {
    Renames inner = names;  // without what the body defines again
    for_each_definition(*body, [&](const std::string& name) { inner.erase(name); });
    if (!inner.empty()) rename_uses(*body, inner);
  }
}

void rename_uses(onnx::GraphProto& g, const Renames& names) {
  for (auto& n : *g.mutable_node()) rename_uses(n, names);
  for (auto* list : {g.mutable_output(), g.mutable_value_info()})
    for (auto& v : *list)
      if (const auto it = names.find(v.name()); it != names.end()) v.set_name(it->second);
}

class HiddenNames {
 public:
  explicit HiddenNames(onnx::GraphProto& top) : top_(top) {}

  /// The depth of the recursion is that of the bodies; those nested too deep are refused later.
  void visit(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const NameScope& scope, int depth) {
    if (depth > kMaxSubgraphDepth) return;
    for (auto& n : nodes)
      for (onnx::GraphProto* body : mutable_bodies_of(n)) {
        rename_inputs(*body, scope);
        NameScope inner{{}, &scope};
        for_each_definition(*body, [&](const std::string& name) { inner.names.insert(name); });
        visit(*body->mutable_node(), inner, depth + 1);
      }
  }
  void warn(Context& c) const {
    if (renamed_ == 0) return;
    const std::string more = renamed_ > 1 ? " and " + to_text(renamed_ - 1) + " more" : "";
    c.warn("TC0110", nullptr,
           "inputs of bodies have names of the graphs around them (" + quoted(first_) + more + "); they were renamed");
  }

 private:
  void rename_inputs(onnx::GraphProto& body, const NameScope& scope) {
    std::map<std::string, int> count;
    for_each_definition(body, [&](const std::string& name) { count[name]++; });
    Renames names;
    for (auto& v : *body.mutable_input()) {
      if (v.name().empty() || count[v.name()] != 1 || !scope.knows(v.name())) continue;
      if (renamed_++ == 0) {
        first_ = v.name();
        unique_.add_graph(top_);
      }
      v.set_name(names[v.name()] = unique_.make(v.name()));
    }
    if (!names.empty()) rename_uses(body, names);
  }

  onnx::GraphProto& top_;
  UniqueNames unique_;
  std::string first_;
  int64_t renamed_ = 0;
};

}  // namespace

void rename_hiding_inputs(Context& c, onnx::GraphProto& g) {
  HiddenNames hidden(g);
  NameScope scope;
  for_each_definition(g, [&](const std::string& name) { scope.names.insert(name); });
  hidden.visit(*g.mutable_node(), scope, 1);
  hidden.warn(c);
}

}  // namespace tc::importer
