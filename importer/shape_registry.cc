#include "importer/shape_registry.h"

#include <algorithm>
#include <cstdint>

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

/// A Slice whose step ONNX's library would count in 32 bits: 2^40 is 0 then, and its loop never ends.
bool has_long_step(onnx::DataPropagationContext& c) {
  constexpr size_t kSteps = 4;
  const onnx::TensorShapeProto* steps = c.getNumInputs() > kSteps ? c.getInputData(kSteps) : nullptr;
  if (!steps) return false;
  return std::any_of(steps->dim().begin(), steps->dim().end(), [](const auto& d) {
    return d.has_dim_value() && (d.dim_value() > INT32_MAX || d.dim_value() < -INT32_MAX);
  });
}

/// The operands of a node, where one that must be there has at least the type that says nothing. One that may be absent
/// has none then, because definitions ask so whether it is there.
class TypedOperands : public onnx::InferenceContext {
 public:
  TypedOperands(onnx::InferenceContext& node, const onnx::OpSchema& schema) : node_(node), schema_(schema) {}

  const onnx::TypeProto* getInputType(size_t index) const override {
    const onnx::TypeProto* type = node_.getInputType(index);
    const size_t formal = std::min(index, schema_.inputs().size() - 1);
    const bool may_be_absent =
        schema_.inputs().empty() || schema_.inputs()[formal].GetOption() == onnx::OpSchema::Optional;
    return type || may_be_absent || index >= getNumInputs() ? type : &onnx::TypeProto::default_instance();
  }
  const onnx::AttributeProto* getAttribute(const std::string& name) const override { return node_.getAttribute(name); }
  size_t getNumInputs() const override { return node_.getNumInputs(); }
  bool hasInput(size_t index) const override { return node_.hasInput(index); }
  const onnx::TensorProto* getInputData(size_t index) const override { return node_.getInputData(index); }
  size_t getNumOutputs() const override { return node_.getNumOutputs(); }
  onnx::TypeProto* getOutputType(size_t index) override { return node_.getOutputType(index); }
  bool hasOutput(size_t index) override { return node_.hasOutput(index); }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string& name) override {
    return node_.getGraphAttributeInferencer(name);
  }
  const onnx::SparseTensorProto* getInputSparseData(size_t index) const override {
    return node_.getInputSparseData(index);
  }
  const onnx::TensorShapeProto* getSymbolicInput(size_t index) const override { return node_.getSymbolicInput(index); }
  std::string getDisplayName() const override { return node_.getDisplayName(); }

 private:
  onnx::InferenceContext& node_;
  const onnx::OpSchema& schema_;
};

onnx::OpSchema guarded(const onnx::OpSchema& schema) {
  onnx::OpSchema copy = schema;
  // The definitions themselves live as long as the process.
  if (schema.has_type_and_shape_inference_function())
    copy.TypeAndShapeInferenceFunction(
        [infer = schema.GetTypeAndShapeInferenceFunction(), &schema](onnx::InferenceContext& c) {
          TypedOperands operands(c, schema);
          infer(operands);
        });
  // Shape reads the sizes of its operand, not its values: any operand will do.
  if (schema.has_data_propagation_function() && schema.Name() != "Shape" && schema.Name() != "Size")
    copy.PartialDataPropagationFunction([propagate = schema.GetDataPropagationFunction(),
                                         slices = schema.Name() == "Slice"](onnx::DataPropagationContext& c) {
      if (slices && has_long_step(c)) return;
      for (size_t i = 0; i < c.getNumInputs(); ++i)
        if (is_long(c.getInputType(i))) return;
      propagate(c);
    });
  return copy;
}

}  // namespace

const onnx::OpSchema* ShapeRegistry::GetSchema(const std::string& key, int version, const std::string& domain) const {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Instance()->GetSchema(key, version, domain);
  if (!schema) return schema;
  const auto id = std::make_tuple(domain, key, schema->since_version());
  const auto it = guarded_.find(id);
  return it != guarded_.end() ? &it->second : &guarded_.emplace(id, guarded(*schema)).first->second;
}

}  // namespace tc::importer
