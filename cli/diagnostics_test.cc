// docs/diagnostics.md has a paragraph for every code that the source uses, and for no other.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "cli/diagnostics_text.h"

namespace tc::diagnostics_test {
namespace {

namespace fs = std::filesystem;

std::set<std::string> codes_in_source() {
  static const std::regex code(R"(\bTC[0-9]{4}\b)");
  std::set<std::string> codes;
  for (const char* folder : {"cli", "emit_c", "emit_cuda", "importer", "ir", "passes", "support", "templates"}) {
    const fs::path root = fs::path(TC_SOURCE_DIR) / folder;
    if (!fs::exists(root)) continue;
    for (const auto& f : fs::recursive_directory_iterator(root)) {
      if (f.path().extension() != ".cc" || f.path().string().ends_with("_test.cc")) continue;
      std::ifstream in(f.path(), std::ios::binary);
      for (std::string line; std::getline(in, line);) {
        if (line.find('"') == std::string::npos) continue;  // only code, not comments
        for (auto it = std::sregex_iterator(line.begin(), line.end(), code); it != std::sregex_iterator(); ++it)
          codes.insert(it->str());
      }
    }
  }
  return codes;
}

TEST(DiagnosticsPage, HasEveryCodeOfTheSourceAndNoOther) {
  std::set<std::string> used = codes_in_source();
  // Examples in help texts are codes that exist.
  const std::vector<std::string> page = explained_codes();
  const std::set<std::string> explained(page.begin(), page.end());
  EXPECT_EQ(explained.size(), page.size()) << "a code has two paragraphs";
  for (const std::string& c : used) EXPECT_TRUE(explained.count(c)) << c << " is missing in docs/diagnostics.md";
  for (const std::string& c : explained) EXPECT_TRUE(used.count(c)) << c << " is in docs/diagnostics.md only";
  EXPECT_TRUE(std::is_sorted(page.begin(), page.end())) << "codes stand in order";
}

TEST(DiagnosticsPage, AParagraphEndsBeforeTheNextHeading) {
  for (const std::string& c : explained_codes()) {
    const std::string text = explanation_of(c);
    EXPECT_TRUE(text.starts_with(c + ": ")) << text;
    EXPECT_GT(text.size(), 60u) << text;
    EXPECT_EQ(text.find("\n#"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with(".\n")) << text;
  }
  EXPECT_EQ(explanation_of("TC9999"), "");
  EXPECT_EQ(explanation_of("TC"), "");
  EXPECT_EQ(explanation_of(""), "");
}

}  // namespace
}  // namespace tc::diagnostics_test
