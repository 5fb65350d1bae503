// The scalar support text, compiled as C++ beside the compiler's own definitions of the same conversions.
#include "templates/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "support/error.h"
#include "templates/text/tc_rt.h"
#include "templates/text/tc_scalar.h"
#include "templates/text/tc_types.h"

namespace tc::text_test {
namespace {

struct Narrow {
  DType type;
  int codes;
  float (*decode)(uint32_t);
  uint32_t (*encode)(float, int saturate);
};

#define NARROW(T, STORED, CODES, NAME, ...)                                                                    \
  {                                                                                                            \
    DType::T, CODES, [](uint32_t h) { return tc_f32_from_##NAME(STORED(h)); },                                 \
        [](float x, [[maybe_unused]] int saturate) -> uint32_t { return tc_##NAME##_from_f32(x __VA_ARGS__); } \
  }
const Narrow kNarrow[] = {
    NARROW(F16, uint16_t, 65536, f16),
    NARROW(BF16, uint16_t, 65536, bf16),
    NARROW(F8E4M3FN, uint8_t, 256, f8e4m3fn, , saturate),
    NARROW(F8E4M3FNUZ, uint8_t, 256, f8e4m3fnuz, , saturate),
    NARROW(F8E5M2, uint8_t, 256, f8e5m2, , saturate),
    NARROW(F8E5M2FNUZ, uint8_t, 256, f8e5m2fnuz, , saturate),
    NARROW(F4E2M1, uint8_t, 16, f4e2m1),
    NARROW(F8E8M0, uint8_t, 256, f8e8m0),
};

bool same(float a, double b) {
  return std::isnan(b) ? std::isnan(a) : double(a) == b && std::signbit(a) == std::signbit(b);
}

TEST(TextTypes, EveryCodeDecodes) {
  for (const Narrow& n : kNarrow)
    for (int code = 0; code < n.codes; code++) {
      const double expected = narrow_float_to_double(n.type, uint16_t(code));
      ASSERT_TRUE(same(n.decode(uint32_t(code)), expected))
          << info(n.type).name << " " << code << ": " << n.decode(uint32_t(code));
    }
}

// Every value of the type, the middle between it and the next, and the floats on either side of both.
TEST(TextTypes, EncodesLikeTheCompiler) {
  for (const Narrow& n : kNarrow) {
    std::vector<float> points = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, 3.4e38f, -3.4e38f};
    for (int code = 0; code < n.codes; code++) {
      const float x = n.decode(uint32_t(code)), next = n.decode(uint32_t((code + 1) % n.codes));
      for (float y : {x, x / 2 + next / 2, x * 1.25f, x * 2})
        for (float z : {y, std::nextafter(y, INFINITY), std::nextafter(y, -INFINITY)}) points.push_back(z);
    }
    for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 65521)
      points.push_back(tc_float_from_bits(uint32_t(bits)));
    for (float x : points)
      for (int saturate : {0, 1})
        ASSERT_EQ(n.encode(x, saturate), double_to_narrow_float(n.type, double(x), saturate != 0))
            << info(n.type).name << " of " << x << " saturate " << saturate;
  }
}

TEST(TextTypes, DoublesRoundOnce) {
  for (const Narrow& n : kNarrow)
    for (int code = 0; code + 1 < n.codes; code++) {
      const double middle =
          (narrow_float_to_double(n.type, uint16_t(code)) + narrow_float_to_double(n.type, uint16_t(code + 1))) / 2;
      for (double x : {middle, std::nextafter(middle, 1e300), std::nextafter(middle, -1e300)})
        ASSERT_EQ(n.encode(tc_f32_to_odd(x), 1), double_to_narrow_float(n.type, x)) << info(n.type).name << " of " << x;
    }
}

TEST(TextScalar, IntegersOfEightBits) {
  for (int a = -128; a < 128; a++)
    for (int b = -128; b < 128; b++) {
      const auto x = int8_t(a), y = int8_t(b);
      ASSERT_EQ(tc_add_i8(x, y), int8_t(a + b));
      ASSERT_EQ(tc_mul_i8(x, y), int8_t(a * b));
      ASSERT_EQ(tc_div_i8(x, y), b == 0 ? 0 : int8_t(a / b));
      ASSERT_EQ(tc_mod_i8(x, y), b == 0 ? 0 : int8_t(a % b));
      ASSERT_EQ(tc_floor_div_i8(x, y), b == 0 ? 0 : int8_t(int(std::floor(double(a) / b)))) << a << " " << b;
      ASSERT_EQ(tc_floor_mod_i8(x, y), b == 0 ? 0 : int8_t(a - b * int(std::floor(double(a) / b))));
      ASSERT_EQ(tc_shl_i8(x, y), b < 0 || b > 7 ? 0 : int8_t(a * (1 << b)));
      if (b >= 0) {
        int power = 1;
        for (int i = 0; i < b; i++) power = int8_t(power * a);
        ASSERT_EQ(tc_pow_i8(x, y), power) << a << " " << b;
      }
    }
}

TEST(TextScalar, IntegerEdges) {
  EXPECT_EQ(tc_div_i64(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(tc_mod_i64(INT64_MIN, -1), 0);
  EXPECT_EQ(tc_abs_i32(INT32_MIN), INT32_MIN);
  EXPECT_EQ(tc_neg_i64(INT64_MIN), INT64_MIN);
  EXPECT_EQ(tc_mul_i64(INT64_MAX, 2), -2);
  EXPECT_EQ(tc_mul_u16(65535, 65535), 1);
  EXPECT_EQ(tc_shr_u32(8, 32), 0u);
  EXPECT_EQ(tc_shr_u64(8, 2), 2u);
  EXPECT_EQ(tc_pow_i32(-1, -3), -1);
  EXPECT_EQ(tc_pow_i32(2, -1), 0);
  EXPECT_EQ(tc_i4_wrap(7), 7);
  EXPECT_EQ(tc_i4_wrap(8), -8);
  EXPECT_EQ(tc_i4_wrap(-9), 7);
  EXPECT_EQ(tc_u4_wrap(-1), 15);
  EXPECT_EQ(tc_i2_wrap(2), -2);
  EXPECT_EQ(tc_u2_wrap(6), 2);
}

TEST(TextScalar, FloatsToIntegers) {
  EXPECT_EQ(tc_i32_from_f32(-2.9f), -2);
  EXPECT_EQ(tc_i32_from_f32(-2147483648.0f), INT32_MIN);
  EXPECT_EQ(tc_i32_from_f32(2147483648.0f), INT32_MIN);
  EXPECT_EQ(tc_i32_from_f64(-2147483648.9), INT32_MIN);
  EXPECT_EQ(tc_i32_from_f64(2147483647.9), INT32_MAX);
  EXPECT_EQ(tc_i32_from_f32(NAN), INT32_MIN);
  EXPECT_EQ(tc_i64_from_f32(-INFINITY), INT64_MIN);
  EXPECT_EQ(tc_u8_from_f32(300.0f), 44);
  EXPECT_EQ(tc_u8_from_f32(-1.0f), 255);
  EXPECT_EQ(tc_u32_from_f64(4294967295.0), 4294967295u);
  EXPECT_EQ(tc_u64_from_f64(18446744073709549568.0), 18446744073709549568u);
  EXPECT_EQ(tc_u64_from_f32(-1.0f), std::numeric_limits<uint64_t>::max());
}

TEST(TextScalar, FloatRules) {
  EXPECT_TRUE(std::isnan(tc_max_f32(NAN, 1)) && std::isnan(tc_max_f32(1, NAN)) && std::isnan(tc_min_f64(1, NAN)));
  EXPECT_EQ(tc_floor_mod_f32(-5, 3), 1);
  EXPECT_EQ(tc_floor_mod_f64(5, -3), -1);
  EXPECT_TRUE(std::signbit(tc_floor_mod_f64(6, -3)));
  EXPECT_EQ(tc_floor_div_f32(-5, 3), -2);
  EXPECT_EQ(tc_sign_f32(-0.0f), 0);
  EXPECT_EQ(tc_sigmoid_f32(-200), 0);
}

TEST(TextRt, IndexesWrapAndAreChecked) {
  int32_t status = 0;
  EXPECT_EQ(tc_index(-1, 5, &status), 4);
  EXPECT_EQ(tc_index(4, 5, &status), 4);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(tc_index(5, 5, &status), 0);
  EXPECT_EQ(status, 1);
  status = 0;
  EXPECT_EQ(tc_index(INT64_MIN, 5, &status), 0);
  EXPECT_EQ(status, 1);
}

TEST(TextRt, ContentHash) {
  EXPECT_EQ(tc_xxh64("", 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(tc_xxh64("abc", 3), 0x44BC2CF5AD770999u);
  const char* text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(tc_xxh64(text, std::strlen(text)), 0xFBCEA83C8A378BF1u);
}

TEST(TextRt, WeightsAreMatched) {
  std::vector<unsigned char> blob(128, 7);
  tc_weights_header h = {
      {'T', 'C', 'W', 'E', 'I', 'G', 'H', 'T'}, 0x01020304, 1, 128, 42, tc_xxh64(blob.data(), 64), {}};
  std::memcpy(blob.data(), &h, sizeof h);
  EXPECT_TRUE(tc_weights_match(blob.data(), 128, 42));
  EXPECT_FALSE(tc_weights_match(blob.data(), 128, 43));
  EXPECT_FALSE(tc_weights_match(blob.data(), 127, 42));
  EXPECT_TRUE(tc_weights_intact(blob.data()));
  blob[100] = 8;
  EXPECT_FALSE(tc_weights_intact(blob.data()));
}

TEST(Text, FilesAreEmbedded) {
  EXPECT_TRUE(support_text("tc_simd.h").starts_with("/* SPDX-License-Identifier: 0BSD"));
  EXPECT_THROW(support_text("tc_none.h"), InternalError);
}

TEST(Text, FoldersAreEmbedded) {
  const std::vector<std::string_view> names = support_folder("cuda_on_cpu/");
  EXPECT_NE(std::find(names.begin(), names.end(), "cuda_on_cpu/cuda_runtime.h"), names.end());
  for (const std::string_view name : names)
    EXPECT_NE(support_text(name).substr(0, 40).find("SPDX-License-Identifier: 0BSD"), std::string_view::npos) << name;
  EXPECT_THROW(support_folder("none/"), InternalError);
}

std::string without_comments(std::string_view text) {
  std::string rest;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find("/*", at), text.size());
    rest += text.substr(at, begin - at);
    at = begin == text.size() ? begin : text.find("*/", begin) + 2;
  }
  return std::regex_replace(rest, std::regex("//[^\\n]*"), "");
}

// windows.h, which a program may include first, has small names for macros; the text of emitted packages has none of them.
TEST(Text, NoNameIsAMacroOfWindows) {
  const std::set<std::string> macros = {"cdecl", "far", "huge", "hyper", "interface", "near", "pascal", "small",
                                        "CONST", "ERROR", "IN", "OPTIONAL", "OUT", "THIS", "VOID"};
  int words = 0;
  for (const SupportFile& f : support_files()) {
    if (!f.name.ends_with(".h") && !f.name.ends_with(".c")) continue;
    const std::string text = without_comments(f.text);
    const std::regex word(R"([A-Za-z_]\w*)");
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i, ++words)
      EXPECT_FALSE(macros.contains(i->str())) << f.name << ": " << i->str();
  }
  EXPECT_GT(words, 10000);
}

TEST(Text, IncludedFilesComeAlong) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(with_included({"tc_tail.h", "tc_math.h"}), (Names{"tc_math.h", "tc_simd.h", "tc_tail.h"}));
  const Names all = with_included({"tc_main.h"});
  EXPECT_NE(std::find(all.begin(), all.end(), "tc_types.h"), all.end());
}

}  // namespace
}  // namespace tc::text_test
