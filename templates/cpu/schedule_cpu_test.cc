// Every template equals the plain loops: bit for bit, on integers small enough that the order of sums does not matter.
#include "ir/loop/build.h"
#include "passes/program/in_place.h"
#include "templates/cpu/test_schedule.h"

namespace tc::schedule_cpu_test {
namespace {

using namespace tc::testing;

TEST(ScheduleCpu, ConvolutionsWithTailsEverywhere) {
  expect_equal(convolution({.h = 7, .w = 5, .c = 19, .oc = 37, .kernel = 1}), "matmul");
  expect_equal(convolution({.h = 10, .w = 13, .c = 5, .oc = 33, .residual = true}), "matmul");
  expect_equal(convolution({.h = 19, .w = 17, .c = 6, .oc = 20, .stride = 2, .dilation = 2, .border = 1}), "matmul");
  expect_equal(convolution({.h = 9, .w = 9, .c = 12, .oc = 24, .groups = 3}), "matmul");
  expect_equal(convolution({.h = 8, .w = 8, .c = 16, .oc = 24, .kernel = 1, .residual = true, .border = 2}), "matmul");
}

// To few channels: vectors along the sum, where it lies side by side; else columns that fill a part of a vector.
TEST(ScheduleCpu, ConvolutionsToAFewChannels) {
  for (const char* cpu : {"generic", "x86-64-v3", "znver4"})
    for (const int64_t oc : {2, 3, 5}) {
      expect_equal(convolution({.h = 9, .w = 21, .c = 17, .oc = oc}), "dots", cpu);
      expect_equal(convolution({.h = 12, .w = 11, .c = 16, .oc = oc, .stride = 2, .dilation = 2, .border = 1}), "dots",
                   cpu);
      expect_equal(convolution({.h = 6, .w = 7, .c = 256, .oc = oc, .kernel = 1, .residual = true}), "dots", cpu);
    }
  expect_equal(convolution({.h = 9, .w = 21, .c = 2, .oc = 3, .dilation = 2, .residual = false}), "matmul");
}

TEST(ScheduleCpu, EveryCpuHasTilesThatFit) {
  for (const CpuModel& cpu : cpu_models()) {
    expect_equal(convolution({.h = 9, .w = 11, .c = 8, .oc = 40}), "matmul", std::string(cpu.name).c_str());
    expect_equal(convolution({.h = 12, .w = 9, .c = 20, .oc = 20, .groups = 20}), "window",
                 std::string(cpu.name).c_str());
  }
}

TEST(ScheduleCpu, ManyChunksCoverAllRows) {
  expect_equal(convolution({.h = 33, .w = 31, .c = 8, .oc = 24, .kernel = 1}), "matmul");
  expect_equal(convolution({.h = 25, .w = 30, .c = 8, .oc = 24}), "matmul");
}

// Rows that no cache holds are cut into blocks that one does hold, each with all panels; of a batch, image by image.
TEST(ScheduleCpu, RowsAreCutForTheCache) {
  const auto tail = [](const TestFunction& f) {
    const std::string s = schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v3")).description;
    return s.substr(s.rfind(';') + 1);
  };
  const ConvShape pixels = {.h = 80, .w = 80, .c = 128, .oc = 64, .kernel = 1, .images = 2},
                  windows = {.h = 29, .w = 29, .c = 128, .oc = 128, .stride = 2, .images = 16},
                  large = {.h = 157, .w = 157, .c = 48, .oc = 48, .stride = 2, .images = 2},
                  few = {.h = 7, .w = 7, .c = 512, .oc = 512, .kernel = 1};
  EXPECT_EQ(tail(convolution(pixels)), " rows in 27 blocks, each with all panels");
  EXPECT_EQ(tail(convolution(windows)), " image by image with all panels");
  EXPECT_EQ(tail(convolution(large)), " rows in 26 blocks, each with all panels");
  EXPECT_EQ(tail(convolution(few)), " the next panel is fetched ahead");
}

// Where weights are few beside rows, threads share the rows; where they are many, the panels.
TEST(ScheduleCpu, ThreadsShareRowsWhereWeightsAreFew) {
  const auto tail = [](const ConvShape& s, const char* cpu) {
    const TestFunction f = convolution(s);
    const std::string d = schedule_cpu(f.fn, f.constant, *find_cpu(cpu)).description;
    return d.substr(d.rfind(';') + 1);
  };
  const ConvShape many = {.h = 56, .w = 56, .c = 64, .oc = 256, .kernel = 1},
                  odd = {.h = 13, .w = 13, .c = 64, .oc = 128, .kernel = 3, .stride = 3},
                  few = {.h = 14, .w = 14, .c = 512, .oc = 256, .kernel = 1};
  for (const char* cpu : {"x86-64-v3", "znver4"}) {
    EXPECT_EQ(tail(many, cpu), " rows in 2 blocks, each with all panels") << cpu;
    for (const ConvShape& s : {few, odd}) EXPECT_EQ(tail(s, cpu).find("blocks"), std::string::npos) << cpu;
  }
  expect_equal(convolution({.h = 56, .w = 9, .c = 8, .oc = 96, .kernel = 1}), "matmul");
  expect_equal(convolution({.h = 11, .w = 50, .c = 8, .oc = 96, .kernel = 1, .residual = true}), "matmul");
  EXPECT_EQ(tail({.h = 31, .w = 160, .c = 16, .oc = 128, .stride = 2}, "znver4"),
            " rows in 15 blocks, each with all panels");
}

// The same, wherever the blocks end.
TEST(ScheduleCpu, BlocksOfRowsCoverAllRows) {
  CpuModel cpu = *find_cpu("x86-64-v3");
  cpu.l2_bytes = 16 << 10;
  cpu.l3_bytes = 64 << 10;
  for (const ConvShape& shape : {ConvShape{.h = 22, .w = 21, .c = 24, .oc = 40, .kernel = 1, .residual = true},
                                 ConvShape{.h = 39, .w = 23, .c = 8, .oc = 40, .stride = 2, .images = 3},
                                 ConvShape{.h = 21, .w = 21, .c = 8, .oc = 72, .stride = 2, .images = 4},
                                 ConvShape{.h = 39, .w = 23, .c = 16, .oc = 80, .stride = 2, .groups = 2}}) {
    const TestFunction f = convolution(shape);
    std::vector<Constant> in;
    for (size_t i = 0; i < f.fn.inputs.size(); i++)
      in.push_back(small_integers(static_dims(f.fn.inputs[i]->shape), uint32_t(i + 1)));
    const Scheduled s = expect_equal_on(cpu, f, "matmul", in, evaluate(f.fn, in)[0]);
    EXPECT_NE(s.description.find(" with all panels"), std::string::npos) << s.description;
  }
}

TEST(ScheduleCpu, DepthwiseConvolutions) {
  expect_equal(convolution({.h = 12, .w = 11, .c = 21, .oc = 21, .groups = 21}), "window");
  expect_equal(convolution({.h = 12, .w = 15, .c = 32, .oc = 32, .stride = 2, .groups = 32, .border = 1}), "window");
}

TEST(ScheduleCpu, Products) {
  expect_equal(product(1, 23, 70, 31, false, true), "matmul");
  expect_equal(product(1, 1, 100, 37, false, true), "matrix_vector");
  expect_equal(product(3, 17, 20, 9, false, false), "matmul");
  expect_equal(product(3, 17, 45, 9, true, false), "matmul");
  expect_equal(product(2, 5, 40, 8, true, true), "matmul");
}

// Neither factor is known, and both are read along the sum.
TEST(ScheduleCpu, ProductsOfRows) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3", "generic"}) {
    expect_equal(product(1, 1, 40, 50, true, false), "row_products", cpu);
    expect_equal(product(3, 1, 19, 64, true, false), "row_products", cpu);
    expect_equal(product(1, 3, 31, 70, true, false), "row_products", cpu);
    expect_equal(product(2, 7, 37, 100, true, false), "row_products", cpu);
  }
}

