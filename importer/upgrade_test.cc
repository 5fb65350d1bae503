#include "importer/upgrade.h"

#include <gtest/gtest.h>
#include <onnx/defs/schema.h>

#include "importer/test_import.h"

namespace tc::upgrade_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;
using onnx::OpSchema;

/// What makes a node of `older` mean something else, or nothing, in `newer`; "" if it may stay as it is.
std::string difference(const OpSchema& older, const OpSchema& newer) {
  for (const auto& [name, a] : older.attributes()) {
    const auto it = newer.attributes().find(name);
    if (it == newer.attributes().end()) return "attribute " + name + " is gone";
    if (it->second.type != a.type) return "attribute " + name + " has another type";
    if (it->second.default_value.SerializeAsString() != a.default_value.SerializeAsString())
      return "attribute " + name + " has another default";
    if (it->second.required && !a.required) return "attribute " + name + " has become required";
  }
  for (const auto& [name, a] : newer.attributes())
    if (a.required && !older.attributes().count(name)) return "attribute " + name + " is required";
  if (newer.inputs().size() < older.inputs().size()) return "fewer operands";
  for (size_t i = 0; i < newer.inputs().size(); ++i) {
    const bool optional = newer.inputs()[i].GetOption() != OpSchema::Single;
    if (i >= older.inputs().size() && !optional) return "operand " + newer.inputs()[i].GetName() + " is required";
    if (i < older.inputs().size() && older.inputs()[i].GetOption() == OpSchema::Optional && !optional)
      return "operand " + newer.inputs()[i].GetName() + " has become required";
  }
  if (newer.outputs().size() < older.outputs().size()) return "fewer results";
  return newer.Deprecated() && !older.Deprecated() ? "deprecated" : "";
}

/// Differences that change nothing for the nodes that there are.
const std::set<std::pair<std::string, int>> kHarmless = {
    {"BatchNormalization", 7},  // its attributes are read by the rule of version 14
    {"BatchNormalization", 9},
    {"Dropout", 7},    // its attributes are read by the rule of version 12
    {"Upsample", 10},  // has a row of its own
};

TEST(UpgradeRules, ThereIsOneForEveryChangeOfADefinition) {
  std::map<std::string, std::map<int, const OpSchema*>> history;
  const auto schemas = onnx::OpSchemaRegistry::get_all_schemas_with_history();
  for (const OpSchema& s : schemas)
    if (s.domain().empty() && s.since_version() <= newest_opset()) history[s.Name()][s.since_version()] = &s;
  std::set<std::pair<std::string, int>> rules;
  int last = 0;
  for (const auto& rule : importer::upgrade_rules()) {
    EXPECT_LE(last, rule.version) << rule.op;
    last = rule.version;
    EXPECT_TRUE(rules.emplace(rule.op, rule.version).second) << rule.op << " has two rules for one version";
    EXPECT_EQ(history[std::string(rule.op)].count(rule.version), 1u) << rule.op << " " << rule.version;
  }
  for (const auto& [op, versions] : history) {
    const OpSchema* before = nullptr;
    for (const auto& [version, schema] : versions) {
      if (before && !kHarmless.count({op, version}) && !rules.count({op, version})) {
        EXPECT_EQ(difference(*before, *schema), "") << op << " of version " << version;
      }
      before = schema;
    }
  }
}

std::string nodes_of(const std::string& model) {
  const Imported m = import_text(model);
  EXPECT_EQ(m.problems, "");
  return m.text;
}

TEST(UpgradeRules, OldBroadcastingBeginsAtItsAxis) {
  EXPECT_EQ(nodes_of(R"(<ir_version: 3, opset_import: ["" : 6]>
net (float[2,3,4,5] x, float[3,4] b) => (float[2,3,4,5] y) { y = Add <broadcast = 1, axis = 1> (x, b) })"),
            R"(graph net(x: f32[2, 3, 4, 5], b: f32[3, 4]) -> (y) {
  "y/axes": i64[1] = const [2]
  "y/aligned": f32[3, 4, 1] = Unsqueeze(b, "y/axes")
  y: f32[2, 3, 4, 5] = Add(x, "y/aligned")
}
)");
}

TEST(UpgradeRules, OldBroadcastingRepeatsTheSecondOperandOnly) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 6]>
net (float[4,1,1] x, float[4] b) => (float[4,4,1] y) { y = Add <broadcast = 1, axis = 1> (x, b) })");
  EXPECT_NE(m.problems.find("broadcasts an operand along an axis of another size"), std::string::npos) << m.problems;
}

TEST(UpgradeRules, WithoutAnAxisTheLastOnesMeet) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 1]>
net (float[2,3] x, float[3] b) => (float[2,3] y) { y = Mul <broadcast = 1, consumed_inputs = [0, 0]> (x, b) })");
  EXPECT_EQ(m.problems, "");
  ASSERT_EQ(m.graph.num_nodes(), 1u);
  EXPECT_TRUE(m.graph.nodes().front()->attrs.empty());
}

