#include <gtest/gtest.h>

#include "importer/test_import.h"

namespace tc::zip_maps_test {
namespace {

using importer_testing::import_text;
using importer_testing::Imported;

const std::string kHeader = R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
)";

TEST(ZipMaps, OutputsThatAreMapsBecomeTensors) {
  const Imported m = import_text(kHeader + R"(net (float[2,3] x) => (seq(map(int64, float)) y) {
  p = Softmax (x)
  y = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 5, 9]> (p)
})");
  EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
  EXPECT_NE(m.problems.find("output \"y\" is a list of maps"), std::string::npos) << m.problems;
  EXPECT_NE(m.problems.find("columns: 0: 4, 1: 5, 2: 9"), std::string::npos) << m.problems;
  EXPECT_NE(m.text.find("y: f32[2, 3] = Identity(p)"), std::string::npos) << m.text;
}

TEST(ZipMaps, LabelsThatAreTextBecomeNumbers) {
  ImportOptions every;
  every.number_labels = true;
  every.has_row = [](std::string_view, std::string_view) { return true; };
  const Imported m = import_text(kHeader + R"(net (float[2,3] x) => (string[2] l, float[2,2] p) {
  l, p = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], intercepts = [0.0, 1.0],
      classlabels_strings = ["a", "b"]> (x)
})",
                                 every);
  EXPECT_NE(m.problems.find("output \"l\" is text"), std::string::npos) << m.problems;
  EXPECT_NE(m.problems.find("labels: 0: \"a\", 1: \"b\""), std::string::npos) << m.problems;
  EXPECT_NE(m.text.find("classlabels_ints = [0, 1]"), std::string::npos) << m.text;
}

TEST(ZipMaps, MapsInsideOfTheModelStay) {
  const Imported m = import_text(kHeader + R"(net (float[2,3] x) => (float[2,3] y) {
  m = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 5, 9]> (x)
  y = ai.onnx.ml.Magic (m)
})");
  EXPECT_EQ(m.problems.find("TC0163"), std::string::npos) << m.problems;
}

TEST(Header, AnOperatorSetMayBeRepeatedWithTheSameVersion) {
  const Imported m = import_text(R"(<ir_version: 8, opset_import: ["" : 17, "" : 17]>
net (float[2] x) => (float[2] y) { y = Neg (x) })");
  EXPECT_EQ(m.exit, ExitCode::Ok) << m.problems;
}

TEST(MapInputs, AreKeysAndValues) {
  const std::string model =
      kHeader +
      "net (map(string, float) x) => (float[1,2] y) { y = ai.onnx.ml.DictVectorizer <string_vocabulary = "
      "[\"b\", \"a\"]> (x) }";
  const Imported m = import_text(
      model, {.elements = {{"x", {true, {{3}}}}}, .has_row = [](std::string_view, std::string_view) { return true; }});
  EXPECT_EQ(m.problems, "");
  ASSERT_EQ(m.graph.inputs().size(), 2u);
  EXPECT_EQ(m.graph.inputs()[0]->name.raw(), "x_keys");
  EXPECT_EQ(to_text(m.graph.inputs()[1]->type), "f32[3]");
  EXPECT_EQ(m.graph.nodes().front()->inputs.size(), 2u);
  const Imported open = import_text(model);
  EXPECT_NE(open.problems.find("say how many it has: --elements x=5"), std::string::npos) << open.problems;
}

}  // namespace
}  // namespace tc::zip_maps_test
