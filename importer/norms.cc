#include "importer/norms.h"

#include <algorithm>

namespace tc::importer {

namespace {

constexpr int64_t kFirstNorm = 17;  // the first operator set that has LayerNormalization

}  // namespace

void give_intercepts(onnx::ModelProto& m) {
  for_each_graph(*m.mutable_graph(), [](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node()) {
      if (n.op_type() != "LinearClassifier" || domain_of(n.domain()) != "ai.onnx.ml") continue;
      int labels = 0;
      bool given = false;
      for (const auto& a : n.attribute()) {
        if (a.name() == "classlabels_ints") labels = std::max(labels, a.ints_size());
        if (a.name() == "classlabels_strings") labels = std::max(labels, a.strings_size());
        given = given || a.name() == "intercepts";
      }
      if (given || labels < 3) continue;  // two labels may have one row of coefficients
      onnx::AttributeProto* intercepts = n.add_attribute();
      intercepts->set_name("intercepts");
      intercepts->set_type(onnx::AttributeProto::FLOATS);
      for (int k = 0; k < labels; k++) intercepts->add_floats(0);
    }
  });
}

void name_encoders(onnx::ModelProto& m) {
  for_each_graph(*m.mutable_graph(), [](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node()) {
      if (n.op_type() != "LabelEncoder" || domain_of(n.domain()) != "ai.onnx.ml") continue;
      auto& attributes = *n.mutable_attribute();
      const auto classes = std::find_if(attributes.begin(), attributes.end(),
                                        [](const auto& a) { return a.name() == "classes_strings"; });
      if (classes == attributes.end()) continue;
      n.set_op_type("CategoryMapper");
      classes->set_name("cats_strings");
      const int count = classes->strings_size();
      onnx::AttributeProto& numbers = *attributes.Add();
      numbers.set_name("cats_int64s");
      numbers.set_type(onnx::AttributeProto::INTS);
      for (int k = 0; k < count; k++) numbers.add_ints(k);
    }
  });
}

bool is_named_otherwise(const onnx::NodeProto& n) {
  // A second output, the inverse deviation, has no counterpart: such a node stays and is reported.
  return n.op_type() == "SimplifiedLayerNormalization" && domain_of(n.domain()).empty() && n.output_size() == 1;
}

void name_norms(onnx::ModelProto& m) {
  for_each_graph(*m.mutable_graph(), [](onnx::GraphProto& g) {
    for (auto& n : *g.mutable_node())
      if (is_named_otherwise(n)) n.set_op_type("RMSNormalization");
  });
}

bool is_early_norm(const onnx::NodeProto& n, int64_t version) {
  return n.op_type() == "LayerNormalization" && domain_of(n.domain()).empty() && version < kFirstNorm;
}

}  // namespace tc::importer