// Distances of all rows to all others, known or not.
TEST(ScheduleCpu, DistancesOfRows) {
  const auto distances = [](const Dims& x, const Dims& w, bool known) {
    FunctionBuilder b;
    const Buffer p = b.input("x", x), q = b.input("w", w, known);
    const Buffer y = b.reduce("distance", Op::Add, {x[0], w[0]}, {x[1]}, [&](const Exprs& i, const Exprs& r) {
      const Expr d = load(p, {i[0], r[0]}) - load(q, {i[1], r[0]});
      return d * d;
    });
    return b.take(
        b.compute("half", {x[0], w[0]}, [&](const Exprs& i) { return load(y, i) * make_float(DType::F32, 0.5); }));
  };
  for (const char* cpu : {"x86-64-v4", "generic"})
    for (const bool known : {false, true}) {
      expect_equal(distances({7, 33}, {50, 33}, known), "row_products", cpu);
      expect_equal(distances({90, 64}, {19, 64}, known), "row_products", cpu);
    }
}

// Weights that come with every run: panels of them are turned, or they are packed in front of the loops.
TEST(ScheduleCpu, ConvolutionsByOperands) {
  const auto expect_by_operand = [](const ConvShape& s, const char* family, const char* described) {
    for (const char* cpu : {"x86-64-v4", "x86-64-v3", "generic"}) {
      TestFunction f = convolution(s);
      f.constant[1] = false;
      expect_equal(f, family, cpu);
      const std::string text = schedule_cpu(f.fn, f.constant, *find_cpu(cpu)).description;
      EXPECT_NE(text.find(described), std::string::npos) << cpu << ": " << text;
    }
  };
  expect_by_operand({.h = 9, .w = 21, .c = 17, .oc = 40}, "matmul", "copied to panels first");
  expect_by_operand({.h = 12, .w = 11, .c = 16, .oc = 24, .stride = 2, .dilation = 2, .residual = true, .border = 1},
                    "matmul", "copied to panels first");
  expect_by_operand({.h = 12, .w = 11, .c = 24, .oc = 24, .groups = 24}, "window", "packed in every run");
  expect_by_operand({.h = 9, .w = 9, .c = 12, .oc = 48, .groups = 3, .images = 2}, "matmul", "copied to panels first");
}

