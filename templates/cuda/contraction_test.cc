// Sums of products on a GPU equal the plain loops: bit for bit, on integers small enough that the order of sums does
// not matter, without races.
#include "templates/cuda/contraction.h"

#include <gtest/gtest.h>

#include "passes/loop/infer_fragment.h"
#include "templates/cuda/test_bytes.h"
#include "templates/cuda/test_exact.h"

namespace tc::contraction_test {
namespace {

using namespace tc::testing;

// A machine with few multiprocessors gets the largest tiles, one with many small tiles and shared sums. Tiles of tensor cores
// are run spread over the lanes of warps, small ones whole as well. Returns what the schedules say.
std::string expect_tiled(const TestFunction& f, const std::string& family, const ScheduleOptions& options = {},
                         const char* arch = "sm_80") {
  const std::vector<Constant> in = small_integers_for(f.fn);
  const Constant expected = evaluate(f.fn, in)[0];
  std::string description;
  for (const int multiprocessors : {1, 8, 108}) {
    CudaModel gpu = *find_arch(arch);
    gpu.multiprocessors = multiprocessors;
    Scheduled s = schedule_cuda(f.fn, f.constant, gpu, options);
    EXPECT_EQ(s.family, family) << to_text(f.fn);
    description += s.description + "\n";
    const Stmt lanes = infer_fragment(s.body);
    for (const bool spread : {false, true}) {
      const bool has_tiles = !lanes.same_as(s.body);
      if (spread ? !has_tiles : has_tiles && multiprocessors != 108) continue;
      if (spread) s.body = lanes;
      ScheduleMemory memory(s, f.fn, in);
      expect_close(memory.run()[0], expected, 0,
                   std::to_string(multiprocessors) + " multiprocessors, " + s.description + "\n" + to_text(f.fn) +
                       to_text(s.body));
    }
  }
  return description;
}
void expect_tensor_cores(const TestFunction& f, const ScheduleOptions& options = {}) {
  const std::string description = expect_tiled(f, "matmul", options);
  EXPECT_NE(description.find("on tensor cores"), std::string::npos) << description;
}

struct Conv {
  int64_t h = 8, w = 8, c = 4, oc = 16, kernel = 3, stride = 1, dilation = 1, groups = 1, pad = 0, batch = 1;
  bool channels_first = false, residual = false, constant = true;
};
// Convolution, bias, residual, ReLU, with the padding asked for in every read.
TestFunction padded_convolution(const Conv& s) {
  FunctionBuilder b;
  const int64_t reach = (s.kernel - 1) * s.dilation + 1;
  const int64_t oh = (s.h + 2 * s.pad - reach) / s.stride + 1, ow = (s.w + 2 * s.pad - reach) / s.stride + 1;
  const int64_t icg = s.c / s.groups, ocg = s.oc / s.groups;
  auto dims = [&](int64_t h, int64_t w, int64_t c) {
    return s.channels_first ? Dims{s.batch, c, h, w} : Dims{s.batch, h, w, c};
  };
  auto offset = [&](const Expr& n, const Expr& h, const Expr& w, const Expr& c) {
    return s.channels_first ? Exprs{n, c, h, w} : Exprs{n, h, w, c};
  };
  const Buffer x = b.input("x", dims(s.h, s.w, s.c)), w = b.input("w", {s.oc, icg, s.kernel, s.kernel}, s.constant);
  const Buffer bias = b.input("b", {s.oc}, true), res = s.residual ? b.input("r", dims(oh, ow, s.oc)) : nullptr;
  const size_t ch = s.channels_first ? 1 : 3, ih = s.channels_first ? 2 : 1;
  Buffer y =
      b.reduce("conv2d", Op::Add, dims(oh, ow, s.oc), {icg, s.kernel, s.kernel}, [&](const Exprs& i, const Exprs& r) {
        const Expr c = s.groups == 1 ? r[0] : floor_div(i[ch], Expr(ocg)) * Expr(icg) + r[0];
        const Expr h = i[ih] * Expr(s.stride) + r[1] * Expr(s.dilation) - Expr(s.pad);
        const Expr v = i[ih + 1] * Expr(s.stride) + r[2] * Expr(s.dilation) - Expr(s.pad);
        Expr value = load(x, offset(i[0], h, v, c));
        if (s.pad > 0)
          value =
              select(h >= Expr(0) && h < Expr(s.h) && v >= Expr(0) && v < Expr(s.w), value, make_float(DType::F32, 0));
        return value * load(w, {i[ch], r[0], r[1], r[2]});
      });
  y = b.compute("bias", dims(oh, ow, s.oc), [&, y](const Exprs& i) { return load(y, i) + load(bias, {i[ch]}); });
  if (res) y = b.compute("add", dims(oh, ow, s.oc), [&, y](const Exprs& i) { return load(y, i) + load(res, i); });
  return b.take(b.compute("relu", dims(oh, ow, s.oc),
                          [&, y](const Exprs& i) { return max(load(y, i), make_float(DType::F32, 0)); }));
}

TEST(CudaContraction, ConvolutionsWithTailsEverywhere) {
  expect_tiled(padded_convolution({.h = 7, .w = 5, .c = 19, .oc = 37, .kernel = 1}), "matmul");
  expect_tiled(padded_convolution({.h = 10, .w = 13, .c = 5, .oc = 33, .pad = 1, .residual = true}), "matmul");
  expect_tiled(padded_convolution({.h = 19, .w = 17, .c = 6, .oc = 20, .stride = 2, .dilation = 2, .pad = 2}),
               "matmul");
  expect_tiled(padded_convolution({.h = 14, .w = 14, .c = 32, .oc = 64, .pad = 1, .batch = 2, .residual = true}),
               "matmul");
  expect_tiled(padded_convolution({.h = 16, .w = 16, .c = 3, .oc = 16, .kernel = 7, .stride = 2, .pad = 3}), "matmul");
}

TEST(CudaContraction, Groups) {
  expect_tiled(padded_convolution({.h = 9, .w = 9, .c = 12, .oc = 24, .groups = 3, .pad = 1}), "matmul");
  expect_tiled(padded_convolution({.h = 9, .w = 9, .c = 16, .oc = 16, .groups = 4, .batch = 2}), "matmul");
}

TEST(CudaContraction, ChannelsFirst) {
  expect_tiled(padded_convolution({.h = 9, .w = 11, .c = 8, .oc = 21, .pad = 1, .channels_first = true}), "matmul");
  expect_tiled(
      padded_convolution({.h = 8, .w = 8, .c = 8, .oc = 16, .stride = 2, .channels_first = true, .constant = false}),
      "matmul");
}

TEST(CudaContraction, PaddedResults) {
  expect_tiled(convolution({.h = 8, .w = 8, .c = 16, .oc = 24, .kernel = 1, .residual = true, .border = 2}), "matmul");
}

TEST(CudaContraction, Products) {
  for (const bool transposed : {false, true})
    for (const bool constant : {false, true}) {
      expect_tiled(product(1, 23, 70, 31, transposed, constant), "matmul");
      expect_tiled(product(3, 17, 20, 9, transposed, constant), "matmul");
      expect_tiled(product(2, 40, 8, 5, transposed, constant), "matmul");
      expect_tiled(product(1, 150, 132, 40, transposed, constant), "matmul");
      expect_tiled(product(1, 64, 64, 2, transposed, constant), "matmul");
    }
}

TEST(CudaContraction, FewRowsOrColumns) {
  expect_tiled(product(1, 1, 1000, 300, false, true), "matrix_vector");
  expect_tiled(product(1, 1, 100, 300, true, true), "matrix_vector");
  expect_tiled(product(1, 5, 99, 130, true, true), "matrix_vector");
  expect_tiled(product(3, 2, 36, 70, false, false), "matrix_vector");
  expect_tiled(product(1, 8, 9, 1030, false, true), "matrix_vector");
  expect_tiled(product(1, 2, 100, 31, false, true), "matmul");
  expect_tiled(product(1, 1, 100, 37, true, false), "matmul");
  expect_tiled(product(1, 70, 1, 33, false, false), "matmul");
  expect_tiled(product(1, 70, 3, 33, false, false), "matmul");
  expect_tiled(product(5, 3, 9, 33, false, false), "matmul");
  expect_tiled(product(1, 9, 12, 1, false, false), "per_result");
}

TEST(CudaContraction, LongSumsAreShared) {
  for (const int64_t length : {700, 6000}) {
    const TestFunction f = product(1, 20, 30, length, false, true);
    expect_tiled(f, "matmul");
    const Scheduled s = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"));
    EXPECT_NE(s.description.find("blocks share a sum"), std::string::npos) << s.description;
    const Scheduled strict = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), {.strict_fp = true});
    EXPECT_EQ(strict.description.find("share a sum"), std::string::npos) << strict.description;
  }
}

