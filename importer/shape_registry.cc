#include "importer/shape_registry.h"

namespace tc::importer {

namespace {

constexpr int64_t kLongestShape = 1024;

/// A tensor whose values cannot be a shape, or an operand of one.
bool is_long(const onnx::TypeProto* t) {
  if (!t || !t->has_tensor_type()) return false;
  for (const auto& d : t->tensor_type().shape().dim())
    if (d.has_dim_value() && d.dim_value() > kLongestShape) return true;
  return false;
}

onnx::OpSchema guarded(const onnx::OpSchema& schema) {
  onnx::OpSchema copy = schema;
  copy.PartialDataPropagationFunction(
      [propagate = schema.GetDataPropagationFunction()](onnx::DataPropagationContext& c) {
        for (size_t i = 0; i < c.getNumInputs(); ++i)
          if (is_long(c.getInputType(i))) return;
        propagate(c);
      });
  return copy;
}

}  // namespace

const onnx::OpSchema* ShapeRegistry::GetSchema(const std::string& key, int version, const std::string& domain) const {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Instance()->GetSchema(key, version, domain);
  // Shape reads the sizes of its operand, not its values: any operand will do.
  if (!schema || !schema->has_data_propagation_function() || key == "Shape" || key == "Size") return schema;
  const auto id = std::make_tuple(domain, key, schema->since_version());
  const auto it = guarded_.find(id);
  return it != guarded_.end() ? &it->second : &guarded_.emplace(id, guarded(*schema)).first->second;
}

}  // namespace tc::importer
