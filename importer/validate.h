// The parts of step 2, checking the model before ONNX's library sees it. Internal to importer/.
#pragma once
#include "importer/scope.h"

namespace tc::importer {

/// The names that a graph sees: its own and those of the graphs around it.
struct NameScope {
  std::unordered_set<std::string> names;
  const NameScope* outer = nullptr;
  bool knows(const std::string& name) const;
};

/// Inputs of bodies do not hide names of the graphs around them: those that do are renamed, with a warning.
/// hidden_names.cc
void rename_hiding_inputs(Context& c, onnx::GraphProto& g);
/// Each name is defined once in `g` and hides none of an outer graph. sort_nodes.cc
bool check_definitions(Context& c, const onnx::GraphProto& g, const NameScope& scope);
/// Each use has a definition; sorts the nodes if need be. sort_nodes.cc
void check_uses(Context& c, onnx::GraphProto& g, const NameScope& scope);

/// What a node may mean: versions of the operator sets and the functions in sight.
struct NodeRules {
  const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>* opsets = nullptr;
  const std::set<std::string>* functions = nullptr;  // keys of model-local functions
  bool in_function = false;                          // attributes may refer to those of the call
};
/// Attributes are well formed and in range, and the operator's schema accepts the node. validate_node.cc
void check_node(Context& c, onnx::NodeProto& n, const NodeRules& rules);
/// The value of attribute `a` is one that attributes of its name may have. validate_node.cc
bool check_range(Context& c, const onnx::NodeProto& n, const onnx::AttributeProto& a);

/// "domain::name:overload", the key of a model-local function.
std::string function_key(const std::string& domain, const std::string& name, const std::string& overload);

}  // namespace tc::importer
