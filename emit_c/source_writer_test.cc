#include "emit_c/source_writer.h"

#include <gtest/gtest.h>

namespace tc::source_writer_test {
namespace {

std::string written(const std::string& line) {
  SourceWriter out;
  out.line(line);
  return out.take();
}

TEST(SourceWriter, LongListsAreBrokenAfterACommaAndIndented) {
  std::string list = "call(first";
  for (int i = 0; i < 20; i++) list += ", argument_" + std::to_string(i);
  const std::string s = written(list + ");");
  EXPECT_NE(s.find(",\n    argument_"), std::string::npos) << s;
  for (size_t at = 0, end; (end = s.find('\n', at)) != std::string::npos; at = end + 1) EXPECT_LE(end - at, 118u) << s;
}

TEST(SourceWriter, CommentsStayCommentsAndSubscriptsWhole) {
  const std::string half(45, 'a');
  const std::string s = written(" * " + half + "[i] = " + half + "[j - 1 + k] + b[j - 1][k - 1]");
  EXPECT_NE(s.find(" * " + half + "[i]"), std::string::npos) << s;
  EXPECT_EQ(s.find("\n *   - 1"), std::string::npos) << s;
  EXPECT_NE(s.find("[j - 1 + k]\n *   + b[j - 1][k - 1]"), std::string::npos) << s;
}

TEST(SourceWriter, WithoutAnotherBreakAValueBeginsALine) {
  const std::string name(70, 'n');
  EXPECT_EQ(written("const " + name + " *const args = (const " + name + " *)arguments;"),
            "const " + name + " *const args =\n    (const " + name + " *)arguments;\n");
}

TEST(SourceWriter, StringsAreNotBroken) {
  const std::string text = "puts(\"" + std::string(70, 'x') + ", " + std::string(70, 'y') + "\");";
  EXPECT_EQ(written(text), text + "\n");
}

}  // namespace
}  // namespace tc::source_writer_test
