#include <limits>

#include "ir/ops/test_cases.h"

namespace tc::case_testing::reduction_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
const Constant kGrid = floats({2, 3}, {1, 2, 3, 4, 5, 7});

TEST(Reduce, AxesKeepdimsAndNoop) {
  const Result r = run({"ReduceSum", {kGrid, ints({1}, {-1})}});
  EXPECT_EQ(r.outputs[0]->dims, (Dims{2, 1}));
  EXPECT_EQ(values(r.outputs[0]), (std::vector<double>{6, 16}));
  EXPECT_EQ(run({"ReduceSum", {kGrid, ints({1}, {0})}, {{"keepdims", int64_t(0)}}}).outputs[0]->dims, (Dims{3}));
  EXPECT_EQ(values({"ReduceSum", {kGrid}}), std::vector<double>{22});
  const Attrs noop = {{"noop_with_empty_axes", int64_t(1)}};
  EXPECT_EQ(values({"ReduceSum", {kGrid}, noop}), values(kGrid));
  EXPECT_EQ(values({"ReduceSumSquare", {kGrid}, noop}), (std::vector<double>{1, 4, 9, 16, 25, 49}));
  EXPECT_NE(error_of({"ReduceSum", {kGrid, ints({2}, {0, -2})}}), "");
  EXPECT_NE(error_of({"ReduceSum", {kGrid, ints({1}, {2})}}), "");
}

TEST(Reduce, Formulas) {
  const Constant one = ints({1}, {1});
  expect_near(values({"ReduceMean", {kGrid, one}}), {2, 16.0 / 3});
  expect_near(values({"ReduceProd", {kGrid, one}}), {6, 140});
  expect_near(values({"ReduceL1", {floats({1, 2}, {-3, 4}), one}}), {7});
  expect_near(values({"ReduceL2", {floats({1, 2}, {-3, 4}), one}}), {5});
  expect_near(values({"ReduceLogSum", {kGrid, one}}), {std::log(6), std::log(16)});
  expect_near(values({"ReduceLogSumExp", {floats({1, 2}, {1000, 1000}), one}}), {1000 + std::log(2)});
  expect_near(values({"ReduceLogSumExp", {floats({1, 2}, {-float(kInf), -float(kInf)}), one}}), {-kInf});
  EXPECT_EQ(values({"ReduceMax", {numbers(DType::Bool, {2, 2}, {0, 1, 0, 0}), one}}), (std::vector<double>{1, 0}));
}

TEST(Reduce, EmptySetsGiveTheIdentity) {
  const Constant none = floats({2, 0}, {}), one = ints({1}, {1});
  EXPECT_EQ(values({"ReduceSum", {none, one}}), (std::vector<double>{0, 0}));
  EXPECT_EQ(values({"ReduceProd", {none, one}}), (std::vector<double>{1, 1}));
  EXPECT_EQ(values({"ReduceMax", {none, one}}), (std::vector<double>{-kInf, -kInf}));
  EXPECT_EQ(values({"ReduceLogSumExp", {none, one}}), (std::vector<double>{-kInf, -kInf}));
}

TEST(Reduce, NarrowFloatsAccumulateAsSingle) {
  // 2048 + 1 = 2048 in f16.
  std::vector<double> v(2049, 1);
  EXPECT_EQ(values({"ReduceSum", {numbers(DType::F16, {2049}, v)}}), std::vector<double>{2048});
  v.resize(4096, 1);
  EXPECT_EQ(values({"ReduceSum", {numbers(DType::F16, {4096}, v)}}), std::vector<double>{4096});
}

TEST(Reduce, BytesAccumulateAsWideIntegers) {
  const Constant bytes = numbers(DType::U8, {300}, std::vector<double>(300, 200));
  EXPECT_EQ(values({"ReduceMean", {bytes}}), std::vector<double>{200});
  EXPECT_EQ(values({"ReduceL2", {numbers(DType::U8, {2}, {30, 40})}}), std::vector<double>{50});
  EXPECT_EQ(values({"Mean", {numbers(DType::I8, {1}, {100}), numbers(DType::I8, {1}, {110})}}),
            std::vector<double>{105});
}