// With more rows the other one is turned, tile by tile, in front of each panel.
TEST(ScheduleCpu, ProductsWithTurnedPanels) {
  for (const char* cpu : {"x86-64-v4", "x86-64-v3", "generic"})
    for (const int64_t columns : {16, 17, 50, 112, 200})
      for (const int64_t terms : {16, 40, 67}) {
        expect_equal(product(1, 30, columns, terms, true, false), "matmul", cpu);
        expect_equal(product(2, 9, columns, terms, true, false), "matmul", cpu);
      }
  expect_equal(product(1, 40, 2000, 30, true, false), "matmul");
}

TEST(ScheduleCpu, Pools) {
  expect_equal(pool(Op::Max, 11, 13, 20, 3, 2), "window");
  expect_equal(pool(Op::Add, 7, 7, 70, 7, 1), "window");
}

TEST(ScheduleCpu, Rows) {
  expect_equal(row_statistics(7, 45), "rows");
  expect_equal(row_statistics(40, 64), "rows");
  expect_equal(row_statistics(3, 320), "rows");
}

TEST(ScheduleCpu, ElementwiseTails) {
  for (const int64_t n : {7, 100, 20000, 40001}) {
    FunctionBuilder b;
    const Buffer x = b.input("x", {n}), y = b.input("y", {n});
    expect_equal(b.take(b.compute("add", {n}, [&](const Exprs& i) { return load(x, i) + load(y, i); })), "elementwise");
  }
}

