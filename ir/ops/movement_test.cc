#include "ir/ops/test_cases.h"

namespace tc::case_testing::movement_test {
namespace {

std::vector<float> ramp(int n) {
  std::vector<float> v;
  for (int k = 0; k < n; k++) v.push_back(float(k));
  return v;
}
const Constant kGrid = floats({2, 3}, ramp(6));

ValueType f32(const Dims& d) { return ValueType::tensor(DType::F32, to_shape(d)); }

TEST(Views, KeepTheOrderAndAreRecognised) {
  const Constant x = floats({2, 3, 4}, ramp(24));
  for (const Dims& shape : {Dims{6, 4}, Dims{4, 6}, Dims{24}, Dims{2, 12}, Dims{2, 1, 3, 2, 2}}) {
    const Result r = run({"Reshape", {x, int64_constant(shape)}});
    EXPECT_EQ(r.outputs[0]->dims, shape);
    EXPECT_EQ(values(r.outputs[0]), values(x));
    EXPECT_EQ(pattern_of(r.fn), Pattern::View) << to_text(r.fn);
  }
  EXPECT_EQ(run({"Flatten", {x}, {{"axis", int64_t(-1)}}}).outputs[0]->dims, (Dims{6, 4}));
  EXPECT_EQ(run({"Unsqueeze", {kGrid, ints({2}, {-1, 0})}}).outputs[0]->dims, (Dims{1, 2, 3, 1}));
  EXPECT_EQ(run({"Squeeze", {floats({1, 2, 1}, {1, 2})}}).outputs[0]->dims, (Dims{2}));
  EXPECT_NE(error_of({"Squeeze", {kGrid, ints({1}, {0})}}), "");
}

TEST(Reshape, ZeroAndMinusOne) {
  EXPECT_EQ(run({"Reshape", {kGrid, ints({3}, {0, -1, 1})}}).outputs[0]->dims, (Dims{2, 3, 1}));
  EXPECT_EQ(run({"Reshape", {floats({0, 3}, {}), ints({2}, {3, 0})}, {{"allowzero", int64_t(1)}}}).outputs[0]->dims,
            (Dims{3, 0}));
  for (const std::vector<int64_t>& bad : {std::vector<int64_t>{4, 2}, {-1, -1}, {-1, 4}, {2, 3, 0}, {-2, 3}})
    EXPECT_NE(error_of({"Reshape", {kGrid, int64_constant(bad)}}), "");
  EXPECT_EQ(run({"Reshape", {kGrid, ints({1}, {-1})}, {}, {1}, {f32({6})}}).outputs[0]->dims, (Dims{6}));
  EXPECT_NE(error_of({"Reshape", {kGrid, ints({1}, {-1})}, {}, {1}}), "");
}

TEST(Transpose, DefaultReverses) {
  EXPECT_EQ(values({"Transpose", {kGrid}}), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_NE(error_of({"Transpose", {kGrid}, {{"perm", std::vector<int64_t>{0, 0}}}}), "");
}

TEST(Slice, StepsBordersAndExtremes) {
  const Constant x = floats({6}, ramp(6));
  auto slice = [&](int64_t start, int64_t end, int64_t step) {
    return values({"Slice", {x, ints({1}, {start}), ints({1}, {end}), nullptr, ints({1}, {step})}});
  };
  EXPECT_EQ(slice(1, 5, 2), (std::vector<double>{1, 3}));
  EXPECT_EQ(slice(-1, INT64_MIN, -2), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(slice(100, -3, -1), (std::vector<double>{5, 4}));
  EXPECT_EQ(slice(-100, 2, 1), (std::vector<double>{0, 1}));
  EXPECT_EQ(slice(4, 2, 1), (std::vector<double>{}));
  EXPECT_EQ(slice(0, INT64_MAX, INT64_MAX), (std::vector<double>{0}));
  EXPECT_EQ(slice(5, INT64_MIN, INT64_MIN), (std::vector<double>{5}));
  EXPECT_NE(error_of({"Slice", {x, ints({1}, {0}), ints({1}, {6}), nullptr, ints({1}, {0})}}), "");
}

TEST(Slice, RunTimeStarts) {
  auto call = [](int64_t start, int64_t end, int64_t step, int64_t size) {
    return Call{"Slice",
                {kGrid, ints({1}, {start}), ints({1}, {end}), ints({1}, {-1}), ints({1}, {step})},
                {},
                {1, 2, 3, 4},
                {f32({2, size})}};
  };
  EXPECT_EQ(values(call(1, 3, 1, 2)), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(values(call(-1, -4, -1, 3)), (std::vector<double>{2, 1, 0, 5, 4, 3}));
  EXPECT_NE(error_of(call(2, 3, 1, 2)), "");  // the declared size runs over the border
}

TEST(ConcatSplit, AreInverse) {
  const Constant wide = floats({2, 1}, {8, 9}), none = floats({2, 0}, {});
  EXPECT_EQ(values({"Concat", {kGrid, none, wide, wide}, {{"axis", int64_t(-1)}}}),
            (std::vector<double>{0, 1, 2, 8, 8, 3, 4, 5, 9, 9}));
  const Result r = run({"Split", {floats({5}, ramp(5))}, {{"num_outputs", int64_t(3)}}, {}, {}, 3});
  EXPECT_EQ(values(r.outputs[1]), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(r.outputs[2]), (std::vector<double>{4}));
  EXPECT_NE(error_of({"Split", {kGrid, ints({2}, {1, 3})}, {}, {}, {}, 2}), "");
}

TEST(Pad, Modes) {
  const Constant x = floats({3}, {1, 2, 3}), pads = ints({2}, {4, 2});
  auto pad = [&](const char* mode) { return values({"Pad", {x, pads}, {{"mode", std::string(mode)}}}); };
  EXPECT_EQ(pad("constant"), (std::vector<double>{0, 0, 0, 0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(pad("edge"), (std::vector<double>{1, 1, 1, 1, 1, 2, 3, 3, 3}));
  EXPECT_EQ(pad("reflect"), (std::vector<double>{1, 2, 3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(pad("wrap"), (std::vector<double>{3, 1, 2, 3, 1, 2, 3, 1, 2}));
  EXPECT_EQ(values({"Pad", {x, ints({2}, {-1, 1}), floats({}, {9})}}), (std::vector<double>{2, 3, 9}));
  EXPECT_EQ(values({"Pad", {kGrid, ints({2}, {1, 0}), nullptr, ints({1}, {-1})}}),
            (std::vector<double>{0, 0, 1, 2, 0, 3, 4, 5}));
  EXPECT_EQ(values({"Pad", {x, ints({2}, {1, 0})}, {}, {1}, {f32({4})}}), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_NE(error_of({"Pad", {x, ints({2}, {-2, -2})}}), "");
  EXPECT_EQ(values({"Pad", {x, ints({2}, {-2, 2})}, {{"mode", std::string("wrap")}}}), (std::vector<double>{3, 3, 3}));
  EXPECT_NE(error_of({"Pad", {x, ints({2}, {-3, 1})}, {{"mode", std::string("wrap")}}}), "") << "nothing is left";
}

TEST(ExpandTile, RepeatElements) {
  EXPECT_EQ(values({"Expand", {floats({2, 1}, {1, 2}), ints({2}, {1, 2})}}), (std::vector<double>{1, 1, 2, 2}));
  EXPECT_EQ(values({"Tile", {floats({2}, {1, 2}), ints({1}, {2})}}), (std::vector<double>{1, 2, 1, 2}));
  EXPECT_EQ(values({"Tile", {floats({2}, {1, 2}), ints({1}, {2})}, {}, {1}, {f32({4})}}),
            (std::vector<double>{1, 2, 1, 2}));
}

TEST(Gather, NegativeAndForbiddenIndexes) {
  EXPECT_EQ(values({"Gather", {kGrid, ints({2}, {-1, 0})}, {{"axis", int64_t(1)}}}), (std::vector<double>{2, 0, 5, 3}));
  EXPECT_EQ(values({"GatherElements", {kGrid, ints({1, 3}, {1, 0, -1})}}), (std::vector<double>{3, 1, 5}));
  EXPECT_EQ(values({"GatherND", {kGrid, ints({2, 1}, {2, -3})}, {{"batch_dims", int64_t(1)}}}),
            (std::vector<double>{2, 3}));
  for (int64_t bad : {2, -3}) EXPECT_NE(error_of({"Gather", {kGrid, ints({2}, {0, bad})}, {}, {1}}), "") << bad;
}

TEST(Scatter, Reductions) {
  const Constant x = floats({3}, {1, 2, 3}), at = ints({3}, {0, 0, -1}), u = floats({3}, {5, 7, 10});
  auto scatter = [&](const char* how) {
    return values({"ScatterElements", {x, at, u}, {{"reduction", std::string(how)}}});
  };
  EXPECT_EQ(scatter("none"), (std::vector<double>{7, 2, 10}));
  EXPECT_EQ(scatter("add"), (std::vector<double>{13, 2, 13}));
  EXPECT_EQ(scatter("mul"), (std::vector<double>{35, 2, 30}));
  EXPECT_EQ(scatter("max"), (std::vector<double>{7, 2, 10}));
  EXPECT_EQ(scatter("min"), (std::vector<double>{1, 2, 3}));
  const auto truth = [](std::vector<double> v) { return numbers(DType::Bool, {3}, v); };
  auto combined = [&](const char* how) {
    return values({"ScatterElements", {truth({0, 1, 1}), at, truth({1, 0, 0})}, {{"reduction", std::string(how)}}});
  };
  EXPECT_EQ(combined("add"), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(combined("max"), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(combined("mul"), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(combined("min"), (std::vector<double>{0, 1, 0}));
  const Constant words = string_constant({3}, {"a", "b", "c"});
  EXPECT_NE(error_of({"ScatterElements", {words, at, words}, {{"reduction", std::string("add")}}}), "");
  EXPECT_EQ(values({"ScatterND", {kGrid, ints({1, 1}, {1}), floats({1, 3}, {7, 8, 9})}}),
            (std::vector<double>{0, 1, 2, 7, 8, 9}));
  EXPECT_NE(error_of({"ScatterND", {kGrid, ints({1, 1}, {2}), floats({1, 3}, {7, 8, 9})}}), "");
}

TEST(TensorScatter, WrapsInCircularMode) {
  const Constant cache = floats({2, 4, 1}, ramp(8)), news = floats({2, 2, 1}, {10, 11, 12, 13});
  EXPECT_EQ(values({"TensorScatter", {cache, news, ints({2}, {0, 2})}}),
            (std::vector<double>{10, 11, 2, 3, 4, 5, 12, 13}));
  EXPECT_EQ(values({"TensorScatter", {cache, news, ints({2}, {3, 1})}, {{"mode", std::string("circular")}}}),
            (std::vector<double>{11, 1, 2, 10, 4, 12, 13, 7}));
  EXPECT_NE(error_of({"TensorScatter", {cache, news, ints({2}, {3, 0})}}), "");
}

TEST(ReverseSequence, LengthsAreChecked) {
  const Attrs attrs = {{"batch_axis", int64_t(0)}, {"time_axis", int64_t(1)}};
  EXPECT_EQ(values({"ReverseSequence", {kGrid, ints({2}, {2, 3})}, attrs}), (std::vector<double>{1, 0, 2, 5, 4, 3}));
  EXPECT_NE(error_of({"ReverseSequence", {kGrid, ints({2}, {2, 4})}, attrs}), "");
}

TEST(DepthToSpace, IsInverseOfSpaceToDepth) {
  const Constant x = floats({1, 8, 1, 2}, ramp(16));
  for (const char* mode : {"DCR", "CRD"}) {
    const Attrs attrs = {{"blocksize", int64_t(2)}, {"mode", std::string(mode)}};
    const Constant y = run({"DepthToSpace", {x}, attrs}).outputs[0];
    EXPECT_EQ(y->dims, (Dims{1, 2, 2, 4}));
    EXPECT_EQ(values({"SpaceToDepth", {y}, attrs}), values(x));
    EXPECT_EQ(values(y)[1], mode == std::string("DCR") ? 4 : 2);
  }
}

TEST(Select, SizesThatDependOnValues) {
  const Constant c = numbers(DType::Bool, {3}, {1, 0, 1});
  EXPECT_EQ(values({"Compress", {kGrid, c}, {{"axis", int64_t(1)}}}), (std::vector<double>{0, 2, 3, 5}));
  EXPECT_EQ(values({"Compress", {kGrid, c}, {}, {1}, {f32({2})}}), (std::vector<double>{0, 2}));
  for (int64_t wrong : {1, 3}) EXPECT_NE(error_of({"Compress", {kGrid, c}, {}, {1}, {f32({wrong})}}), "") << wrong;
  EXPECT_EQ(values({"NonZero", {floats({2, 2}, {0, 3, 4, 0})}}), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_NE(error_of({"NonZero", {kGrid}, {}, {0}}), "");
}

TEST(Select, CountedResultsHaveCapacityForAll) {
  const Constant c = numbers(DType::Bool, {3}, {1, 0, 1});
  const Result rows = run({"Compress", {kGrid, c}, {{"axis", int64_t(1)}}, {1}, {}, 2});
  EXPECT_EQ(values(rows.outputs[0]), (std::vector<double>{0, 2, 0, 3, 5, 0}));
  EXPECT_EQ(values(rows.outputs[1]), (std::vector<double>{2}));
  const Result where = run({"NonZero", {floats({2, 2}, {0, 3, 4, 0})}, {}, {0}, {}, 2});
  EXPECT_EQ(values(where.outputs[0]), (std::vector<double>{0, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(values(where.outputs[1]), (std::vector<double>{2}));
  // An axis of one element would broadcast: there is always room for two.
  EXPECT_EQ(run({"NonZero", {floats({1}, {3})}, {}, {0}, {}, 2}).outputs[0]->dims, (Dims{1, 2}));
  const Result distinct = run({"Unique", {floats({5}, {2, 1, 1, 3, 2})}, {}, {0}, {}, 5});
  EXPECT_EQ(values(distinct.outputs[4]), (std::vector<double>{3}));
  const std::vector<double> y = values(distinct.outputs[0]), counts = values(distinct.outputs[3]);
  EXPECT_EQ(std::vector<double>(y.begin(), y.begin() + 3), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(std::vector<double>(counts.begin(), counts.begin() + 3), (std::vector<double>{2, 2, 1}));
  EXPECT_EQ(values(distinct.outputs[2]), (std::vector<double>{1, 0, 0, 2, 1}));
}

TEST(Pack, BringsTheFirstSlicesTogether) {
  const Constant x = floats({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  auto packed = [&](int64_t count) {
    return values({"pack", {x, ints({}, {count})}, {{"axes", std::vector<int64_t>{1}}}, {0, 1}, {}, 1, "tc"});
  };
  EXPECT_EQ(packed(2), (std::vector<double>{0, 1, 2, 3, 6, 7, 8, 9, 0, 0, 0, 0}));
  EXPECT_EQ(packed(3), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(packed(0), std::vector<double>(12, 0));
}

TEST(Pack, AndBackAlongTwoAxes) {
  // [2, 3, 2] of which [1, 2, 2], [2, 1, 2] and [2, 3, 1] are there.
  const Constant x = floats({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  auto run = [&](const std::string& op, Constant of, std::vector<int64_t> axes, int64_t n, int64_t m) {
    Attrs attrs = {{"axes", axes}};
    if (op == "unpack") {
      attrs["shape"] = std::vector<int64_t>{2, 3, 2};
      attrs["least"] = std::vector<int64_t>{std::min<int64_t>(n, 1), 1};
      of = make_constant(DType::F32, {12}, of->as<float>());
    }
    return values({op, {of, ints({}, {n}), ints({}, {m})}, attrs, {0, 1, 2}, {}, 1, "tc"});
  };
  EXPECT_EQ(run("pack", x, {0, 1}, 1, 2), (std::vector<double>{0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("pack", x, {0, 1}, 2, 1), (std::vector<double>{0, 1, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("pack", x, {1, 2}, 2, 1), (std::vector<double>{0, 2, 6, 8, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(run("unpack", x, {0, 1}, 2, 1), (std::vector<double>{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}));
  EXPECT_EQ(run("unpack", x, {1, 2}, 2, 1), (std::vector<double>{0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(run("unpack", x, {0, 2}, 0, 2), std::vector<double>(12, 0));
}

TEST(Gather, FromAnAxisWithoutElements) {
  const Constant nothing = floats({0, 2}, {}), first = int64_constant({0});
  for (const char* op : {"Gather", "GatherND"}) EXPECT_NE(error_of({op, {nothing, first}}), "") << op;
  EXPECT_EQ(values({"Gather", {nothing, make_constant(DType::I64, {0}, nullptr)}}), std::vector<double>{});
}

TEST(Unique, SortedAndInOrderOfAppearance) {
  const Constant x = floats({6}, {2, 1, 1, 3, 4, 3});
  const Result sorted = run({"Unique", {x}, {}, {}, {}, 4});
  EXPECT_EQ(values(sorted.outputs[0]), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values(sorted.outputs[1]), (std::vector<double>{1, 0, 3, 4}));
  EXPECT_EQ(values(sorted.outputs[2]), (std::vector<double>{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(values(sorted.outputs[3]), (std::vector<double>{2, 1, 2, 1}));
  EXPECT_EQ(values({"Unique", {x}, {{"sorted", int64_t(0)}}}), (std::vector<double>{2, 1, 3, 4}));
  EXPECT_EQ(values({"Unique", {floats({3, 2}, {1, 0, 1, 0, 2, 3})}, {{"axis", int64_t(0)}}}),
            (std::vector<double>{1, 0, 2, 3}));
  EXPECT_EQ(values({"Unique", {x}, {}, {0}, {f32({4})}}), (std::vector<double>{1, 2, 3, 4}));
  for (int64_t wrong : {3, 5}) EXPECT_NE(error_of({"Unique", {x}, {}, {0}, {f32({wrong})}}), "") << wrong;
}

}  // namespace
}  // namespace tc::case_testing::movement_test