TEST(Reduce, RunTimeAxesChooseAmongThoseOfTheDeclaredShape) {
  const Constant x = floats({2, 2}, {1, 2, 3, 4});
  auto call = [&](int64_t axis, const Dims& declared) {
    return Call{"ReduceSum",
                {x, ints({1}, {axis})},
                {{"keepdims", int64_t(0)}},
                {1},
                {ValueType::tensor(DType::F32, to_shape(declared))}};
  };
  EXPECT_EQ(values(call(0, {2})), (std::vector<double>{4, 6}));
  EXPECT_EQ(values(call(-1, {2})), (std::vector<double>{3, 7}));
  EXPECT_NE(error_of(call(5, {2})), "");  // no axis: E_RANGE instead of a wrong answer
  EXPECT_NE(error_of(call(0, {3})), "");
  Call undeclared = call(0, {2});
  undeclared.declared.clear();
  EXPECT_NE(error_of(undeclared).find("input 1"), std::string::npos);
}

TEST(ArgMax, TiesAndNan) {
  const Constant x = floats({1, 4}, {3, 5, 5, 1});
  const Attrs axis = {{"axis", int64_t(1)}}, last = {{"axis", int64_t(1)}, {"select_last_index", int64_t(1)}};
  EXPECT_EQ(values({"ArgMax", {x}, axis}), std::vector<double>{1});
  EXPECT_EQ(values({"ArgMax", {x}, last}), std::vector<double>{2});
  EXPECT_EQ(values({"ArgMin", {x}, axis}), std::vector<double>{3});
  EXPECT_EQ(values({"ArgMax", {floats({1, 3}, {1, float(kNan), 9})}, axis}), std::vector<double>{1});
  EXPECT_EQ(values({"ArgMax", {floats({1, 2}, {-float(kInf), -float(kInf)})}, axis}), std::vector<double>{0});
}

TEST(TopK, IsStableAndTakesBothEnds) {
  const Constant x = floats({5}, {2, 7, 7, 1, 5}), k = ints({1}, {3});
  const Result r = run({"TopK", {x, k}, {}, {}, {}, 2});
  EXPECT_EQ(values(r.outputs[0]), (std::vector<double>{7, 7, 5}));
  EXPECT_EQ(values(r.outputs[1]), (std::vector<double>{1, 2, 4}));
  EXPECT_EQ(values({"TopK", {x, k}, {{"largest", int64_t(0)}}}), (std::vector<double>{1, 2, 5}));
  EXPECT_NE(error_of({"TopK", {x, ints({1}, {6})}}), "");
}

TEST(TopK, NanIsLargerThanAnyNumber) {
  const Constant x = floats({5}, {2, float(kNan), float(kInf), float(kNan), -float(kInf)}), k = ints({1}, {5});
  EXPECT_EQ(values(run({"TopK", {x, k}, {}, {}, {}, 2}).outputs[1]), (std::vector<double>{1, 3, 2, 0, 4}));
  const Attrs smallest = {{"largest", int64_t(0)}};
  EXPECT_EQ(values(run({"TopK", {x, k}, smallest, {}, {}, 2}).outputs[1]), (std::vector<double>{4, 0, 2, 1, 3}));
}