// Groups of threads of a block share a sum where a schedule says so.
TEST(CudaContraction, GroupsOfThreadsShareASum) {
  for (const DType type : {DType::F32, DType::F16}) {
    TestFunction f = product(1, 20, 30, 700, false, true);
    if (type == DType::F16) f = of_halves(f);
    Planner listening;
    ScheduleOptions o{.planner = &listening};
    schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), o);
    std::vector<PlanLine> lines = listening.lines();
    for (auto& [name, value, at] : lines.at(0).numbers) value = name == "groups" ? 4 : name == "splits" ? 1 : value;
    Planner stated(FunctionPlan{"*", "", "", lines});
    o.planner = &stated;
    Scheduled s = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), o);
    EXPECT_NE(s.description.find("4 groups of threads share a sum"), std::string::npos) << s.description;
    const std::vector<Constant> in = small_integers_for(f.fn);
    s.body = infer_fragment(s.body);
    expect_close(ScheduleMemory(s, f.fn, in).run()[0], evaluate(f.fn, in)[0], 0, to_text(s.body));
  }
}

// The instructions that --precision allows; the values are small integers, which every type holds.
TEST(CudaContraction, Precisions) {
  const TestFunction f = padded_convolution({.h = 28, .w = 28, .c = 96, .oc = 48, .pad = 1, .residual = true});
  const std::pair<Precision, const char*> instructions[] = {
      {Precision::Tf32, "mma_tf32_k8"}, {Precision::F16, "mma_f16_k16"}, {Precision::Bf16, "mma_bf16_k16"}};
  for (const auto& [precision, mma] : instructions) {
    const Scheduled s = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), {.precision = precision});
    EXPECT_NE(to_text(s.body).find(mma), std::string::npos) << to_text(s.body);
    EXPECT_EQ(to_text(s.body).find("split_fragment_tf32"), std::string::npos);
    EXPECT_EQ(s.prologue.outputs.at(0)->dtype, precision == Precision::Tf32  ? DType::F32
                                               : precision == Precision::F16 ? DType::F16
                                                                             : DType::BF16);
    const Scheduled old = schedule_cuda(f.fn, f.constant, *find_arch("sm_75"), {.precision = precision});
    EXPECT_EQ(to_text(old.body).find("mma_") != std::string::npos, precision == Precision::F16);
    expect_tensor_cores(padded_convolution({.h = 9, .w = 7, .c = 20, .oc = 24, .pad = 1, .residual = true}),
                        {.precision = precision});
    expect_tensor_cores(product(2, 40, 24, 33, true, false), {.precision = precision});
  }
  const Scheduled plain = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"));
  EXPECT_EQ(to_text(plain.body).find("mma_"), std::string::npos);
}

