// Operators of ai.onnx.ml: they are rewritten, and what they become is evaluated node by node.
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "ir/ops/test_ops.h"

namespace tc::ml_test {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Constant f32(Dims d, const std::vector<double>& v) { return tensor_of(DType::F32, std::move(d), v); }
Constant i64(Dims d, const std::vector<double>& v) { return tensor_of(DType::I64, std::move(d), v); }

std::vector<Constant> run_ml(OpRun r) {
  r.domain = "ai.onnx.ml";
  return run_rewritten(r);
}

std::string ml_error(const OpRun& r) {
  try {
    run_ml(r);
    return "";
  } catch (const Error& e) {
    return e.diagnostic().message;
  }
}

TEST(Ml, FeaturesAreScaledFilledAndNormalised) {
  const Constant x = f32({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values(run_ml({"Scaler", {x}, {{"offset", Floats{1}}, {"scale", Floats{2, 10}}}})[0]),
            (std::vector<double>{0, 10, 4, 30}));
  EXPECT_EQ(values(run_ml({"Imputer",
                           {f32({1, 3}, {kNan, 0, 5})},
                           {{"imputed_value_floats", Floats{7, 8, 9}}, {"replaced_value_float", float(kNan)}}})[0]),
            (std::vector<double>{7, 0, 5}));
  EXPECT_EQ(values(run_ml({"Imputer",
                           {i64({3}, {-1, 0, 5})},
                           {{"imputed_value_int64s", Ints{7}}, {"replaced_value_int64", int64_t(-1)}}})[0]),
            (std::vector<double>{7, 0, 5}));
  // A row of zeros stays one; MAX does not look at the sign.
  const Constant rows = f32({2, 2}, {0, 0, -4, 2});
  EXPECT_LT(
      max_error(values(run_ml({"Normalizer", {rows}, {{"norm", std::string("L1")}}})[0]), {0, 0, -4.0 / 6, 2.0 / 6}),
      1e-6);
  EXPECT_EQ(values(run_ml({"Normalizer", {rows}, {{"norm", std::string("MAX")}}})[0]),
            (std::vector<double>{0, 0, -2, 1}));
  EXPECT_NE(ml_error({"Scaler", {x}, {{"scale", Floats{1, 2, 3}}}}).find("3 numbers for 2 features"),
            std::string::npos);
}

TEST(Ml, LabelsAreLookedUp) {
  const Attrs by_float = {{"keys_floats", Floats{1, float(kNan), 1}}, {"values_int64s", Ints{4, 5, 6}}};
  // The last of equal keys counts, NaN equals NaN, and -1 is the default.
  EXPECT_EQ(values(run_ml({"LabelEncoder", {f32({3}, {1, kNan, 2})}, by_float})[0]), (std::vector<double>{6, 5, -1}));
  const Attrs tensors = {
      {"keys_tensor", i64({2}, {3, 4})}, {"values_tensor", f32({2}, {0.5, 1.5})}, {"default_tensor", f32({1}, {9})}};
  EXPECT_EQ(values(run_ml({"LabelEncoder", {i64({3}, {4, 3, 7})}, tensors})[0]), (std::vector<double>{1.5, 0.5, 9}));
  const Attrs words = {{"keys_strings", Strings{"a"}}, {"values_int64s", Ints{4}}};
  EXPECT_NE(ml_error({"LabelEncoder", {i64({1}, {4})}, words}).find("type of the input"), std::string::npos);
}

TEST(Ml, LabelsThatAreTextAreLookedUp) {
  const Constant x = string_constant({4}, {"a", "", "b", std::string("a\0", 2)});
  const Attrs to_ints = {{"keys_strings", Strings{"a", "b", "a"}}, {"values_int64s", Ints{4, 5, 6}}};
  EXPECT_EQ(values(run_ml({"LabelEncoder", {x}, to_ints})[0]), (std::vector<double>{6, -1, 5, -1}));
  const Attrs to_words = {{"keys_int64s", Ints{4, 5}}, {"values_strings", Strings{"p", ""}}};
  EXPECT_EQ(run_ml({"LabelEncoder", {i64({3}, {5, 4, 3})}, to_words})[0]->strings, (Strings{"", "p", "_Unused"}));
  const Attrs mapper = {{"cats_strings", Strings{"a", "b"}}, {"cats_int64s", Ints{7, 8}}};
  EXPECT_EQ(values(run_ml({"CategoryMapper", {x}, mapper})[0]), (std::vector<double>{7, -1, 8, -1}));
  EXPECT_EQ(run_ml({"CategoryMapper", {i64({2}, {8, 1})}, mapper})[0]->strings, (Strings{"b", "_Unused"}));
  EXPECT_NE(ml_error({"CategoryMapper", {f32({1}, {1})}, mapper}), "");
}

TEST(Ml, ManyKeysAreSearchedByHalves) {
  Strings keys;
  Ints indices;
  for (int64_t k = 0; k < 40; k++) {
    keys.push_back(std::string(size_t(k % 7), 'x') + to_text(k * k % 101));
    indices.push_back(k);
  }
  keys.push_back(keys[3]);  // the last of equal keys counts
  indices.push_back(99);
  const Attrs attrs = {{"keys_strings", keys}, {"values_int64s", indices}};
  Strings asked = keys;
  asked.insert(asked.end(), {"", "zzz", "x", keys[5] + "0"});
  std::vector<double> want;
  for (const std::string& s : asked) {
    double found = -1;
    for (size_t k = 0; k < keys.size(); k++)
      if (keys[k] == s) found = double(indices[k]);
    want.push_back(found);
  }
  const Constant x = string_constant({int64_t(asked.size())}, asked);
  EXPECT_EQ(values(run_ml({"LabelEncoder", {x}, attrs})[0]), want);
}

TEST(Ml, OneHotEncoderRefusesUnknownValuesUnlessToldNotTo) {
  const Attrs lenient = {{"cats_int64s", Ints{7, 3}}};
  EXPECT_EQ(values(run_ml({"OneHotEncoder", {f32({3}, {3, 7, 5})}, lenient})[0]),
            (std::vector<double>{0, 1, 1, 0, 0, 0}));
  Attrs strict = lenient;
  strict["zeros"] = int64_t(0);
  EXPECT_EQ(values(run_ml({"OneHotEncoder", {f32({1}, {3})}, strict})[0]), (std::vector<double>{0, 1}));
  EXPECT_NE(ml_error({"OneHotEncoder", {f32({1}, {5})}, strict}), "");
}

/// One tree: x[0] `rule` 1 ? (x[1] <= 0 ? 10 : 20) : 30.
Attrs tree(const std::string& rule) {
  return {
      {"nodes_treeids", Ints{0, 0, 0, 0, 0}},      {"nodes_nodeids", Ints{0, 1, 2, 3, 4}},
      {"nodes_featureids", Ints{0, 1, 0, 0, 0}},   {"nodes_modes", Strings{rule, "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"}},
      {"nodes_values", Floats{1, 0, 0, 0, 0}},     {"nodes_truenodeids", Ints{1, 2, 0, 0, 0}},
      {"nodes_falsenodeids", Ints{4, 3, 0, 0, 0}}, {"target_treeids", Ints{0, 0, 0}},
      {"target_nodeids", Ints{2, 3, 4}},           {"target_ids", Ints{0, 0, 0}},
      {"target_weights", Floats{10, 20, 30}},      {"n_targets", int64_t(1)}};
}

TEST(Ml, TreesBranchByEveryRule) {
  const Constant x = f32({4, 2}, {0, 0, 1, 1, 2, 0, kNan, 0});
  const std::map<std::string, std::vector<double>> want = {
      {"BRANCH_LEQ", {10, 20, 30, 30}}, {"BRANCH_LT", {10, 30, 30, 30}}, {"BRANCH_GTE", {30, 20, 10, 30}},
      {"BRANCH_GT", {30, 30, 10, 30}},  {"BRANCH_EQ", {30, 20, 30, 30}}, {"BRANCH_NEQ", {10, 30, 10, 10}}};
  for (const auto& [rule, y] : want)
    EXPECT_EQ(values(run_ml({"TreeEnsembleRegressor", {x}, tree(rule)})[0]), y) << rule;
  Attrs missing = tree("BRANCH_LEQ");
  missing["nodes_missing_value_tracks_true"] = Ints{1, 0, 0, 0, 0};
  EXPECT_EQ(values(run_ml({"TreeEnsembleRegressor", {x}, missing})[0]), (std::vector<double>{10, 20, 30, 10}));
}

TEST(Ml, TreesInDoublesAreComparedInDoubles) {
  Attrs wide = tree("BRANCH_LEQ");
  wide.erase("nodes_values");
  wide["nodes_values_as_tensor"] = tensor_of(DType::F64, {5}, {1 + 1e-12, 0, 0, 0, 0});
  EXPECT_EQ(
      values(run_ml({"TreeEnsembleRegressor", {tensor_of(DType::F64, {2, 2}, {1 + 1e-12, 0, 1 + 2e-12, 0})}, wide})[0]),
      (std::vector<double>{10, 30}));
}

TEST(Ml, BranchesMayLeadToOneNode) {
  Attrs set = tree("BRANCH_EQ");  // x[0] == 1 || x[1] == 0 ? 10 : 30
  set["nodes_modes"] = Strings{"BRANCH_EQ", "BRANCH_EQ", "LEAF", "LEAF", "LEAF"};
  set["nodes_truenodeids"] = Ints{2, 2, 0, 0, 0};
  set["nodes_falsenodeids"] = Ints{1, 4, 0, 0, 0};
  EXPECT_NE(ml_error({"TreeEnsembleRegressor", {f32({1, 2}, {0, 0})}, set}).find("two roots"), std::string::npos);
  for (auto* list : {&set["nodes_treeids"], &set["nodes_nodeids"], &set["nodes_featureids"], &set["nodes_truenodeids"],
                     &set["nodes_falsenodeids"]})
    std::get<Ints>(*list).erase(std::get<Ints>(*list).begin() + 3);
  set["nodes_modes"] = Strings{"BRANCH_EQ", "BRANCH_EQ", "LEAF", "LEAF"};
  set["nodes_values"] = Floats{1, 0, 0, 0};
  set["target_treeids"] = Ints{0, 0, 0};
  set["target_nodeids"] = Ints{2, 4, 4};  // the first weight of a leaf counts
  set["target_ids"] = Ints{0, 0, 0};
  EXPECT_EQ(values(run_ml({"TreeEnsembleRegressor", {f32({3, 2}, {1, 1, 2, 0, 2, 1})}, set})[0]),
            (std::vector<double>{10, 10, 20}));
}

TEST(Ml, WhatIsNoTreeIsRefused) {
  const Constant x = f32({1, 2}, {0, 0});
  const auto says = [&](const std::string& attr, Attr value) {
    Attrs a = tree("BRANCH_LEQ");
    a[attr] = std::move(value);
    return ml_error({"TreeEnsembleRegressor", {x}, a});
  };
  EXPECT_NE(says("nodes_truenodeids", Ints{1, 0, 0, 0, 0}).find("in a circle"), std::string::npos);
  EXPECT_NE(says("nodes_truenodeids", Ints{1, 4, 0, 0, 0}).find("a tree has two roots"), std::string::npos);
  EXPECT_NE(says("nodes_truenodeids", Ints{1, 9, 0, 0, 0}).find("does not exist"), std::string::npos);
  EXPECT_NE(says("nodes_nodeids", Ints{0, 1, 2, 3, 3}).find("one id"), std::string::npos);
  EXPECT_NE(says("nodes_featureids", Ints{0, 2, 0, 0, 0}).find("no feature"), std::string::npos);
  EXPECT_NE(says("nodes_modes", Strings{"BRANCH_LEQ", "IF", "LEAF", "LEAF", "LEAF"}).find("nodes_modes"),
            std::string::npos);
  EXPECT_NE(says("nodes_values", Floats{1}).find("one entry for each node"), std::string::npos);
  EXPECT_NE(says("target_nodeids", Ints{2, 3, 1}).find("no leaf"), std::string::npos);
  EXPECT_NE(says("target_ids", Ints{0, 0, 1}).find("out of range"), std::string::npos);
}

TEST(Ml, ClassifiersChooseTheFirstOfTheLargest) {
  const Attrs a = {{"coefficients", Floats{1, 0, 0, 1, 1, 0}}, {"classlabels_ints", Ints{5, 7, 9}}};
  const auto y = run_ml({"LinearClassifier", {f32({2, 2}, {2, 1, 1, 2})}, a, 2});
  EXPECT_EQ(values(y[0]), (std::vector<double>{5, 7}));
  EXPECT_EQ(values(y[1]), (std::vector<double>{2, 1, 2, 1, 2, 1}));
  const Attrs text = {{"coefficients", Floats{1, 0}}, {"classlabels_strings", Strings{"a", "b"}}};
  EXPECT_EQ(run_ml({"LinearClassifier", {f32({3, 2}, {2, 1, -2, 1, 0, 1})}, text, 2})[0]->strings,
            (Strings{"b", "a", "a"}));
}

TEST(Ml, PairsOfClassesAreCoupled) {
  // Two classes: the probability of the pair. Three that agree with 1/2, 1/3, 1/6: those.
  const auto couple = [](const Constant& pairs, int64_t classes) {
    return values(run_op({"couple_pairs", {pairs}, {{"classes", classes}}, 1, "tc"})[0]);
  };
  EXPECT_LT(max_error(couple(f32({1, 1}, {0.75}), 2), {0.75, 0.25}), 2e-2);
  EXPECT_LT(max_error(couple(f32({1, 3}, {0.6, 0.75, 2.0 / 3}), 3), {1.0 / 2, 1.0 / 3, 1.0 / 6}), 2e-2);
  // Five classes, pairs in the order (0, 1), (0, 2), ..., (3, 4) that agree with one list of probabilities.
  const std::vector<double> right = {0.4, 0.25, 0.05, 0.2, 0.1};
  std::vector<double> pairs;
  for (size_t i = 0; i < 5; i++)
    for (size_t j = i + 1; j < 5; j++) pairs.push_back(right[i] / (right[i] + right[j]));
  EXPECT_LT(max_error(couple(f32({1, 10}, pairs), 5), right), 2e-2);
}

TEST(Ml, ManyClassesAreCoupledInLoops) {
  const auto text = [](int64_t classes) {
    Graph g;
    Value* x = g.add_input(ModelText("x"), ValueType::tensor(DType::F32, to_shape({1, classes * (classes - 1) / 2})));
    return to_text(tensor_fn(*g.append("couple_pairs", {x}, {ModelText("y")}, {{"classes", classes}}, "tc")));
  };
  EXPECT_LT(text(200).size(), text(3).size() + 200);
}

TEST(Ml, HalvesAreNotImputed) {
  const Constant x = tensor_of(DType::F16, {2}, {1, 2});
  EXPECT_NE(ml_error({"Imputer", {x}, {{"imputed_value_floats", Floats{7}}}}).find("f32, f64, i32 or i64"),
            std::string::npos);
}

TEST(Ml, AttributesOfAnotherTypeAreRejected) {
  EXPECT_NE(
      ml_error({"Scaler", {f32({1, 2}, {1, 2})}, {{"scale", Ints{2, 10}}}}).find("attribute scale has the wrong type"),
      std::string::npos);
}

/// Two trees: x0 <= 0.5 ? leaf 0 : (x1 in {2, 3} ? leaf 1 : leaf 2), and one that is leaf 3.
Attrs two_trees() {
  return {{"n_targets", int64_t(2)},
          {"tree_roots", Ints{0, 2}},
          {"nodes_modes", tensor_of(DType::U8, {3}, {0, 6, 0})},
          {"nodes_featureids", Ints{0, 1, 0}},
          {"nodes_splits", f32({3}, {0.5, 0, 0})},
          {"nodes_truenodeids", Ints{0, 1, 3}},
          {"nodes_trueleafs", Ints{1, 1, 1}},
          {"nodes_falsenodeids", Ints{1, 2, 3}},
          {"nodes_falseleafs", Ints{0, 1, 1}},
          {"nodes_missing_value_tracks_true", Ints{0, 1, 0}},
          {"membership_values", f32({3}, {2, 3, kNan})},
          {"leaf_targetids", Ints{0, 1, 0, 1}},
          {"leaf_weights", f32({4}, {1, 10, 100, 1000})}};
}

TEST(TreeEnsemble, ASetIsAChainOfBranches) {
  const Constant x = f32({5, 2}, {0, 9, 1, 2, 1, 3, 1, 4, 1, kNan});
  EXPECT_EQ(values(run_ml({"TreeEnsemble", {x}, two_trees()})[0]),
            (std::vector<double>{1, 1000, 0, 1010, 0, 1010, 100, 1000, 0, 1010}));
  Attrs least = two_trees();
  least["aggregate_function"] = int64_t(2);
  EXPECT_EQ(values(run_ml({"TreeEnsemble", {f32({1, 2}, {1, 2})}, least})[0])[1], 10);
}

TEST(TreeEnsemble, ATargetThatNoLeafSpeaksOfScoresNothing) {
  for (const int64_t aggregate : {2, 3}) {  // MIN, MAX
    Attrs trees = two_trees();
    trees["aggregate_function"] = aggregate;
    trees["n_targets"] = int64_t(3);
    EXPECT_EQ(values(run_ml({"TreeEnsemble", {f32({1, 2}, {0, 9})}, trees})[0]), (std::vector<double>{1, 1000, 0}));
    trees["leaf_weights"] = f32({4}, {1, 10, 100, std::numeric_limits<double>::infinity()});
    EXPECT_EQ(ml_error({"TreeEnsemble", {f32({1, 2}, {0, 9})}, trees}), "leaves of infinite weight under MIN or MAX");
  }
}

TEST(TreeEnsemble, TreesMayShareLeaves) {
  Attrs both = two_trees();  // the second tree is leaf 0, as the first one's branch for x0 <= 0.5
  both["nodes_truenodeids"] = Ints{0, 1, 0};
  both["nodes_falsenodeids"] = Ints{1, 2, 0};
  EXPECT_EQ(values(run_ml({"TreeEnsemble", {f32({2, 2}, {0, 9, 1, 2})}, both})[0]), (std::vector<double>{2, 0, 1, 10}));
  both["leaf_targetids"] = Ints{1, 1, 1, 1};  // one target each
  EXPECT_EQ(values(run_ml({"TreeEnsemble", {f32({2, 2}, {0, 9, 1, 2})}, both})[0]), (std::vector<double>{0, 2, 0, 11}));
}

TEST(TreeEnsemble, RefusesWhatIsNoTree) {
  Attrs circle = two_trees();
  circle["nodes_falseleafs"] = Ints{0, 0, 1};
  circle["nodes_falsenodeids"] = Ints{1, 1, 3};
  const OpRun r = {"TreeEnsemble", {f32({1, 2}, {1, 2})}, circle, 1, "ai.onnx.ml"};
  EXPECT_NE(op_error(r).find("in a circle"), std::string::npos);
  Attrs shared = two_trees();
  shared["tree_roots"] = Ints{0, 1};
  EXPECT_NE(op_error({"TreeEnsemble", {f32({1, 2}, {1, 2})}, shared, 1, "ai.onnx.ml"}).find("two trees share a branch"),
            std::string::npos);
  Attrs few = two_trees();
  few["membership_values"] = f32({0}, {});
  EXPECT_NE(op_error({"TreeEnsemble", {f32({1, 2}, {1, 2})}, few, 1, "ai.onnx.ml"}).find("fewer sets"),
            std::string::npos);
}

TEST(Ml, MapsBecomeColumns) {
  const Constant keys = string_constant({3}, {"a", "c", "z"}), numbers = i64({3}, {2, 0, 5});
  const Constant values3 = f32({3}, {1.5, 2.5, 9});
  EXPECT_EQ(values(run_ml({"DictVectorizer", {keys, values3}, {{"string_vocabulary", Strings{"c", "b", "a"}}}})[0]),
            (std::vector<double>{2.5, 0, 1.5}));
  EXPECT_EQ(values(run_ml({"DictVectorizer", {numbers, values3}, {{"int64_vocabulary", Ints{5, 2}}}})[0]),
            (std::vector<double>{9, 1.5}));
  const Constant none = string_constant({0}, {});
  EXPECT_EQ(values(run_ml({"DictVectorizer", {none, f32({0}, {})}, {{"string_vocabulary", Strings{"c", "b"}}}})[0]),
            (std::vector<double>{0, 0}));
  EXPECT_EQ(ml_error({"DictVectorizer", {keys, values3}}),
            "exactly one of string_vocabulary and int64_vocabulary must be given");
}

TEST(Ml, MapsAreCast) {
  const Constant keys = i64({3}, {2, 0, 5}), numbers = f32({3}, {2.75, -1.5, 9});
  EXPECT_EQ(values(run_ml({"CastMap", {keys, numbers}})[0]), (std::vector<double>{-1.5, 2.75, 9}));
  EXPECT_EQ(values(run_ml({"CastMap", {keys, numbers}, {{"cast_to", std::string("TO_INT64")}}})[0]),
            (std::vector<double>{-1, 2, 9}));
  EXPECT_EQ(
      values(run_ml({"CastMap", {keys, numbers}, {{"map_form", std::string("SPARSE")}, {"max_map", int64_t(4)}}})[0]),
      (std::vector<double>{-1.5, 0, 2.75, 0}));
  const Constant words = string_constant({3}, {"2.5", "-1", "7"});
  EXPECT_EQ(
      values(run_ml({"CastMap", {keys, words}, {{"map_form", std::string("SPARSE")}, {"max_map", int64_t(3)}}})[0]),
      (std::vector<double>{-1, 0, 2.5}));
}

}  // namespace
}  // namespace tc::ml_test
