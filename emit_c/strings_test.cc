#include "emit_c/strings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "templates/text.h"

namespace tc::strings_test {
namespace {

Program with_constant(std::vector<std::string> words) {
  Program p;
  p.name = "net";
  Weight w;
  w.name = ModelText("labels */ int injected;");
  const auto n = int64_t(words.size());
  w.data = string_constant({n}, std::move(words));
  p.weights.push_back(std::move(w));
  return p;
}

std::string tables(std::vector<std::string> words) {
  const Program p = with_constant(std::move(words));
  return string_tables(p, ProgramNames(p));
}

TEST(StringTables, BytesAreEscaped) {
  const std::string s = tables({"a\"b\\",
                                std::string("\0"
                                            "001",
                                            4),
                                "\?\?/*/", "Zo\xc3\xab\xff\n", ""});
  EXPECT_NE(s.find("{\"a\\\"b\\\\\", 4},"), std::string::npos) << s;
  EXPECT_NE(s.find("{\"\\000001\", 4},"), std::string::npos) << s;
  EXPECT_NE(s.find("{\"\\077\\077/*/\", 5},"), std::string::npos) << s;
  EXPECT_NE(s.find("{\"Zo\\303\\253\\377\\012\", 6},"), std::string::npos) << s;
  EXPECT_NE(s.find("{\"\", 0},"), std::string::npos) << s;
  EXPECT_EQ(s.find("*/ int injected"), std::string::npos) << s;
}

TEST(StringTables, LongStringsAreArraysOfBytes) {
  EXPECT_EQ(tables({std::string(4000, 'x')}).find("unsigned char"), std::string::npos);
  const std::string s = tables({"a", std::string(4001, '\xfe')});
  EXPECT_NE(s.find("static const unsigned char net_text_labels_int_injected_1[] = {\n  254,254,"), std::string::npos)
      << s;
  EXPECT_NE(s.find("{(const char *)net_text_labels_int_injected_1, 4001},"), std::string::npos);
}

TEST(StringTables, AnEmptyConstantIsATable) {
  EXPECT_NE(tables({}).find("net_text_labels_int_injected[] = {\n  {NULL, 0},\n};"), std::string::npos) << tables({});
}

TEST(StringTables, NumbersNeedNone) {
  Program p;
  p.name = "net";
  Weight w;
  w.name = ModelText("w");
  w.data = int64_constant({1});
  p.weights.push_back(w);
  EXPECT_EQ(string_tables(p, ProgramNames(p)), "");
  EXPECT_FALSE(has_strings(p));
  EXPECT_TRUE(has_strings(with_constant({"a"})));
}

TEST(SupportText, HasPartsForStrings) {
  for (const SupportFile& f : support_files()) {
    EXPECT_EQ(support_for(f.name, false).find("TC_STRINGS"), std::string::npos) << f.name;
    EXPECT_EQ(support_for(f.name, true).find("TC_STRINGS"), std::string::npos) << f.name;
  }
  EXPECT_EQ(support_for("tc_io.h", false).find("tc_string"), std::string::npos);
  EXPECT_NE(support_for("tc_io.h", true).find("#include \"tc_string.h\""), std::string::npos);
  EXPECT_EQ(support_for("tc_simd.h", true), support_text("tc_simd.h"));
}

TEST(SupportText, PackagesWithoutStringsHaveNoFilesForThem) {
  const auto holds = [](const std::vector<std::string_view>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_FALSE(holds(with_included({"tc_main.h"}), "tc_words.h"));
  EXPECT_TRUE(holds(with_included({"tc_main.h"}, true), "tc_words.h"));
  EXPECT_TRUE(holds(with_included({"tc_main.h"}, true), "tc_string.h"));
}

TEST(SupportText, TheTypeOfStringsHasAGuardOfItsOwn) {
  EXPECT_TRUE(string_type().starts_with("#ifndef TC_STRING_TYPE\n#define TC_STRING_TYPE\ntypedef struct {"))
      << string_type();
  EXPECT_TRUE(string_type().ends_with("} tc_string;\n#endif\n")) << string_type();
}

}  // namespace
}  // namespace tc::strings_test