// Factors are not rounded where that wins no time.
TEST(CudaContraction, LightProductsKeepTheirPrecision) {
  auto code = [](const TestFunction& f, Precision precision) {
    return to_text(schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), {.precision = precision}).body);
  };
  const TestFunction stem = padded_convolution({.h = 40, .w = 40, .c = 3, .oc = 16, .stride = 2, .pad = 1}),
                     narrow = padded_convolution({.h = 40, .w = 40, .c = 16, .oc = 32, .kernel = 1});
  for (const Precision precision : {Precision::Tf32, Precision::Bf16})
    for (const TestFunction* f : {&stem, &narrow}) {
      const std::string text = code(*f, precision);
      EXPECT_NE(text.find("split_fragment_tf32"), std::string::npos) << text;
      EXPECT_EQ(text.find("bf16"), std::string::npos) << text;
    }
  // Of one row nothing is won but bytes: rounded where they are many.
  const TestFunction small = product(1, 1, 480, 120, false, true), large = product(1, 1, 2048, 1000, false, true);
  EXPECT_EQ(code(small, Precision::Bf16).find("bf16"), std::string::npos);
  EXPECT_NE(code(large, Precision::Bf16).find("bf16"), std::string::npos);
}

// Three products of tf32 are one of single precision.
TEST(CudaContraction, PartsGiveSinglePrecision) {
  const TestFunction f = product(1, 40, 24, 33, true, false);
  std::vector<Constant> in;
  for (const Buffer& b : f.fn.inputs) {
    MutableTensor t = new_tensor(DType::F32, static_dims(b->shape));
    for (int64_t i = 0; i < num_elements(static_dims(b->shape)); i++)
      t.as<float>()[i] = float(std::sin(double(7 * i + 3)));
    in.push_back(std::make_shared<const TensorData>(std::move(t.data)));
  }
  Scheduled s = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), {.precision = Precision::Tf32});
  s.body = infer_fragment(s.body);
  ASSERT_NE(to_text(s.body).find("split_tf32_x4"), std::string::npos) << to_text(s.body);
  const Constant wanted = evaluate(f.fn, in)[0], got = ScheduleMemory(s, f.fn, in).run()[0];
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < wanted->size(); i++) {
    const double w = wanted->as_double(i), g = got->as_double(i);
    difference += (g - w) * (g - w);
    norm += w * w;
  }
  EXPECT_GT(norm, 0);
  EXPECT_LT(std::sqrt(difference / norm), 1e-6);
}

