// Names in nested graphs. Internal to importer/.
#pragma once
#include "importer/context.h"

namespace tc::importer {

/// The names that `g` and its bodies read but do not define, in order of first use, without "".
std::vector<std::string> free_names(const onnx::GraphProto& g);

/// Every name that a graph itself defines: inputs, initializers, outputs of nodes.
void for_each_definition(const onnx::GraphProto& g, const std::function<void(const std::string&)>& f);

/// The graphs among a node's attributes, in order.
std::vector<const onnx::GraphProto*> bodies_of(const onnx::NodeProto& n);
std::vector<onnx::GraphProto*> mutable_bodies_of(onnx::NodeProto& n);

/// Names of values of a whole model, to make new ones that clash with none.
class UniqueNames {
 public:
  void add_graph(onnx::GraphProto& g);
  void add(const std::string& name) { taken_.insert(name); }
  /// `wish` itself, or `wish` with a number; taken from then on.
  std::string make(const std::string& wish);

 private:
  std::unordered_set<std::string> taken_;
  std::map<std::string, int64_t> next_;
};

}  // namespace tc::importer
