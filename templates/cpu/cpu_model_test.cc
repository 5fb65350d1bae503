#include "templates/cpu/cpu_model.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace tc::cpu_model_test {
namespace {

const std::string kV3 = "fma avx f16c avx2 bmi1 bmi2";
const std::string kV4 = kV3 + " avx512f avx512dq avx512cd avx512bw avx512vl";

std::string_view row_of(const std::string& vendor, int family, const std::string& flags) {
  std::istringstream text("processor\t: 0\nvendor_id\t: " + vendor + "\ncpu family\t: " + std::to_string(family) +
                          "\nflags\t\t: fpu sse2 " + flags + "\nbugs\t\t:\n\nprocessor\t: 1\nflags\t\t: none\n");
  return x86_cpu(text).name;
}

TEST(CpuModel, RowsOfProcessors) {
  EXPECT_EQ(row_of("GenuineIntel", 6, ""), "generic");
  EXPECT_EQ(row_of("GenuineIntel", 6, "avx avx2"), "generic");  // without FMA
  EXPECT_EQ(row_of("GenuineIntel", 6, kV3), "x86-64-v3");
  EXPECT_EQ(row_of("GenuineIntel", 6, kV3 + " avx_vnni"), "alderlake");
  EXPECT_EQ(row_of("GenuineIntel", 6, kV4), "x86-64-v4");
  EXPECT_EQ(row_of("GenuineIntel", 6, kV4 + " avx512_vnni"), "cascadelake");
  EXPECT_EQ(row_of("GenuineIntel", 6, kV4 + " avx512_vbmi2 avx512_vnni"), "icelake-server");
  EXPECT_EQ(row_of("GenuineIntel", 6, kV4 + " avx_vnni avx512_vbmi2 avx512_vnni avx512_fp16"), "icelake-server");
  EXPECT_EQ(row_of("GenuineIntel", 6, kV4 + " avx512_vbmi2 avx512_vnni avx512_fp16 amx_tile amx_int8"),
            "sapphirerapids");
  EXPECT_EQ(row_of("AuthenticAMD", 0x17, kV3), "x86-64-v3");
  EXPECT_EQ(row_of("AuthenticAMD", 0x19, kV3), "x86-64-v3");  // a Zen 3, or a Zen 4 whose hypervisor hides AVX-512
  EXPECT_EQ(row_of("AuthenticAMD", 0x19, kV4 + " avx512_vnni"), "znver4");
  EXPECT_EQ(row_of("AuthenticAMD", 0x1a, kV4 + " avx512_vnni"), "znver5");
}

// A flag is a word of its own: "avx512_vnni" has none of "avx" or "vnni".
TEST(CpuModel, FlagsAreWholeWords) { EXPECT_EQ(row_of("GenuineIntel", 6, "avx512f_x avx2x fmax bmi2x"), "generic"); }

TEST(CpuModel, NoProcessorIsGeneric) {
  std::istringstream nothing;
  EXPECT_EQ(x86_cpu(nothing).name, "generic");
}

// A row without instructions of its own cannot have those that its flags for the compiler do not name.
TEST(CpuModel, ProductsOfBytesAreFlags) {
  for (const CpuModel& m : cpu_models()) {
    EXPECT_EQ(m.byte_dot, m.march.find("vnni") != std::string_view::npos) << m.name;
    EXPECT_EQ(m.byte_tiles, m.march.find("amx-int8") != std::string_view::npos) << m.name;
  }
}

}  // namespace
}  // namespace tc::cpu_model_test