std::string loops_of(const TestFunction& f, const char* arch = "sm_80") {
  return to_text(schedule_cuda(f.fn, f.constant, *find_arch(arch)).body);
}

TEST(CudaContraction, Halves) {
  const DType f16 = DType::F16, bf16 = DType::BF16;
  expect_tensor_cores(
      of_halves(padded_convolution({.h = 6, .w = 7, .c = 16, .oc = 24, .pad = 1, .residual = true}), f16));
  expect_tensor_cores(of_halves(padded_convolution({.h = 6, .w = 7, .c = 12, .oc = 20, .pad = 1, .batch = 2}), bf16));
  expect_tensor_cores(of_halves(padded_convolution({.h = 7, .w = 5, .c = 19, .oc = 37, .kernel = 1}), f16));
  expect_tensor_cores(
      of_halves(padded_convolution({.h = 9, .w = 7, .c = 10, .oc = 12, .stride = 2, .dilation = 2, .pad = 2}), bf16));
  expect_tensor_cores(of_halves(padded_convolution({.h = 5, .w = 5, .c = 30, .oc = 24, .groups = 3, .pad = 1}), f16));
  expect_tensor_cores(
      of_halves(padded_convolution({.h = 7, .w = 5, .c = 8, .oc = 21, .pad = 1, .channels_first = true}), f16));
  for (const int64_t oc : {1, 2, 9})  // a test of the row leaves one of them
    expect_tensor_cores(
        of_halves(padded_convolution({.h = 20, .w = 20, .c = 16, .oc = oc, .pad = 1, .channels_first = true}), f16));
  for (const bool transposed : {false, true})
    for (const bool constant : {false, true}) {
      expect_tensor_cores(of_halves(product(3, 17, 20, 9, transposed, constant), constant ? f16 : bf16));
      expect_tensor_cores(of_halves(product(2, 40, 24, 40, transposed, constant), constant ? bf16 : f16));
      expect_tiled(of_halves(product(1, 33, 12, 5, transposed, constant), f16), "matmul");
    }
}

TEST(CudaContraction, HalvesShareLongSums) {
  EXPECT_NE(expect_tiled(of_halves(product(1, 20, 16, 500, false, true)), "matmul").find("groups of threads"),
            std::string::npos);
  EXPECT_NE(expect_tiled(of_halves(product(1, 20, 16, 4000, true, false)), "matmul").find("blocks share"),
            std::string::npos);
}

TEST(CudaContraction, HalvesAreCopiedEightAtATime) {
  const std::string both = loops_of(of_halves(product(2, 64, 64, 64, false, false)));
  EXPECT_NE(both.find("cp_async16"), std::string::npos) << both;
  EXPECT_EQ(both.find("cp_async4"), std::string::npos) << both;
  EXPECT_EQ(both.find("load_fragment_trans"), std::string::npos) << both;  // b lies along columns: ldmatrix turns it
  EXPECT_NE(loops_of(of_halves(product(2, 64, 64, 36, true, false))).find("cp_async8"), std::string::npos);
  EXPECT_NE(loops_of(of_halves(product(2, 64, 64, 34, true, false))).find("cp_async4"), std::string::npos);
  EXPECT_EQ(loops_of(of_halves(product(2, 64, 64, 35, true, false))).find("cp_async8"), std::string::npos);
}

TEST(CudaContraction, HalvesBeforeSm80) {
  EXPECT_NE(loops_of(of_halves(product(1, 64, 64, 64, false, true)), "sm_75").find("mma_f16_k16"), std::string::npos);
  EXPECT_EQ(loops_of(of_halves(product(1, 64, 64, 64, false, true), DType::BF16), "sm_75").find("mma_"),
            std::string::npos);
  expect_tiled(of_halves(product(1, 40, 24, 33, false, false), DType::BF16), "matmul", {}, "sm_75");
  expect_tiled(of_halves(padded_convolution({.h = 9, .w = 7, .c = 8, .oc = 12, .pad = 1}), DType::BF16), "matmul", {},
               "sm_75");
}

TEST(CudaContraction, FewRowsOfHalves) {
  for (const DType t : {DType::F16, DType::BF16}) {
    expect_tiled(of_halves(product(1, 1, 1000, 300, false, true), t), "matrix_vector");
    expect_tiled(of_halves(product(1, 8, 99, 130, true, true), t), "matrix_vector");
    expect_tiled(of_halves(product(3, 2, 40, 70, false, false), t), "matrix_vector");
  }
  const std::string weights = loops_of(of_halves(product(1, 1, 1000, 300, false, true)));
  EXPECT_NE(weights.find("load8("), std::string::npos) << weights;
}

