// External data: read when it lies where it may, refused with a reason otherwise.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "importer/test_import.h"

namespace tc::external_data_test {
namespace {

using importer_testing::import_file;
using importer_testing::Imported;
using importer_testing::TestFolder;

/// A model whose weight of three floats has these external data entries.
std::string model(const std::string& entries) {
  return R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[3] x) => (float[3] y) <float[3] w = [)" +
         entries + R"(]> { y = Add(x, w) })";
}

std::string floats(const std::vector<float>& v) {
  return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
}

class ExternalDataTest : public testing::Test {
 protected:
  Imported import(const std::string& entries) { return import_file(folder_.write("m/model.onnxtxt", model(entries))); }
  void expect_refused(const std::string& entries, const std::string& code, const std::string& says = "") {
    const Imported m = import(entries);
    EXPECT_NE(m.problems.find("error[" + code + "]"), std::string::npos) << entries << "\n" << m.problems;
    EXPECT_NE(m.problems.find(says), std::string::npos) << m.problems;
    EXPECT_EQ(m.exit, ExitCode::Rejected);
  }
  const float* weight(const Imported& m) { return m.graph.nodes().front()->inputs.at(1)->constant->as<float>(); }

  TestFolder folder_;
};

TEST_F(ExternalDataTest, ReadsOffsetAndLength) {
  folder_.write("m/data/w.bin", floats({9, 1, 2, 3, 9}));
  const Imported m = import(R"("location": "data/w.bin", "offset": "4", "length": "12")");
  ASSERT_EQ(m.problems, "");
  EXPECT_EQ(weight(m)[0], 1);
  EXPECT_EQ(weight(m)[2], 3);
}

TEST_F(ExternalDataTest, DotComponentsAreFine) {
  folder_.write("m/w.bin", floats({1, 2, 3}));
  EXPECT_EQ(import(R"("location": "./w.bin")").problems, "");
}

TEST_F(ExternalDataTest, PathsOutOfTheFolder) {
  folder_.write("w.bin", floats({1, 2, 3}));
  folder_.write("m/sub/w.bin", floats({1, 2, 3}));
  for (const char* location : {"../w.bin", "sub/../../w.bin", "sub/../sub/w.bin", "../../../../../etc/hostname", ".."})
    expect_refused("\"location\": \"" + std::string(location) + "\"", "TC0131", "leaves the model's folder");
  expect_refused("\"location\": \"" + folder_.path("w.bin") + "\"", "TC0131", "absolute");
  expect_refused(R"("location": "")", "TC0131", "empty");
  expect_refused(R"("location": "sub/")", "TC0131", "names a folder");
  expect_refused(R"("location": "sub")", "TC0131", "not a regular file");
  expect_refused(R"("location": "gone.bin")", "TC0131", "cannot be opened");
  expect_refused("\"location\": \"" + std::string(5000, 'a') + "\"", "TC0131", "longer than");
}

TEST_F(ExternalDataTest, LinksAreNotFollowed) {
  folder_.write("w.bin", floats({1, 2, 3}));
  folder_.write("m/own.bin", floats({1, 2, 3}));
  ASSERT_EQ(symlink(folder_.path("w.bin").c_str(), folder_.path("m/link.bin").c_str()), 0);
  ASSERT_EQ(symlink("own.bin", folder_.path("m/inner.bin").c_str()), 0);
  ASSERT_EQ(symlink(folder_.path("").c_str(), folder_.path("m/up").c_str()), 0);
  ASSERT_EQ(link(folder_.path("w.bin").c_str(), folder_.path("m/hard.bin").c_str()), 0);
  expect_refused(R"("location": "link.bin")", "TC0131", "symbolic link");
  expect_refused(R"("location": "inner.bin")", "TC0131", "symbolic link");
  expect_refused(R"("location": "up/w.bin")", "TC0131", "symbolic link");
  expect_refused(R"("location": "hard.bin")", "TC0131", "hard link");
}

TEST_F(ExternalDataTest, FifosDoNotBlock) {
  folder_.write("m/x", "");
  ASSERT_EQ(mkfifo(folder_.path("m/fifo").c_str(), 0600), 0);
  expect_refused(R"("location": "fifo")", "TC0131", "not a regular file");
}

TEST_F(ExternalDataTest, RangesOutsideOfTheFile) {
  folder_.write("m/w.bin", floats({1, 2, 3}));
  expect_refused(R"("location": "w.bin", "offset": "4")", "TC0132", "outside");
  expect_refused(R"("location": "w.bin", "offset": "9223372036854775807")", "TC0132");
  expect_refused(R"("location": "w.bin", "offset": "-4")", "TC0130");
  expect_refused(R"("location": "w.bin", "offset": "4x")", "TC0130");
  expect_refused(R"("location": "w.bin", "offset": "99999999999999999999")", "TC0130");
  expect_refused(R"("location": "w.bin", "length": "8")", "TC0120", "ask for");
}

TEST_F(ExternalDataTest, Checksum) {
  folder_.write("m/abc.bin", "abc");
  const std::string text = R"(<ir_version: 8, opset_import: ["" : 17]>
net (float x) => (uint8[3] y) <uint8[3] y = ["location": "abc.bin", "checksum": "SUM"]> { z = Neg(x) })";
  auto with = [&](const std::string& sum) {
    std::string t = text;
    return import_file(folder_.write("m/model.onnxtxt", t.replace(t.find("SUM"), 3, sum)));
  };
  // SHA-1 of "abc", from FIPS 180.
  EXPECT_EQ(with("a9993e364706816aba3e25717850c26c9cd0d89d").problems, "");
  EXPECT_NE(with("a9993e364706816aba3e25717850c26c9cd0d89e").problems.find("error[TC0133]"), std::string::npos);
}

