#include "support/read_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/error.h"

namespace tc::read_file_test {
namespace {

TEST(ReadFile, AllBytes) {
  const std::string path = testing::TempDir() + "tc_read_file_test.bin", bytes = std::string("a\0\r\n\xff", 5);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(try_read_file(path), bytes);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(read_file(path), "");
  std::remove(path.c_str());
}

TEST(ReadFile, WhatIsNotThereAndFolders) {
  for (const char* path : {"/no/such/file", "/"}) {
    EXPECT_FALSE(try_read_file(path)) << path;
    try {
      read_file(path);
      ADD_FAILURE() << path;
    } catch (const Error& e) {
      EXPECT_EQ(e.diagnostic().code, "TC0601");
      EXPECT_EQ(e.diagnostic().exit, ExitCode::Io);
    }
  }
}

}  // namespace
}  // namespace tc::read_file_test
