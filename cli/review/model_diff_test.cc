#include "cli/review/model_diff.h"

#include <gtest/gtest.h>

#include "cli/review/render.h"

namespace tc::model_diff_test {
namespace {

const ValueType kVector = ValueType::tensor(DType::F32, {Dim(4)});

/// x -> the operators in a row, whose results an exporter numbered from `first` on.
Graph chain(const std::vector<std::string>& ops, int first, float weight = 1) {
  Graph g;
  Value* v = g.add_input(ModelText("x"), kVector);
  Value* w = g.add_constant(ModelText("w"), make_constant(DType::F32, {1}, &weight));
  for (const std::string& op : ops) {
    const ModelText name(to_text(int64_t(first++)));
    v = g.append(op, op == "Mul" ? std::vector<Value*>{v, w} : std::vector<Value*>{v}, {name})->outputs[0];
    g.set_type(v, kVector);
  }
  g.set_outputs({v});
  return g;
}

std::vector<std::string> told(const Graph& a, const Graph& b) {
  std::vector<std::string> lines;
  for (const Section& s : compare_models(a, b))
    for (const Change& c : s.changes) lines.push_back(s.title + ": " + c.what + " " + c.subject + ": " + c.detail);
  return lines;
}

TEST(ModelDiff, OneNodeMoreDoesNotRenameTheOthers) {
  const std::vector<std::string> lines =
      told(chain({"Neg", "Mul", "Relu", "Abs"}, 0), chain({"Neg", "Tanh", "Mul", "Relu", "Abs"}, 0));
  EXPECT_EQ(lines,
            (std::vector<std::string>{"model: node 1: Tanh, reads \"0\"", "model: node 2: input 0 is \"1\", was \"0\"",
                                      "model: names : 3 nodes have other names and the same meaning"}));
}

TEST(ModelDiff, NodeThatIsGone) {
  EXPECT_EQ(told(chain({"Neg", "Relu", "Abs"}, 0), chain({"Neg", "Abs"}, 0)),
            (std::vector<std::string>{"model: node 1: Relu", "model: node 1: input 0 is \"0\", was \"1\"",
                                      "model: names : 1 node has other names and the same meaning"}));
}

TEST(ModelDiff, WeightsAndOperators) {
  EXPECT_TRUE(told(chain({"Mul"}, 0), chain({"Mul"}, 0)).empty());
  EXPECT_EQ(told(chain({"Mul"}, 0), chain({"Mul"}, 0, 1.5f)),
            (std::vector<std::string>{
                "weights: weight w: f32[1]: 1 of 1 element differs, by 0.5 at most; root mean square of "
                "the differences 0.5, of the elements 1"}));
  EXPECT_EQ(told(chain({"Neg", "Abs"}, 0), chain({"Relu", "Abs"}, 0)),
            (std::vector<std::string>{"model: node 0: is Relu, was Neg"}));
}

TEST(Markdown, NothingIsMarkup) {
  EXPECT_EQ(markdown_text("conv 0.5, +3 (50 %)"), "conv 0.5, +3 (50 %)");
  EXPECT_EQ(markdown_text("@a #1 [x]"), "&#64;a &#35;1 &#91;x&#93;");
  EXPECT_EQ(markdown_text("w.e"), "w&#46;e");
}

}  // namespace
}  // namespace tc::model_diff_test
