// ONNX's definitions answer for every node, or throw: also where nothing is known of an operand's type.
#include "importer/shape_registry.h"

#include <gtest/gtest.h>
#include <onnx/shape_inference/implementation.h>

#include <exception>

namespace tc::importer::shape_registry_test {
namespace {

void fill(onnx::AttributeProto& a, onnx::AttributeProto::AttributeType type) {
  a.set_type(type);
  if (type == onnx::AttributeProto::INT) a.set_i(1);
  if (type == onnx::AttributeProto::INTS) a.add_ints(1);
  if (type == onnx::AttributeProto::FLOAT) a.set_f(1);
  if (type == onnx::AttributeProto::FLOATS) a.add_floats(1);
  if (type == onnx::AttributeProto::STRING) a.set_s("x");
  if (type == onnx::AttributeProto::STRINGS) a.add_strings("x");
}

bool is_plain(onnx::AttributeProto::AttributeType type) {
  return type != onnx::AttributeProto::GRAPH && type != onnx::AttributeProto::GRAPHS &&
         type != onnx::AttributeProto::TENSOR && type != onnx::AttributeProto::TYPE_PROTO &&
         type != onnx::AttributeProto::SPARSE_TENSOR;
}

/// One node of the operator. Operand `untyped` comes from an operator that nobody knows, all do if it is -1; the others
/// are float[2,3].
onnx::ModelProto model_of(const onnx::OpSchema& schema, int untyped, bool with_attributes) {
  onnx::ModelProto m;
  m.set_ir_version(10);
  auto* set = m.add_opset_import();
  set->set_domain(schema.domain());
  set->set_version(schema.since_version());
  auto* foreign = m.add_opset_import();
  foreign->set_domain("foreign");
  foreign->set_version(1);
  auto* g = m.mutable_graph();
  auto* maker = g->add_node();
  maker->set_domain("foreign");
  maker->set_op_type("Source");
  auto* n = g->add_node();
  n->set_domain(schema.domain());
  n->set_op_type(schema.Name());
  for (size_t i = 0; i < schema.inputs().size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    n->add_input(name);
    if (untyped < 0 || int(i) == untyped) {
      maker->add_output(name);
      continue;
    }
    auto* type = g->add_input();
    type->set_name(name);
    auto* tensor = type->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx::TensorProto::FLOAT);
    tensor->mutable_shape()->add_dim()->set_dim_value(2);
    tensor->mutable_shape()->add_dim()->set_dim_value(3);
  }
  for (size_t i = 0; i < schema.outputs().size(); ++i) n->add_output("y" + std::to_string(i));
  if (!with_attributes) return m;
  for (const auto& [name, attribute] : schema.attributes()) {
    if (!is_plain(attribute.type)) continue;
    auto* a = n->add_attribute();
    a->set_name(name);
    fill(*a, attribute.type);
  }
  return m;
}

TEST(ShapeRegistry, EveryDefinitionAnswersWithoutTypesOfItsOperands) {
  const onnx::ShapeInferenceOptions options(/*check_type=*/false, /*strict_mode=*/0, /*data_prop=*/true);
  int asked = 0;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    if (schema.Deprecated()) continue;
    for (int untyped = -1; untyped < int(schema.inputs().size()); ++untyped)
      for (const bool with_attributes : {false, true}) {
        SCOPED_TRACE(schema.domain() + "." + schema.Name() + " " + std::to_string(schema.since_version()));
        onnx::ModelProto m = model_of(schema, untyped, with_attributes);
        const ShapeRegistry schemas;
        ++asked;
        try {
          onnx::shape_inference::InferShapes(m, &schemas, options);
        } catch (const std::exception&) {  // a refusal is an answer
        }
      }
  }
  EXPECT_GT(asked, 2000);
}

}  // namespace
}  // namespace tc::importer::shape_registry_test
