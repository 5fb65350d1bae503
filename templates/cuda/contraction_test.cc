// Sums of products on a GPU equal the plain loops: bit for bit, on integers small enough that the order of sums does
// not matter, without races.
#include "templates/cuda/contraction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/interpreter.h"
#include "ir/loop/print.h"
#include "templates/cpu/test_functions.h"
#include "templates/cuda/schedule_cuda.h"

namespace tc {
namespace {

using namespace tc::testing;

Constant small_integers(const Dims& dims, uint32_t seed) {
  MutableTensor t = new_tensor(DType::F32, dims);
  for (int64_t i = 0; i < num_elements(dims); i++) {
    seed = seed * 1664525u + 1013904223u;
    t.as<float>()[i] = float(int(seed >> 24) % 7 - 3);
  }
  return std::make_shared<const TensorData>(std::move(t.data));
}

std::vector<float> run_scheduled(const Scheduled& s, const TensorFn& fn, const std::vector<Constant>& in) {
  std::vector<Constant> packed_from;
  for (const Buffer& b : s.prologue.inputs)
    packed_from.push_back(in[size_t(std::find(fn.inputs.begin(), fn.inputs.end(), b) - fn.inputs.begin())]);
  const std::vector<Constant> packed =
      s.prologue.stages.empty() ? std::vector<Constant>() : evaluate(s.prologue, packed_from);
  std::vector<float> out(size_t(num_elements(static_dims(fn.outputs[0]->shape))), -77.0f);
  auto memory = [&](const Buffer& b) -> uint8_t* {
    for (size_t i = 0; i < fn.inputs.size(); i++)
      if (fn.inputs[i] == b) return const_cast<uint8_t*>(in[i]->bytes.get());
    for (size_t i = 0; i < packed.size(); i++)
      if (s.prologue.outputs[i] == b) return const_cast<uint8_t*>(packed[i]->bytes.get());
    return reinterpret_cast<uint8_t*>(out.data());
  };
  std::vector<Binding> bindings;
  for (const auto& [view, of] : s.views) bindings.push_back({view, memory(of)});
  for (const Buffer& b : s.inputs) bindings.push_back({b, memory(b)});
  for (const Buffer& b : s.outputs) bindings.push_back({b, memory(b)});
  RunOptions o;
  o.check_races = true;
  run(s.body, bindings, o);
  return out;
}

// A machine with few multiprocessors gets the largest tiles, one with many small tiles and shared sums.
void expect_equal(const TestFunction& f, const std::string& family) {
  std::vector<Constant> in;
  for (size_t i = 0; i < f.fn.inputs.size(); i++)
    in.push_back(small_integers(static_dims(f.fn.inputs[i]->shape), uint32_t(i + 1)));
  const Constant expected = evaluate(f.fn, in)[0];
  for (const int multiprocessors : {1, 8, 108}) {
    CudaModel gpu = *find_arch("sm_80");
    gpu.multiprocessors = multiprocessors;
    const Scheduled s = schedule_cuda(f.fn, f.constant, gpu);
    EXPECT_EQ(s.family, family) << to_text(f.fn);
    const std::vector<float> got = run_scheduled(s, f.fn, in);
    ASSERT_EQ(std::memcmp(got.data(), expected->bytes.get(), expected->num_bytes), 0)
        << multiprocessors << " multiprocessors, " << s.words << "\n"
        << to_text(f.fn) << to_text(s.body);
  }
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
  auto place = [&](const Expr& n, const Expr& h, const Expr& w, const Expr& c) {
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
        Expr value = load(x, place(i[0], h, v, c));
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
  expect_equal(padded_convolution({.h = 7, .w = 5, .c = 19, .oc = 37, .kernel = 1}), "matmul");
  expect_equal(padded_convolution({.h = 10, .w = 13, .c = 5, .oc = 33, .pad = 1, .residual = true}), "matmul");
  expect_equal(padded_convolution({.h = 19, .w = 17, .c = 6, .oc = 20, .stride = 2, .dilation = 2, .pad = 2}),
               "matmul");
  expect_equal(padded_convolution({.h = 14, .w = 14, .c = 32, .oc = 64, .pad = 1, .batch = 2, .residual = true}),
               "matmul");
  expect_equal(padded_convolution({.h = 16, .w = 16, .c = 3, .oc = 16, .kernel = 7, .stride = 2, .pad = 3}), "matmul");
}

TEST(CudaContraction, Groups) {
  expect_equal(padded_convolution({.h = 9, .w = 9, .c = 12, .oc = 24, .groups = 3, .pad = 1}), "matmul");
  expect_equal(padded_convolution({.h = 9, .w = 9, .c = 16, .oc = 16, .groups = 4, .batch = 2}), "matmul");
}

TEST(CudaContraction, ChannelsFirst) {
  expect_equal(padded_convolution({.h = 9, .w = 11, .c = 8, .oc = 21, .pad = 1, .channels_first = true}), "matmul");
  expect_equal(
      padded_convolution({.h = 8, .w = 8, .c = 8, .oc = 16, .stride = 2, .channels_first = true, .constant = false}),
      "matmul");
}

TEST(CudaContraction, PaddedResults) {
  expect_equal(convolution({.h = 8, .w = 8, .c = 16, .oc = 24, .kernel = 1, .residual = true, .border = 2}), "matmul");
}

TEST(CudaContraction, Products) {
  for (const bool transposed : {false, true})
    for (const bool constant : {false, true}) {
      expect_equal(product(1, 23, 70, 31, transposed, constant), "matmul");
      expect_equal(product(3, 17, 20, 9, transposed, constant), "matmul");
      expect_equal(product(2, 40, 8, 5, transposed, constant), "matmul");
      expect_equal(product(1, 150, 132, 40, transposed, constant), "matmul");
      expect_equal(product(1, 64, 64, 2, transposed, constant), "matmul");
    }
}

TEST(CudaContraction, FewRowsOrColumns) {
  expect_equal(product(1, 1, 1000, 300, false, true), "matrix_vector");
  expect_equal(product(1, 1, 100, 300, true, true), "matrix_vector");
  expect_equal(product(1, 5, 99, 130, true, true), "matrix_vector");
  expect_equal(product(3, 2, 36, 70, false, false), "matrix_vector");
  expect_equal(product(1, 8, 9, 1030, false, true), "matrix_vector");
  expect_equal(product(1, 2, 100, 31, false, true), "matmul");
  expect_equal(product(1, 1, 100, 37, true, false), "matmul");
  expect_equal(product(1, 70, 1, 33, false, false), "matmul");
  expect_equal(product(1, 70, 3, 33, false, false), "matmul");
  expect_equal(product(5, 3, 9, 33, false, false), "matmul");
  expect_equal(product(1, 9, 12, 1, false, false), "per_result");
}

TEST(CudaContraction, LongSumsAreShared) {
  const std::pair<int64_t, const char*> lengths[] = {{700, "groups of threads share a sum"}, {6000, "blocks share a sum"}};
  for (const auto& [length, words] : lengths) {
    const TestFunction f = product(1, 20, 30, length, false, true);
    expect_equal(f, "matmul");
    const Scheduled s = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"));
    EXPECT_NE(s.words.find(words), std::string::npos) << s.words;
    const Scheduled strict = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), {.strict_fp = true});
    EXPECT_EQ(strict.words.find("share a sum"), std::string::npos) << strict.words;
  }
}

// What the interpreter cannot run is run as text by the package tests; here, that the right instructions are there.
TEST(CudaContraction, TensorCores) {
  const TestFunction f = padded_convolution({.h = 14, .w = 14, .c = 32, .oc = 64, .pad = 1});
  const std::pair<Precision, const char*> instructions[] = {
      {Precision::Tf32, "mma_tf32_k8"}, {Precision::F16, "mma_f16_k16"}, {Precision::Bf16, "mma_bf16_k16"}};
  for (const auto& [precision, mma] : instructions) {
    const Scheduled s = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"), {.precision = precision});
    EXPECT_NE(to_text(s.body).find(mma), std::string::npos) << to_text(s.body);
    EXPECT_EQ(s.prologue.outputs.at(0)->dtype, precision == Precision::Tf32  ? DType::F32
                                               : precision == Precision::F16 ? DType::F16
                                                                             : DType::BF16);
    const Scheduled old = schedule_cuda(f.fn, f.constant, *find_arch("sm_75"), {.precision = precision});
    EXPECT_EQ(to_text(old.body).find("mma_") != std::string::npos, precision == Precision::F16);
  }
  const Scheduled plain = schedule_cuda(f.fn, f.constant, *find_arch("sm_80"));
  EXPECT_EQ(to_text(plain.body).find("mma_"), std::string::npos);
}

}  // namespace
}  // namespace tc