// A condition that is a tensor of bool: vectors of it are masks.
TEST(ScheduleCpu, MasksFromMemory) {
  for (const int64_t n : {7, 100, 20000}) {
    const Buffer m = make_buffer("m", DType::Bool, {n}), x = make_buffer("x", DType::F32, {n});
    Stage s;
    s.axes = {{make_var("i"), Dim(n)}};
    const Exprs i = {Expr(s.axes[0].var)};
    s.values = {select(load(m, i), load(x, i), make_float(DType::F32, -1))};
    s.outputs = {make_buffer("where", DType::F32, {n})};
    MutableTensor mask = new_tensor(DType::Bool, {n});
    for (int64_t k = 0; k < n; k++) mask.as<uint8_t>()[k] = k % 3 == 0;
    const TestFunction f{{{m, x}, {s}, s.outputs}, {false, false}};
    expect_equal(f, "elementwise", "generic", {std::make_shared<const TensorData>(std::move(mask.data))});
    const std::string description = schedule_cpu(f.fn, f.constant, *find_cpu("generic")).description;
    EXPECT_EQ(description.find("vectors") != std::string::npos, n >= 8) << description;
  }
}

// Of logic alone, each truth is asked for whatever the others are, so that compilers make vectors of bytes.
TEST(ScheduleCpu, LogicOfTruthsInMemory) {
  for (const int64_t n : {1, 7, 100, 20000}) {
    const Buffer x = make_buffer("x", DType::Bool, {n}), y = make_buffer("y", DType::Bool, {n});
    Stage s;
    s.axes = {{make_var("i"), Dim(n)}};
    const Exprs i = {Expr(s.axes[0].var)};
    const Expr both = apply(Op::And, {load(x, i), load(y, i)});
    s.values = {apply(Op::Or, {apply(Op::Not, {both}), apply(Op::Ne, {both, load(y, i)})})};
    s.outputs = {make_buffer("or", DType::Bool, {n})};
    std::vector<Constant> given;
    for (const int64_t period : {3, 5}) {
      MutableTensor truths = new_tensor(DType::Bool, {n});
      for (int64_t k = 0; k < n; k++) truths.as<uint8_t>()[k] = k % period < 2;
      given.push_back(std::make_shared<const TensorData>(std::move(truths.data)));
    }
    const TestFunction f{{{x, y}, {s}, s.outputs}, {false, false}};
    expect_equal(f, "elementwise", "generic", given);
    const Scheduled kernel = schedule_cpu(f.fn, f.constant, *find_cpu("generic"));
    const std::string text = to_text(kernel.body);
    EXPECT_NE(text.find("let x_v = x["), std::string::npos) << text;
    EXPECT_EQ(text.find("let test ="), text.rfind("let test =")) << text;  // both stand for one
    EXPECT_EQ(kernel.description.find("vectors"), std::string::npos) << kernel.description;
  }
}

// Winograd divides weights by 6 and 24: other roundings, so multiples of 24 and 4 keep the transforms exact.
TEST(ScheduleCpu, Winograd) {
  const ConvShape shapes[] = {{.h = 14, .w = 14, .c = 32, .oc = 48, .residual = true},  // tiles fit
                              {.h = 16, .w = 19, .c = 48, .oc = 32, .border = 1},       // cut on both sides
                              {.h = 9, .w = 10, .c = 128, .oc = 128},                   // 2 x 2
                              {.h = 16, .w = 19, .c = 48, .oc = 32, .border = 1, .images = 3}};
  for (const ConvShape& shape : shapes) {
    const TestFunction f = convolution(shape);
    std::vector<Constant> in;
    for (size_t i = 0; i < f.fn.inputs.size(); i++)
      in.push_back(small_integers(static_dims(f.fn.inputs[i]->shape), uint32_t(i + 1), DType::F32, i == 1 ? 576 : 1));
    expect_equal(f, "winograd", "x86-64-v4", in);
    EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("generic"), {.strict_fp = true}).family, "matmul");
  }
}

