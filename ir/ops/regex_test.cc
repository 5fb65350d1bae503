#include "ir/ops/regex.h"

#include <gtest/gtest.h>

namespace tc::regex_test {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  const RegexResult r = full_match_automaton(pattern);
  EXPECT_EQ(r.problem, "") << pattern;
  if (!r.problem.empty()) return false;
  int state = 0;
  for (const char c : text)
    state = r.automaton.next[size_t(state * r.automaton.classes + r.automaton.class_of[uint8_t(c)])];
  return r.automaton.accepts[size_t(state)];
}

struct Case {
  const char* pattern;
  std::vector<std::string> yes, no;
};

TEST(Regex, MatchesWholeStrings) {
  const std::vector<Case> cases = {
      {"", {""}, {"a"}},
      {"abc", {"abc"}, {"", "ab", "abcd"}},
      {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
      {"(a|b)*c+d?", {"c", "ababccd", "ccc"}, {"d", "abd", "cdd"}},
      {"a{2}b{1,3}c{2,}", {"aabcc", "aabbbccc"}, {"abcc", "aabbbbcc", "aabc"}},
      {"x{,3}", {"x{,3}"}, {"xx"}},
      {"a{0}b", {"b"}, {"ab"}},
      {"(ab){2,3}", {"abab", "ababab"}, {"ab", "abababab"}},
      {"a*?b+?", {"aab", "bb"}, {"a"}},
      {".", {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"}, {"", "\n", "ab", "\xff", "\xc3", "\xe6\x97"}},
      {"[a-c]+", {"abc"}, {"abd", ""}},
      {"[^a-c]", {"d", "\xc3\xa9", "\n"}, {"a", "dd"}},
      {"[]a]+", {"]a"}, {"b"}},
      {"[^]]", {"a"}, {"]"}},
      {"[a-]+", {"a-"}, {"b"}},
      {"[\xc3\xa0-\xc3\xb6\xe4\xb8\x80-\xe9\xbf\xbf]+", {"\xc3\xa9\xe6\x97\xa5"}, {"\xc3\xb7", "a"}},
      {"\\d{3}-\\w+\\s\\S", {"123-a_Z x"}, {"12-a x", "123-a  "}},
      {"[\\D]\\W", {"a.", "\xc3\xa9\xc3\xa9"}, {"1.", "aa"}},
      {"[[:alpha:][:digit:]_]+", {"aZ9_"}, {"-", ""}},
      {"[[:^space:]]", {"a"}, {" "}},
      {"\\x41\\x{e9}\\.\\*", {"A\xc3\xa9.*"}, {"A\xc3\xa9.."}},
      {"^(?:a|(?P<name>b))$", {"a", "b"}, {"ab"}},
      {R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))",
       {"account@gmail.com", "(a@yahoo.com)"},
       {"a b@gmail.com", "x@hotmail.com"}},
      {"a^b|a$b|(^a$)|x(^|y)", {"a", "xy"}, {"ab", "x"}},
      {R"(a\b.*|\B-)", {"a", "a b", "-"}, {"ab"}},
      {R"([\w.\-]{0,25}@(yahoo|gmail)\.com)",
       {"account@gmail.com", "a.b-c@yahoo.com"},
       {"@hotmail.com", "a b@gmail.com"}},
      {R"(www\.[\w.-]+\.\bcom\b)", {"www.google.com"}, {"www.google.org", "www.google.comx"}},
      {R"(www\.[\w.-]+\.com)", {"www.google.com", "www.a-b.c.com"}, {"www.com", "www.google.org"}},
  };
  for (const Case& c : cases) {
    for (const std::string& s : c.yes) EXPECT_TRUE(matches(c.pattern, s)) << c.pattern << " " << s;
    for (const std::string& s : c.no) EXPECT_FALSE(matches(c.pattern, s)) << c.pattern << " " << s;
  }
}

TEST(Regex, SyntaxErrorsAndMissingFeaturesAreTold) {
  for (const char* wrong :
       {"(", ")", "a)", "[a", "*", "a**", "a{3,2}", "[b-a]", "\\", "[[:what:]]", "\\xg", "\xff", "a{1001}"}) {
    const RegexResult r = full_match_automaton(wrong);
    EXPECT_NE(r.problem, "") << wrong;
    EXPECT_FALSE(r.unsupported) << wrong;
  }
  for (const char* missing : {"(?i)a", "\\pL", "\\Q.\\E", "((a{900}){900}){900}"}) {
    const RegexResult r = full_match_automaton(missing);
    EXPECT_NE(r.problem, "") << missing;
    EXPECT_TRUE(r.unsupported) << missing;
  }
}

TEST(Regex, HostilePatternsEndSoon) {
  EXPECT_TRUE(full_match_automaton("(a|b)*a" + std::string(40, '.')).unsupported);  // 2^40 states
  EXPECT_TRUE(full_match_automaton(std::string(5000, '(') + std::string(5000, ')')).unsupported);
  EXPECT_TRUE(full_match_automaton("(((((((((.*)*)*)*)*)*)*)*)*){500}x{1000}").automaton.states() <= 2000);
}

}  // namespace
}  // namespace tc::regex_test