TEST_F(ExternalDataTest, UnknownKeysAreToldAndIgnored) {
  folder_.write("m/w.bin", floats({1, 2, 3}));
  const Imported m = import(R"("location": "w.bin", "__class__": "x")");
  EXPECT_EQ(m.exit, ExitCode::Ok);
  EXPECT_NE(m.problems.find("warning[TC0134]"), std::string::npos) << m.problems;
  expect_refused(R"("location": "w.bin", "location": "w.bin")", "TC0130", "twice");
}

TEST_F(ExternalDataTest, LargeTensorsThatShareARangeShareMemory) {
  folder_.write("m/w.bin", floats(std::vector<float>(4096, 2)));
  const Imported m = import_file(folder_.write("m/model.onnxtxt", R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[4096] x) => (float[4096] y)
<float[4096] v = ["location": "w.bin"], float[4096] w = ["location": "w.bin"]> { h = Add(x, v)  y = Add(h, w) })"));
  ASSERT_EQ(m.problems, "");
  const auto& first = m.graph.nodes().front()->inputs[1]->constant;
  EXPECT_EQ(first, m.graph.nodes().back()->inputs[1]->constant);
  EXPECT_EQ(first->as<float>()[4095], 2);
}

TEST_F(ExternalDataTest, InAttributesAndBodiesToo) {
  folder_.write("w.bin", floats({1, 2, 3}));
  const Imported m = import_file(folder_.write("m/model.onnxtxt", R"(<ir_version: 8, opset_import: ["" : 17]>
net (bool c, float[3] x) => (float[3] y) {
  y = If (c) <then_branch = t () => (float[3] a) <float[3] w = ["location": "../w.bin"]> { a = Add(x, w) },
              else_branch = e () => (float[3] b) { b = Neg(x) }>
})"));
  EXPECT_NE(m.problems.find("error[TC0131]"), std::string::npos) << m.problems;
}

}  // namespace
}  // namespace tc::external_data_test
