#include "emit_c/kernel_files.h"

#include <gtest/gtest.h>

namespace tc::kernel_files_test {
namespace {

struct Listing {
  Program program;
  std::vector<KernelText> texts;

  void add(const std::string& name) {
    Kernel k;
    k.name = name;
    program.kernels.push_back(k);
    KernelText t;
    t.function = name + "\n";
    texts.push_back(t);
  }
};

TEST(KernelFiles, AFewKernelsHaveAFileEach) {
  Listing l;
  l.add("relu_4_00a1");
  l.add("neg_4_00b1");
  const auto files = kernel_files(l.program, l.texts);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].stem, "relu_4_00a1");
  EXPECT_EQ(files[1].stem, "neg_4_00b1");
}

TEST(KernelFiles, ManyKernelsAreTogetherByTheLastDigitOfTheirNames) {
  Listing l;
  for (size_t i = 0; i <= kKernelsApart; i++) l.add("k" + std::to_string(i) + "_00" + (i % 3 ? "0a" : "01"));
  l.texts[0].needs.math = l.texts[3].needs.tails = true;
  const auto files = kernel_files(l.program, l.texts);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].stem, "kernels_1");
  EXPECT_EQ(files[1].stem, "kernels_a");
  EXPECT_EQ(files[0].kernels.size() + files[1].kernels.size(), kKernelsApart + 1);
  const std::string text = kernel_source(files[0], "m");
  EXPECT_LT(text.find("#include <math.h>"), text.find("k0_0001"));
  EXPECT_LT(text.find("tc_tail.h"), text.find("k0_0001"));
  EXPECT_LT(text.find("k0_0001"), text.find("k3_0001"));  // in the program's order
  EXPECT_FALSE(needs_of(files[1].kernels).math);
}

}  // namespace
}  // namespace tc::kernel_files_test