// Threads that are stated are what the model's columns go by: 32 have two columns of eight bytes each.
TEST(CudaContraction, FewRowsByStatedThreads) {
  CudaModel gpu = *find_arch("sm_80");
  gpu.multiprocessors = 1;  // for which the widest blocks are best
  for (const int64_t threads : {32, 64, 512}) {
    const FunctionPlan plan{"*", "", "", {{"matrix_vector", {{"threads", threads}}}}};
    Planner stated = Planner::beginning_with(plan);
    ScheduleOptions options;
    options.planner = &stated;
    const TestFunction f = of_halves(product(1, 1, 40, 300, false, true), DType::F64);
    const std::vector<Constant> in = small_integers_for(f.fn);
    const Scheduled s = schedule_cuda(f.fn, f.constant, gpu, options);
    EXPECT_EQ(s.family, "matrix_vector");
    expect_close(ScheduleMemory(s, f.fn, in).run()[0], evaluate(f.fn, in)[0], 0, s.description + to_text(s.body));
  }
}

TEST(CudaContraction, Bytes) {
  const DType i8 = DType::I8, u8 = DType::U8;
  const TestFunction conv = padded_convolution({.h = 6, .w = 7, .c = 16, .oc = 24, .pad = 1, .residual = true});
  expect_tensor_cores(of_bytes(conv, {i8}, {i8}));
  expect_tensor_cores(of_bytes(conv, {u8}, {i8}));
  expect_tensor_cores(of_bytes(conv, {u8, 117}, {i8}));
  expect_tensor_cores(of_bytes(conv, {i8, -5}, {u8}));
  expect_tensor_cores(of_bytes(conv, {u8, 0, true}, {u8, 128}));
  expect_tensor_cores(
      of_bytes(padded_convolution({.h = 7, .w = 5, .c = 19, .oc = 21, .pad = 1, .batch = 2}), {u8, 3}, {i8}));
  expect_tensor_cores(of_bytes(
      padded_convolution({.h = 7, .w = 6, .c = 24, .oc = 18, .stride = 2, .groups = 3, .pad = 1}), {u8, 9}, {i8}));
  expect_tensor_cores(of_bytes(padded_convolution({.h = 6, .w = 5, .c = 8, .oc = 21, .pad = 1, .channels_first = true}),
                               {u8, 9}, {i8}));
  for (const bool transposed : {false, true}) {
    expect_tensor_cores(of_bytes(product(3, 17, 20, 9, transposed, true), {u8, 77}, {i8}));
    expect_tensor_cores(of_bytes(product(2, 40, 24, 80, transposed, false), {i8}, {i8}));
    expect_tensor_cores(of_bytes(product(1, 40, 24, 80, transposed, true), {u8, 0, true}, {i8}));
  }
  EXPECT_NE(expect_tiled(of_bytes(product(1, 20, 16, 3000, false, true), {u8, 7}, {i8}), "matmul").find("share a sum"),
            std::string::npos);
}

// Zero points that no byte can take: threads multiply.
TEST(CudaContraction, BytesWithoutTensorCores) {
  const DType i8 = DType::I8, u8 = DType::U8;
  for (const bool constant : {false, true}) {
    const std::string description =
        expect_tiled(of_bytes(product(2, 40, 24, 40, false, constant), {u8, 77}, {u8, 90}), "matmul");
    EXPECT_EQ(description.find("on tensor cores"), std::string::npos) << description;
  }
  expect_tiled(of_bytes(product(2, 40, 24, 40, true, false), {u8, 77}, {i8}), "matmul");
  expect_tiled(of_bytes(padded_convolution({.h = 6, .w = 5, .c = 8, .oc = 12, .pad = 1}), {u8, 4}, {u8, 0, true}),
               "matmul");
}

TEST(CudaContraction, FewRowsOfBytes) {
  expect_tiled(of_bytes(product(1, 1, 1000, 300, false, true), {DType::U8, 77}, {DType::I8}), "matrix_vector");
  expect_tiled(of_bytes(product(1, 5, 99, 130, true, true), {DType::U8, 0, true}, {DType::U8, 128}), "matrix_vector");
  expect_tiled(of_bytes(product(3, 2, 48, 70, false, false), {DType::I8}, {DType::I8}), "matrix_vector");
}

}  // namespace
}  // namespace tc::contraction_test