TEST(CumSum, DirectionsAndAxes) {
  const Constant axis = ints({}, {1});
  auto attrs = [](int64_t exclusive, int64_t reverse) { return Attrs{{"exclusive", exclusive}, {"reverse", reverse}}; };
  EXPECT_EQ(values({"CumSum", {kGrid, axis}, attrs(0, 0)}), (std::vector<double>{1, 3, 6, 4, 9, 16}));
  EXPECT_EQ(values({"CumSum", {kGrid, axis}, attrs(1, 0)}), (std::vector<double>{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(values({"CumSum", {kGrid, axis}, attrs(0, 1)}), (std::vector<double>{6, 5, 3, 16, 12, 7}));
  EXPECT_EQ(values({"CumSum", {kGrid, axis}, attrs(1, 1)}), (std::vector<double>{5, 3, 0, 12, 7, 0}));
  EXPECT_EQ(values({"CumSum", {kGrid, ints({}, {-2})}, {}, {1}}), (std::vector<double>{1, 2, 3, 5, 7, 10}));
  EXPECT_EQ(values({"CumProd", {kGrid, axis}, attrs(1, 1)}), (std::vector<double>{6, 3, 1, 35, 7, 1}));
}

TEST(Softmax, IsStable) {
  const Constant x = floats({1, 2}, {1000, 1000 + std::log(3.0f)});
  expect_near(values({"Softmax", {x}}), {0.25, 0.75}, 1e-4);
  expect_near(values({"LogSoftmax", {x}}), {std::log(0.25), std::log(0.75)}, 1e-4);
  EXPECT_EQ(values({"Hardmax", {floats({3}, {1, 4, 4})}}), (std::vector<double>{0, 1, 0}));
}

TEST(Losses, WeightsAndIgnoredTargets) {
  const Constant log_prob = floats({3, 2}, {-1, -2, -3, -4, -5, -6}), target = ints({3}, {1, 0, 7}),
                 w = floats({2}, {2, 10});
  auto attrs = [](const char* how) { return Attrs{{"reduction", std::string(how)}, {"ignore_index", int64_t(7)}}; };
  expect_near(values({"NegativeLogLikelihoodLoss", {log_prob, target, w}, attrs("none")}), {20, 6, 0});
  expect_near(values({"NegativeLogLikelihoodLoss", {log_prob, target, w}, attrs("sum")}), {26});
  expect_near(values({"NegativeLogLikelihoodLoss", {log_prob, target, w}, attrs("mean")}), {26.0 / 12});
  EXPECT_NE(error_of({"NegativeLogLikelihoodLoss", {log_prob, target, w}, {}, {1}}), "");  // 7 is no class
  const Result r = run({"SoftmaxCrossEntropyLoss", {floats({1, 2}, {0, 0}), ints({1}, {1})}, {}, {}, {}, 2});
  expect_near(values(r.outputs[0]), {std::log(2)});
  expect_near(values(r.outputs[1]), {-std::log(2), -std::log(2)});
}

TEST(LpNormalization, ZeroRowsStayZero) {
  expect_near(values({"LpNormalization", {floats({2, 2}, {3, 4, 0, 0})}}), {0.6, 0.8, 0, 0});
  expect_near(values({"LpNormalization", {floats({1, 2}, {3, -1})}, {{"p", int64_t(1)}}}), {0.75, -0.25});
}

TEST(Inverse, ExchangesRows) {
  const Constant x = floats({2, 2, 2}, {0, 2, 4, 1, 1, 2, 3, 4});
  expect_near(values({"Inverse", {x}, {}, {}, {}, 1, "com.microsoft"}), {-0.125, 0.25, 0.5, 0, -2, 1, 1.5, -0.5});
}

TEST(Det, ExchangesRows) { expect_near(values({"Det", {floats({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4})}}), {-6, 0}); }

TEST(TfIdf, CountsWithSkips) {
  Attrs attrs = {{"min_gram_length", int64_t(1)},
                 {"max_gram_length", int64_t(2)},
                 {"max_skip_count", int64_t(1)},
                 {"mode", std::string("TF")},
                 {"ngram_counts", std::vector<int64_t>{0, 2}},
                 {"ngram_indexes", std::vector<int64_t>{0, 1, 2}},
                 {"pool_int64s", std::vector<int64_t>{5, 6, 5, 6}}};
  // 5 twice, 6 twice; "5 6" next to each other twice, and with one between them never.
  EXPECT_EQ(values({"TfIdfVectorizer", {ints({4}, {5, 6, 5, 6})}, attrs}), (std::vector<double>{2, 2, 2}));
  // A skip that is longer than the text counts what there is: "5 6" with two between them, too.
  for (int64_t skip : {int64_t(5), INT64_MAX}) {
    attrs["max_skip_count"] = skip;
    EXPECT_EQ(values({"TfIdfVectorizer", {ints({4}, {5, 6, 5, 6})}, attrs}), (std::vector<double>{2, 2, 3}));
    EXPECT_EQ(values({"TfIdfVectorizer", {ints({1}, {5})}, attrs}), (std::vector<double>{1, 0, 0}));
  }
  attrs["max_skip_count"] = int64_t(-1);
  EXPECT_NE(error_of({"TfIdfVectorizer", {ints({1}, {5})}, attrs}), "");
}

TEST(TfIdf, WeightsAreThoseOfThePool) {
  const auto counted = [](const std::string& mode) {
    const Attrs attrs = {{"min_gram_length", int64_t(1)},
                         {"max_gram_length", int64_t(2)},
                         {"max_skip_count", int64_t(0)},
                         {"mode", mode},
                         {"ngram_counts", std::vector<int64_t>{0, 2}},
                         {"ngram_indexes", std::vector<int64_t>{2, 0, 1}},
                         {"pool_int64s", std::vector<int64_t>{5, 6, 5, 6}},
                         {"weights", std::vector<float>{10, 20, 30}}};
    return values({"TfIdfVectorizer", {ints({4}, {5, 6, 5, 5})}, attrs});
  };
  EXPECT_EQ(counted("TF"), (std::vector<double>{1, 1, 3}));
  EXPECT_EQ(counted("IDF"), (std::vector<double>{20, 30, 10}));
  EXPECT_EQ(counted("TFIDF"), (std::vector<double>{20, 30, 30}));
}

}  // namespace
}  // namespace tc::case_testing::reduction_test
