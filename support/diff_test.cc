#include "support/diff.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tc::diff_test {
namespace {

TEST(Diff, EqualTextsHaveNone) { EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "x", "y"), ""); }

TEST(Diff, AChangedLineStandsInItsContext) {
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n", "a/t", "b/t"),
            "--- a/t\n+++ b/t\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n");
}

TEST(Diff, DistantChangesAreHunksOfTheirOwn) {
  std::string before, after;
  for (int k = 1; k <= 30; k++) {
    before += std::to_string(k) + "\n";
    after += (k == 3 ? "three" : k == 20 ? "twenty" : std::to_string(k)) + "\n";
  }
  EXPECT_EQ(unified_diff(before, after, "a", "b"),
            "--- a\n+++ b\n@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+three\n 4\n 5\n 6\n"
            "@@ -17,7 +17,7 @@\n 17\n 18\n 19\n-20\n+twenty\n 21\n 22\n 23\n");
}

TEST(Diff, NewAndStaleFiles) {
  EXPECT_EQ(unified_diff("", "a\nb\n", "/dev/null", "b/t"), "--- /dev/null\n+++ b/t\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(unified_diff("a\n", "", "a/t", "/dev/null"), "--- a/t\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n");
}

TEST(Diff, TheLastLineMayHaveNoEnd) {
  EXPECT_EQ(unified_diff("a\nb", "a\nb\n", "x", "y"),
            "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
}

TEST(Diff, BytesAreNotShown) {
  EXPECT_EQ(unified_diff(std::string("\0\1", 2), "a\n", "x", "y"), "Binary files x and y differ\n");
  EXPECT_EQ(unified_diff("\x1b[2J", "a\n", "x", "y"), "Binary files x and y differ\n");
}

/// What patch makes of `before`: the lines of the hunks with ' ' and '+', and those between hunks as they are.
std::string patched(const std::string& before, const std::string& diff) {
  auto lines = [](const std::string& text) {
    std::vector<std::string> list;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      list.push_back(text.substr(at, end - at));
      at = end;
    }
    return list;
  };
  const std::vector<std::string> old = lines(before);
  std::string result;
  size_t at = 0;
  for (const std::string& line : lines(diff)) {
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (line.starts_with("@@ -")) {
      const size_t start = std::stoul(line.substr(4));
      const bool none = line.substr(4, line.find(' ', 4) - 4).ends_with(",0");
      while (at + 1 < start + none) result += old.at(at++);
      continue;
    }
    if (line[0] != '+') {
      EXPECT_EQ(old.at(at), line.substr(1));
      at++;
    }
    if (line[0] != '-') result += line.substr(1);
  }
  while (at < old.size()) result += old[at++];
  return result;
}

TEST(Diff, PatchesMakeTheOtherText) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; round++) {
    auto text = [&](int lines) {
      std::string s;
      for (int k = 0; k < lines; k++) s += std::string(1, char('a' + random() % 4)) + "\n";
      return s;
    };
    const std::string before = text(int(random() % 40)),
                      after = round % 3 ? text(int(random() % 40)) : before + text(3);
    EXPECT_EQ(patched(before, unified_diff(before, after, "x", "y")), after) << before << "|" << after;
  }
}

TEST(Diff, LargeTextsThatHaveNothingInCommonAreQuick) {
  std::string before, after;
  for (int k = 0; k < 50000; k++) {
    before += "a" + std::to_string(k) + "\n";
    after += "b" + std::to_string(k) + "\n";
  }
  EXPECT_EQ(patched(before, unified_diff(before, after, "x", "y")), after);
}

}  // namespace
}  // namespace tc::diff_test