// The fewer multiplications, the more weights: with the bandwidth of one core of a server of Intel's, 7 x 7 results of 512 channels
// take less time directly, and 14 x 14 of 256 by 2 x 2; a Zen has twice as much for half as many multiplications.
TEST(ScheduleCpu, WinogradWhereItPays) {
  const auto description = [](const ConvShape& shape, const char* cpu) {
    const TestFunction f = convolution(shape);
    return schedule_cpu(f.fn, f.constant, *find_cpu(cpu)).description.substr(0, 15);
  };
  const ConvShape small = {.h = 9, .w = 9, .c = 512, .oc = 512}, middle = {.h = 16, .w = 16, .c = 256, .oc = 256},
                  large = {.h = 58, .w = 58, .c = 64, .oc = 64};
  EXPECT_EQ(description(small, "znver4"), "Winograd, 2 x 2");
  EXPECT_EQ(description(middle, "znver4"), "Winograd, 4 x 4");
  EXPECT_EQ(description(small, "sapphirerapids"), "7 rows by 32 co");
  EXPECT_EQ(description(middle, "sapphirerapids"), "Winograd, 2 x 2");
  EXPECT_EQ(description(large, "sapphirerapids"), "Winograd, 4 x 4");
}

// As many images at a time as a cache holds the tiles of; one where a run says how many there are.
TEST(ScheduleCpu, WinogradOfImages) {
  const auto scheduled = [](const ConvShape& shape, std::vector<int> open_axes) {
    const TestFunction f = convolution(shape);
    return schedule_cpu(f.fn, f.constant, *find_cpu("znver4"), {.open_axes = std::move(open_axes)});
  };
  const auto tail = [](const std::string& s) { return s.substr(s.rfind(';') + 1); };
  const ConvShape small = {.h = 16, .w = 16, .c = 64, .oc = 64, .images = 8},
                  large = {.h = 58, .w = 58, .c = 64, .oc = 64, .images = 6};
  EXPECT_EQ(scheduled(small, {}).description,
            "Winograd, 4 x 4 results from 6 x 6 inputs; products of 14 tiles by 32 channels in registers");
  EXPECT_EQ(tail(scheduled(large, {}).description), " 2 images at a time");
  EXPECT_EQ(tail(scheduled(small, {0}).description), " an image at a time");
  EXPECT_EQ(scheduled(small, {1}).family, "matmul");  // the rows of an image end early
  EXPECT_EQ(scheduled(small, {0, 2}).family, "matmul");
}

TEST(ScheduleCpu, PadsCopyTheirInterior) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {2, 5, 6, 3});
  const Buffer y = b.compute("pad", {2, 8, 7, 3}, [&](const Exprs& i) {
    const Expr inside = i[1] >= Expr(1) && i[1] < Expr(6) && i[2] >= Expr(1);
    return select(inside, load(x, {i[0], i[1] - Expr(1), i[2] - Expr(1), i[3]}), make_float(DType::F32, -1));
  });
  expect_equal(b.take(y), "elementwise");
}

TEST(ScheduleCpu, BroadcastsAndMoves) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {4, 33, 20}), s = b.input("s", {20});
  const Buffer y = b.compute("add", {4, 33, 20}, [&](const Exprs& i) { return load(x, i) + load(s, {i[2]}); });
  expect_equal(b.take(b.compute("transpose", {33, 4, 20},
                                [&](const Exprs& i) {
                                  return load(y, {i[1], i[0], i[2]});
                                })),
               "elementwise");
  FunctionBuilder t;
  const Buffer a = t.input("a", {17, 29});
  expect_equal(t.take(t.compute("transpose", {29, 17},
                                [&](const Exprs& i) {
                                  return load(a, {i[1], i[0]});
                                })),
               "transpose");
}

