// Types that ONNX's inference left in a graph, by name. Internal to importer/.
#pragma once
#include <unordered_map>

#include "importer/context.h"

namespace tc::importer {

/// Types and small constants of the values that a graph sees: its own and those of the graphs around it.
class TypeScope {
 public:
  explicit TypeScope(const onnx::GraphProto& g, const TypeScope* outer = nullptr);
  /// Null if nothing is known.
  const onnx::TypeProto* type(const std::string& name) const;
  /// The initializer or the Constant node's tensor of that name, null otherwise.
  const onnx::TensorProto* constant(const std::string& name) const;

 private:
  std::unordered_map<std::string, const onnx::TypeProto*> types_;
  std::unordered_map<std::string, onnx::TypeProto> constant_types_;
  std::unordered_map<std::string, const onnx::TensorProto*> constants_;
  const TypeScope* outer_;
};

/// Rank of a tensor type, -1 if unknown.
int rank_of(const onnx::TypeProto* t);

}  // namespace tc::importer
