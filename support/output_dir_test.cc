#include "support/output_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/error.h"

namespace tc::output_dir_test {
namespace {

namespace fs = std::filesystem;

class OutputDir : public testing::Test {
 protected:
  OutputDir() {
    std::string name = (fs::temp_directory_path() / "tc_output_dir_XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~OutputDir() override { fs::remove_all(dir_); }

  static std::vector<OutputFile> package(const std::string& kernel, const std::string& text) {
    const std::string manifest =
        R"({"generator": "tc-emit", "files": ["Makefile", "m.h", "m.c", "kernels/)" + kernel + R"("]})";
    return {{"manifest.json", manifest},
            {"Makefile", "all:\n"},
            {"m.h", "#pragma once\n"},
            {"m.c", text},
            {"kernels/" + kernel, "k\n"}};
  }

  std::string read(const std::string& name) const {
    std::ifstream file(dir_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  size_t count() const {
    size_t n = 0;
    for (const auto& entry : fs::recursive_directory_iterator(dir_)) n += entry.is_regular_file();
    return n;
  }

  fs::path dir_;
};

TEST_F(OutputDir, OnlyWhatChangesIsWritten) {
  EXPECT_EQ(write_package(dir_.string(), package("a.c", "one\n")).written.size(), 5u);
  const auto time = fs::last_write_time(dir_ / "m.h") - std::chrono::hours(1);
  fs::last_write_time(dir_ / "m.h", time);
  EXPECT_TRUE(write_package(dir_.string(), package("a.c", "one\n")).written.empty());
  EXPECT_EQ(write_package(dir_.string(), package("a.c", "two\n")).written, std::vector<std::string>{"m.c"});
  EXPECT_EQ(read("m.c"), "two\n");
  EXPECT_EQ(fs::last_write_time(dir_ / "m.h"), time);  // make does not build what includes it again
  EXPECT_EQ(count(), 5u);
}

TEST_F(OutputDir, TwoFilesOfOneNameAreRefusedBeforeAnythingChanges) {
  write_package(dir_.string(), package("a.c", "one\n"));
  std::vector<OutputFile> files = package("b.c", "two\n");
  files.push_back({"m.h", "#pragma twice\n"});
  EXPECT_THROW(write_package(dir_.string(), files), InternalError);
  EXPECT_EQ(read("m.c"), "one\n");
  EXPECT_EQ(count(), 5u);
}

TEST_F(OutputDir, FilesOfTheEarlierPackageGo) {
  write_package(dir_.string(), package("a.c", "one\n"));
  std::ofstream(dir_ / "mine.txt") << "mine\n";
  EXPECT_EQ(write_package(dir_.string(), package("b.c", "one\n")).removed, std::vector<std::string>{"kernels/a.c"});
  EXPECT_EQ(read("mine.txt"), "mine\n");
  EXPECT_EQ(count(), 6u);
}

TEST_F(OutputDir, WhatAnInterruptedRunLeftGoes) {
  write_package(dir_.string(), package("a.c", "one\n"));
  std::ofstream(dir_ / "kernels" / "c.c.tc-new") << "half";
  fs::rename(dir_ / "m.h", dir_ / "m.h.tc-old");
  EXPECT_EQ(write_package(dir_.string(), package("a.c", "one\n")).written, std::vector<std::string>{"m.h"});
  EXPECT_EQ(count(), 5u);
}

TEST_F(OutputDir, FilesOfAnInterruptedRunGoWithIt) {
  write_package(dir_.string(), package("a.c", "one\n"));
  std::ofstream(dir_ / "manifest.json.tc-new") << package("b.c", "")[0].bytes;
  std::ofstream(dir_ / "kernels" / "b.c") << "in its place already\n";
  EXPECT_EQ(write_package(dir_.string(), package("a.c", "one\n")).removed, std::vector<std::string>{"kernels/b.c"});
  EXPECT_EQ(count(), 5u);
}

TEST_F(OutputDir, WhatCannotBeWrittenLeavesTheOldPackage) {
  write_package(dir_.string(), package("a.c", "one\n"));
  std::vector<OutputFile> files = package("a.c", "two\n");
  files.push_back({"m.c/inside", "no folder"});
  EXPECT_THROW(write_package(dir_.string(), files), Error);
  EXPECT_EQ(read("m.c"), "one\n");
  EXPECT_EQ(count(), 5u);
}

TEST_F(OutputDir, WhatCannotBeWrittenLeavesNoFolder) {
  std::vector<OutputFile> files = package("a.c", "two\n");
  files.push_back({"kernels/" + std::string(300, 'x'), "a name that is too long"});
  EXPECT_THROW(write_package((dir_ / "new" / "deep").string(), files), Error);
  EXPECT_FALSE(fs::exists(dir_ / "new"));
}

TEST_F(OutputDir, WhatStopsInTheMiddleDoesNotBuild) {
  write_package(dir_.string(), package("a.c", "one\n"));
  fs::remove(dir_ / "kernels" / "a.c");
  fs::create_directories(dir_ / "kernels" / "a.c" / "in the way");
  EXPECT_THROW(write_package(dir_.string(), package("a.c", "two\n")), Error);
  EXPECT_FALSE(fs::exists(dir_ / "m.h"));
  EXPECT_FALSE(fs::exists(dir_ / "Makefile"));
  fs::remove_all(dir_ / "kernels" / "a.c");
  write_package(dir_.string(), package("a.c", "two\n"));
  EXPECT_TRUE(fs::exists(dir_ / "m.h"));
  EXPECT_EQ(count(), 5u);
}

// Parts in any order, with what makes them called once for each time that they are written.
TEST_F(OutputDir, FilesOfPartsAreWrittenWhereTheyChange) {
  int made = 0;
  const auto with_blob = [&](const std::string& end) {
    std::vector<OutputFile> files = package("a.c", "one\n");
    files.push_back({"m.bin", "", [&made, end](const TakesPart& take) {
                       made++;
                       take(4, end);
                       take(0, "head");
                     }});
    return files;
  };
  EXPECT_EQ(bytes_of(with_blob("tail").back()), "headtail");
  EXPECT_EQ(write_package(dir_.string(), with_blob("tail")).written.size(), 6u);
  EXPECT_EQ(read("m.bin"), "headtail");
  made = 0;
  EXPECT_TRUE(write_package(dir_.string(), with_blob("tail")).written.empty());
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(compare_package(dir_.string(), with_blob("tail")).empty());
  for (const std::string end : {"tall", "tai", "tails"}) {
    const std::vector<PackageDifference> differences = compare_package(dir_.string(), with_blob(end));
    ASSERT_EQ(differences.size(), 1u) << end;
    EXPECT_EQ(differences[0].what, "differs");
    EXPECT_TRUE(differences[0].binary);
  }
  EXPECT_EQ(write_package(dir_.string(), with_blob("tails")).written, std::vector<std::string>{"m.bin"});
  EXPECT_EQ(read("m.bin"), "headtails");
  EXPECT_EQ(count(), 6u);
  const auto fails = [](const TakesPart& take) {
    take(0, "new");
    throw Error("TC0503", ExitCode::Rejected, "an index");
  };
  std::vector<OutputFile> files = package("a.c", "two\n");
  files.push_back({"m.bin", "", fails});
  EXPECT_THROW(write_package(dir_.string(), files), Error);
  EXPECT_EQ(read("m.bin"), "headtails");
  EXPECT_EQ(read("m.c"), "one\n");
  EXPECT_EQ(count(), 6u);
}

}  // namespace
}  // namespace tc::output_dir_test