TEST(ScheduleCpu, StageByStage) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {20, 30}), w = b.input("w", {30, 40}, true), v = b.input("v", {40, 24}, true);
  auto times = [](const Buffer& l, const Buffer& r) {
    return [l, r](const Exprs& i, const Exprs& k) { return load(l, {i[0], k[0]}) * load(r, {k[0], i[1]}); };
  };
  const Buffer h = b.reduce("hidden", Op::Add, {20, 40}, {30}, times(x, w));
  const Buffer y = b.reduce("y", Op::Add, {20, 24}, {40}, times(h, v));
  expect_equal(b.take(b.compute("sum", {20, 24},
                                [&](const Exprs& i) {
                                  return load(y, i) + load(h, {i[0], i[1]});
                                })),
               "stages");
  // An operand that two stages read has one view.
  FunctionBuilder c;
  const Buffer a = c.input("a", {9, 12});
  const Buffer r = c.reduce("rows", Op::Add, {9}, {12}, [&](const Exprs& i, const Exprs& k) {
    return load(a, {i[0], k[0]});
  });
  const Buffer q = c.reduce("columns", Op::Add, {12}, {9}, [&](const Exprs& i, const Exprs& k) {
    return load(a, {k[0], i[0]});
  });
  const TestFunction f =
      c.take(c.compute("y", {9, 12}, [&](const Exprs& i) { return load(r, {i[0]}) * load(q, {i[1]}); }));
  expect_equal(f, "stages");
  EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("generic")).views.size(), 2u);
}

// What no template knows: the loops of the definition, rows shared among threads as soon as that is worth it.
TEST(ScheduleCpu, PlainLoopsAreShared) {
  for (const int64_t columns : {16, 4096}) {
    const Buffer x = make_buffer("x", DType::F32, {12, columns});
    Stage s;
    s.kind = Stage::Kind::Reduce;
    s.axes = {{make_var("i"), Dim(12)}};
    s.raxes = {{make_var("k"), Dim(columns)}};
    s.values = {load(x, {s.axes[0].var, s.raxes[0].var}), Expr(s.raxes[0].var)};
    s.combiner.lhs = {make_var("a", DType::F32), make_var("m")};
    s.combiner.rhs = {make_var("b", DType::F32), make_var("n")};
    const Expr first = Expr(s.combiner.lhs[0]) >= Expr(s.combiner.rhs[0]);
    for (size_t k = 0; k < 2; k++)
      s.combiner.result.push_back(select(first, Expr(s.combiner.lhs[k]), Expr(s.combiner.rhs[k])));
    s.init = {lowest(DType::F32), Expr(0)};
    s.outputs = {make_buffer("top", DType::F32, {12}), make_buffer("where", DType::I64, {12})};
    const TensorFn fn{{x}, {s}, s.outputs};
    Planner planner;
    const Scheduled made = schedule_cpu(fn, {false}, *find_cpu("generic"), {.planner = &planner});
    EXPECT_EQ(made.family, "naive");
    const std::vector<std::string> serial = {"naive()"}, shared = {"naive()", "parallel(i)"};
    EXPECT_EQ(planner.texts(), columns == 16 ? serial : shared);
  }
}

TEST(ScheduleCpu, StrictKeepsTheOrderOfSums) {
  const TestFunction f = row_statistics(4, 64);
  EXPECT_EQ(schedule_cpu(f.fn, f.constant, *find_cpu("generic"), {.strict_fp = true}).family, "stages");
}

// A single row: what is added to it is read as it is written, so that the result can lie there; a bias that is known is not.
TEST(ScheduleCpu, ResidualsOfOneRowCanBeReplaced) {
  for (const bool known : {false, true}) {
    FunctionBuilder b;
    const Buffer x = b.input("a", {1, 40}), w = b.input("b", {40, 64}, true), r = b.input("r", {1, 64}, known);
    const Buffer y = b.reduce("matmul", Op::Add, {1, 64}, {40}, [&](const Exprs& i, const Exprs& k) {
      return load(x, {i[0], k[0]}) * load(w, {k[0], i[1]});
    });
    const TestFunction f = b.take(b.compute("sum", {1, 64}, [&](const Exprs& i) { return load(y, i) + load(r, i); }));
    expect_equal(f, "matrix_vector");
    const Scheduled s = schedule_cpu(f.fn, f.constant, *find_cpu("x86-64-v3"));
    const auto at = std::find(s.input_index.begin(), s.input_index.end(), 2);
    ASSERT_NE(at, s.input_index.end());
    EXPECT_EQ(may_be_in_place(s, size_t(at - s.input_index.begin())), !known);
  }
}

}  // namespace
}  // namespace tc::schedule_cpu_test
