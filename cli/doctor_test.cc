#include "cli/doctor.h"

#include <gtest/gtest.h>

namespace tc::doctor_test {
namespace {

TEST(Doctor, FindsTheLineWithTheVersion) {
  EXPECT_EQ(version_line("gcc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022\n"), "gcc (Debian 12.2.0-14) 12.2.0");
  EXPECT_EQ(version_line("nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n"),
            "Cuda compilation tools, release 13.0, V13.0.88");
  EXPECT_EQ(version_line("GNU Make 4.3"), "GNU Make 4.3");
  EXPECT_EQ(version_line("no version. 7\n.5\n6.\n"), "");
  EXPECT_EQ(version_line(""), "");
}

}  // namespace
}  // namespace tc::doctor_test
