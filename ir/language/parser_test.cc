#include "ir/language/parser.h"

#include <gtest/gtest.h>

namespace tc::language::parser_test {
namespace {

std::string problems_of(const std::string& text) {
  Problems problems;
  parse(text, problems);
  std::string all;
  for (const Problem& p : problems) all += render({"f.tc", text}, p);
  return all;
}

// Every construct of the grammar once.
constexpr const char* kAll = R"(# a comment
op my.domain.All<T: f32 | f64, U: int>(x: T[*S, N], i: U[N], b: T[]?, a: int = -1, f: float = 0.5, m: string = "up", l: ints = [1, -2],
    g: floats = [0.5, inf], need: int) -> y: T[*S, N // 2 + a % 3], z: U[N]
  require N > 1 && m != "down" || !(len(l) == 2), "N is too small"
  require a < 9
  s: f32[*i: *S, k: N] as inner = -x[*i, k] * (x[*i, k] - 1.5e-3) + where(has(b), b[], inf)
  t[n: 3] = sum(k: N - 1, j: 2) s[0, 0, k + j] from lowest(f32)
  (v, p: i64)[n: N] = fold(k: 4) (f32(k), k + n) from (-inf, 0) by (q, r), (c, d) => (max(q, c), where(q < c, d, r))
  scan {
    w[n: N] = where(n > 0, w[n - 1], 0.0)
    u[n: N] = w[n]
  }
  scan 4 {
    z[n] = ~i[n] & 3 | 4 ^ u8(i[n], wrap) << 2
  }
  y[*j, n] = all(k: 2) x[*j, k] <= 1
fn f(x @ 1: f32[2], b~2 @ 0: f32[]) -> x: f32[2]
)";

TEST(Language, PrintedDefinitionsAreReadAsTheyWere) {
  std::string text = kAll;
  text.erase(text.find(" << 2"), 5);  // shifts are functions
  Problems problems;
  const std::vector<Definition> d = parse(text, problems);
  for (const Problem& p : problems) ADD_FAILURE() << render({"f", text}, p);
  ASSERT_EQ(d.size(), 2u);
  for (const Definition& one : d) {
    const std::vector<Definition> again = parse(to_text(one), problems);
    ASSERT_EQ(again.size(), 1u) << to_text(one);
    EXPECT_TRUE(again[0] == one) << to_text(one) << to_text(again[0]);
  }
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(d[0].attributes.size(), 6u);
  EXPECT_EQ(d[0].stages.size(), 7u);
  EXPECT_EQ(d[0].stages[5].scan, 4);
}

TEST(Language, FormulasKeepTheirParentheses) {
  Problems problems;
  const auto value = [&](const std::string& f) {
    const auto d = parse("op a.B() -> y: f32[]\n y[] = " + f, problems);
    return to_text(d.at(0).stages.at(0).values.at(0));
  };
  for (const char* f : {"a - (b - c)", "a - b - c", "(a + b) * c", "-(a + b)", "-x[i]", "!(a && b) || c",
                        "a == (b == c)", "f(a, -1, x[i + 1, 0])", "-0.0", "1e+30", "a // b % c", "(a | b) & c"})
    EXPECT_EQ(value(f), f);
  EXPECT_EQ(value("((a)) + -(5)"), "a + -5");
  EXPECT_TRUE(problems.empty());
}

TEST(Language, MistakesAreToldAllTogetherWithTheirPlaces) {
  EXPECT_EQ(problems_of("op my.A(x: f32[N]) -> y: f32[N\n"
                        "  y[n] = x[n]\n"
                        "op my.B(x: f32[N]) -> y: f32[N]\n"
                        "  y[n] = x[n] +\n"
                        "  z[n] = = 3\n"
                        "\tu(n) = 1\n"
                        "  v[n] = 1 2\n"),
            "f.tc:2:3: expected ']' after the sizes, found 'y'\n    y[n] = x[n]\n    ^\n"
            "f.tc:5:8: expected the end of the line, found '='\n    z[n] = = 3\n         ^\n"
            "f.tc:6:3: expected '[' and the axes after the name, found '('\n   u(n) = 1\n    ^\n"
            "f.tc:7:12: expected the end of the line, found a number\n    v[n] = 1 2\n             ^\n");
}

TEST(Language, EachMistakeOfTheGrammar) {
  const auto first = [](const std::string& text) {
    const std::string all = problems_of(text);
    return all.substr(0, all.find('\n'));
  };
  const std::string op = "op a.B(x: f32[N]) -> y: f32[N]\n";
  const std::pair<std::string, const char*> cases[] = {
      {"hello", "f.tc:1:1: expected a definition, which begins with 'op', found 'hello'"},
      {"op a.(x: f32[N]) -> y: f32[]", "f.tc:1:6: expected the rest of the name after '.', found '('"},
      {"op a.B x", "f.tc:1:8: expected '(' before the operands, found 'x'"},
      {"op a.B(x f32[]) -> y: f32[]", "f.tc:1:10: expected ':' and a type after the name 'x', found 'f32'"},
      {"op a.B(x: f32) -> y: f32[]",
       "f.tc:1:14: expected '[' and the sizes after the element type; a scalar is f32[], found ')'"},
      {"op a.B(x: f32[]", "f.tc:1:16: expected ')' after the operands, found the end of the file"},
      {"op a.B(x: f32[])", "f.tc:1:17: expected '->' and the results after the operands, found the end of the file"},
      {"op a.B<T>(x: T[]) -> y: T[]",
       "f.tc:1:9: expected ':' and its element types after the name of a type, found '>'"},
      {"op a.B(k: int = 0.5) -> y: f32[]", "f.tc:1:17: expected a whole number, found a number"},
      {"op a.B(k: string = 5) -> y: f32[]", "f.tc:1:20: expected a text in double quotes, found a number"},
      {"op a.B(k: ints = 5) -> y: f32[]", "f.tc:1:18: expected '[' before the default, a list, found a number"},
      {"op a.B(k: ints = [5 6]) -> y: f32[]",
       "f.tc:1:21: expected ',' or ']' after an element of the list, found a number"},
      {op + "y[n] x[n]", "f.tc:2:6: expected '=' after the axes, found 'x'"},
      {op + "y[n] = 1 + sum(k: 3) x[k]",
       "f.tc:2:12: a reduction is a stage of its own: give it a name on a line before, and read that"},
      {op + "y[n] = fold(k: 3) (1, 2) from (1, 2)",
       "f.tc:2:37: expected 'by (a, ...), (b, ...) => (...)' after the values of a fold, found the end of the file"},
      {op + "}", "f.tc:2:1: no scan is open here"},
      {op + "scan {\ny[n] = 1", "f.tc:3:9: the '}' of a scan is missing"},
      {op + "scan {\nscan {\n", "f.tc:3:1: scans do not nest"},
      {op + "scan 2 {\n}\nscan 1 {\n}", "f.tc:4:1: the numbers of scans grow"},
      {op + "require N > 2, 5", "f.tc:2:16: expected a text that says what is required, found a number"},
      {op + "y[n] = x[n] $ 2", "f.tc:2:13: no part of the language: '$'"},
      {op + "y[n] = \xc3\xa4", "f.tc:2:8: no part of the language: '\\xc3'"},
      {op + "y[n] = \"abc", "f.tc:2:8: the closing '\"' of this text is missing"},
      {op + "y[n] = 9223372036854775808", "f.tc:2:8: an integer has at most 63 bits"},
      {op + "y[n] = 1e999", "f.tc:2:8: the number is too large or too small for 64 bits"},
      {op + "y[n] = 12ab", "f.tc:2:8: this is no number"},
      {op + "y[" + std::string(100, 'n') + "] = 1", "f.tc:2:3: a name has at most 80 characters"},
      {std::string(size_t(2) << 20, '\n'), "f.tc:1:1: the file has more than 1048576 bytes"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(first(text), message) << text.substr(0, 200);
}

TEST(Language, DeepFormulasAreRefusedWithoutRecursion) {
  const std::string op = "op a.B(x: f32[N]) -> y: f32[N]\n y[n] = ", why = "the formula nests deeper than 200 levels";
  for (const std::string& f : {std::string(100000, '('), std::string(100000, '-') + "1", std::string(100000, '!'),
                               [] {
                                 std::string s = "1";
                                 for (int k = 0; k < 100000; k++) s += "+1";
                                 return s;
                               }(),
                               [] {
                                 std::string s;
                                 for (int k = 0; k < 50000; k++) s += "f(";
                                 return s;
                               }(),
                               [] {
                                 std::string s;
                                 for (int k = 0; k < 50000; k++) s += "x[";
                                 return s;
                               }()})
    EXPECT_NE(problems_of(op + f).find(why), std::string::npos) << f.substr(0, 20);
}

TEST(Language, LongLinesAreShownAroundThePlace) {
  const std::string text = std::string(500, ' ') + "hello" + std::string(500, ' ');
  EXPECT_EQ(problems_of(text), "f.tc:1:501: expected a definition, which begins with 'op', found 'hello'\n  " +
                                   std::string(60, ' ') + "hello" + std::string(55, ' ') + "\n  " +
                                   std::string(60, ' ') + "^\n");
}

}  // namespace
}  // namespace tc::language::parser_test