TEST(UpgradeRules, ANodeWaitsForTheRankOfItsOperand) {
  // Inference knows nothing about Upsample before version 7.
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 6]>
net (float[1,2,3,4] x, float[2] b) => (float[1,2,6,8] y) {
  u = Upsample <height_scale = 2.0, width_scale = 2.0, mode = "bilinear"> (x)
  y = Add <broadcast = 1, axis = 1> (u, b)
})");
  ASSERT_EQ(m.problems, "");
  const Node& add = *m.graph.nodes().back();
  EXPECT_EQ(add.op, "Add");
  EXPECT_EQ(to_text(add.inputs[1]->type), "f32[2,1,1]");
  EXPECT_EQ(m.graph.nodes().front()->attr_string("mode", ""), "linear");
}

TEST(UpgradeRules, SoftmaxSawAMatrix) {
  const Imported m = import_text(R"(<ir_version: 7, opset_import: ["" : 11]>
net (float[2,3,4] x) => (float[2,3,4] y) { y = Hardmax(x) })");
  ASSERT_EQ(m.problems, "");
  std::string ops;
  for (const auto& n : m.graph.nodes()) ops += n->op + " ";
  EXPECT_EQ(ops, "Shape Flatten Hardmax Reshape ");
}

TEST(UpgradeRules, BatchNormalizationOfElements) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 7]>
net (float[2,3,4] x, float[3,4] s, float[3,4] b, float[3,4] m, float[3,4] v) => (float[2,3,4] y) {
  y = BatchNormalization <spatial = 0> (x, s, b, m, v)
})");
  ASSERT_EQ(m.problems, "");
  std::string ops;
  for (const auto& n : m.graph.nodes()) ops += n->op + " ";
  EXPECT_EQ(ops, "Sub Add Sqrt Div Mul Add ");
}

TEST(UpgradeRules, BatchNormalizationTrainsWhereMoreResultsAreAskedFor) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 9]>
net (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y, float[3] mean) {
  y, mean, var, saved, more = BatchNormalization (x, s, b, m, v)
})");
  ASSERT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.nodes().front()->attr_int("training_mode", 0), 1);
}

TEST(UpgradeRules, GroupNormalizationHadAScaleForAGroup) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 18]>
net (float[1,6,4] x, float[2] s, float[2] b) => (float[1,6,4] y) { y = GroupNormalization <num_groups = 2> (x, s, b) })");
  ASSERT_EQ(m.problems, "");
  const Node& norm = *m.graph.nodes().back();
  EXPECT_EQ(norm.op, "GroupNormalization");
  EXPECT_EQ(to_text(norm.inputs[1]->type), "f32[6]");
}

TEST(UpgradeRules, SeluKeepsItsOldNumbers) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 1]>
net (float[2] x) => (float[2] y) { y = Selu(x) })");
  ASSERT_EQ(m.problems, "");
  EXPECT_EQ(m.graph.nodes().front()->attr_float("alpha", 0), 1.6732f);
}

TEST(UpgradeRules, LabelEncoderNumberedItsClasses) {
  ImportOptions every;
  every.has_row = [](std::string_view, std::string_view) { return true; };
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
net (string[2] x) => (int64[2] y) { y = ai.onnx.ml.LabelEncoder <classes_strings = ["a", "b"], default_int64 = -7> (x) })",
                                 every);
  ASSERT_EQ(m.problems, "");
  const Node& mapper = *m.graph.nodes().front();
  EXPECT_EQ(mapper.op, "CategoryMapper");
  EXPECT_EQ(mapper.attr_ints("cats_int64s"), (std::vector<int64_t>{0, 1}));
}

TEST(UpgradeRules, ScanBackwards) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 8]>
net (float[2,3] s, float[2,5,3] x) => (float[2,3] last, float[2,5,3] all) {
  last, all = Scan <num_scan_inputs = 1, directions = [1], body = b (float[3] a, float[3] v) => (float[3] n, float[3] o)
    { n = Add(a, v)  o = Identity(n) }> ("", s, x)
})");
  ASSERT_EQ(m.problems, "");
  const Node& inner = *m.graph.nodes().front()->regions[0]->nodes().front();
  EXPECT_EQ(inner.attr_ints("scan_input_directions"), std::vector<int64_t>{1});
}

TEST(UpgradeRules, WhatHasNoCounterpartIsSaidInWords) {
  const Imported m = import_text(R"(<ir_version: 3, opset_import: ["" : 8]>
net (float[2,3] s, float[2,5,3] x, int64[2] n) => (float[2,3] last) {
  last = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] v) => (float[3] r) { r = Add(a, v) }> (n, s, x)
})");
  EXPECT_EQ(m.exit, ExitCode::Unsupported);
  EXPECT_NE(m.problems.find("which is written for opset 8, has sequence lengths"), std::string::npos) << m.problems;
}

}  // namespace
}  // namespace tc::upgrade_test
