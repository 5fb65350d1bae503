// Tests of passes as text: passes/graph/tests/NAME.test holds cases of the pass NAME.
//
//   === chain_without_users
//   run: dead_code
//   --- model
//   g (float[4] x, float[4] w) => (float[4] y) { a = Add(x, w)  y = Neg(x) }
//   --- becomes
//   graph g(%x: f32[4], %w: f32[4]) -> (%y) {
//     %y: f32[4] = Neg(%x)
//   }
//
// The model is in ONNX's text syntax; without a header it is of the newest operator set. `run` lists passes: the last
// one is NAME, those before it prepare. "becomes" asserts that it changes the graph into the text below, "stays" that
// it leaves the graph, which the text shows, as it is. Lines "with:" set options: strict_fp, fold_limit BYTES,
// cuda (the target), cpu NAME (of --cpu), precision fp16|bf16|int8, activations int8,
// tolerance T (results before and after the pass may differ by that; otherwise they have the same bits) and not_run
// (the interpreter cannot run it). Lines before the first case, and those with # before `run`, are comments.
//
// TC_UPDATE=1 build/tc_tests --gtest_filter='PassText*' rewrites the texts; what a pass must change or leave, and that
// results stay the same, is asserted then, too.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "importer/test_import.h"
#include "ir/ops/op.h"
#include "passes/graph/multiply_blocks.h"
#include "passes/graph/test_graph.h"

namespace tc::pass_text_test {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(TC_SOURCE_DIR) / "passes/graph/tests";

struct Case {
  std::string pass, name;  // the file's and the case's
  std::vector<std::string> run;
  std::string model, expected;
  bool becomes = true;
  size_t first = 0, last = 0;  // lines of the expected text: [first, last)
  bool strict_fp = false, cuda = false, int8_activations = false, runs = true;
  Precision precision = Precision::F32;
  CpuModel cpu = {};
  int64_t fold_limit = Options().fold_limit_bytes;
  double tolerance = 0;
  std::string problem;  // the file is wrong
};

/// For messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.pass << ".test, " << c.name; }

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

void set_option(Case& c, const std::string& text) {
  const std::vector<std::string> w = words_of(text);
  auto number = [&](auto& to) {
    return w.size() == 2 && std::from_chars(w[1].data(), w[1].data() + w[1].size(), to).ec == std::errc();
  };
  if (w.size() == 1 && w[0] == "strict_fp")
    c.strict_fp = true;
  else if (w.size() == 1 && w[0] == "cuda")
    c.cuda = true;
  else if (w.size() == 2 && w[0] == "cpu" && find_cpu(w[1]))
    c.cpu = *find_cpu(w[1]);
  else if (w.size() == 2 && w[0] == "precision" && (w[1] == "fp16" || w[1] == "bf16" || w[1] == "int8"))
    c.precision = w[1] == "fp16" ? Precision::F16 : w[1] == "bf16" ? Precision::Bf16 : Precision::Int8;
  else if (w.size() == 2 && w[0] == "activations" && w[1] == "int8")
    c.int8_activations = true;
  else if (w.size() == 1 && w[0] == "not_run")
    c.runs = false;
  else if (!w.empty() &&
           ((w[0] == "fold_limit" && number(c.fold_limit)) || (w[0] == "tolerance" && number(c.tolerance))))
    return;
  else
    c.problem = "unknown option: " + text;
}

/// One case from its lines [first, last), the first of which is "=== NAME".
Case read_case(const std::string& pass, const std::vector<std::string>& lines, size_t first, size_t last) {
  Case c;
  c.pass = pass;
  c.name = lines[first].substr(4);
  size_t i = first + 1;
  for (; i < last && lines[i] != "--- model"; ++i) {
    if (lines[i].starts_with("run: "))
      c.run = words_of(lines[i].substr(5));
    else if (lines[i].starts_with("with: "))
      set_option(c, lines[i].substr(6));
    else if (!lines[i].empty() && lines[i][0] != '#')
      c.problem = "unexpected line: " + lines[i];
  }
  for (++i; i < last && lines[i] != "--- becomes" && lines[i] != "--- stays"; ++i) c.model += lines[i] + "\n";
  if (i >= last) c.problem = "a case needs --- model, and --- becomes or --- stays";
  if (i < last) c.becomes = lines[i] == "--- becomes";
  c.first = c.last = std::min(i + 1, last);
  for (++i; i < last; ++i) {
    if (lines[i].empty()) continue;
    c.expected += lines[i] + "\n";
    c.last = i + 1;
  }
  if (c.run.empty() || c.run.back() != pass) c.problem = "the last pass of `run` has to be " + pass;
  return c;
}

std::vector<Case> read_cases() {
  std::vector<fs::path> files;
  for (const auto& f : fs::directory_iterator(kFolder))
    if (f.path().extension() == ".test") files.push_back(f.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const fs::path& f : files) {
    const std::vector<std::string> lines = lines_of(f);
    std::vector<size_t> starts;
    for (size_t i = 0; i < lines.size(); ++i)
      if (lines[i].starts_with("=== ")) starts.push_back(i);
    starts.push_back(lines.size());
    for (size_t k = 0; k + 1 < starts.size(); ++k)
      cases.push_back(read_case(f.stem().string(), lines, starts[k], starts[k + 1]));
  }
  return cases;
}

/// Puts `text` in the place of the expected text. Cases of one file are read again, as an earlier one may have moved
/// it.
void update(const Case& c, const std::string& text) {
  const fs::path path = kFolder / (c.pass + ".test");
  const std::vector<std::string> lines = lines_of(path);
  const std::vector<Case> now = read_cases();
  const auto it =
      std::find_if(now.begin(), now.end(), [&](const Case& o) { return o.pass == c.pass && o.name == c.name; });
  ASSERT_NE(it, now.end());
  std::ofstream out(path, std::ios::binary);
  for (size_t i = 0; i < it->first; ++i) out << lines[i] << "\n";
  out << text;
  for (size_t i = it->last; i < lines.size(); ++i) out << lines[i] << "\n";
}

void run_pass(const std::string& name, Graph& g, PassContext& cx) {
  const auto& list = graph_passes();
  const auto it = std::find_if(list.begin(), list.end(), [&](const PassInfo& p) { return p.name == name; });
  ASSERT_NE(it, list.end()) << "there is no pass " << name;
  it->run(g, cx);
  verify(g);
}

/// What the interpreter runs: a graph whose types are known.
bool is_typed(const Graph& g) {
  return std::all_of(g.values().begin(), g.values().end(), [](const auto& v) { return v->type.is_static_tensor(); });
}

class PassText : public testing::TestWithParam<Case> {};

TEST_P(PassText, Case) {
  const Case& c = GetParam();
  ASSERT_EQ(c.problem, "");
  const std::string header = c.model.starts_with("<")
                                 ? ""
                                 : "<ir_version: 11, opset_import: [\"\" : " + to_text(int64_t(newest_opset())) +
                                       ", \"com.microsoft\" : 1]>\n";
  const auto has_row = [](std::string_view domain, std::string_view op) {
    return domain.empty() || find_op(domain, op) != nullptr;
  };
  auto imported = importer_testing::import_text(header + c.model, {.has_row = has_row, .keep_dead_nodes = true});
  ASSERT_EQ(imported.problems, "");
  Graph g = std::move(imported.graph);
  Diagnostics problems;
  TestTarget target({c.cuda ? Target::Kind::Cuda : Target::Kind::C, c.cpu, {}});
  PassContext& cx = target.cx;
  cx.diagnostics = &problems;
  cx.options.strict_fp = c.strict_fp;
  cx.options.precision = c.precision;
  cx.options.fold_limit_bytes = c.fold_limit;
  for (size_t k = 0; k + 1 < c.run.size(); ++k) run_pass(c.run[k], g, cx);
  if (c.int8_activations) allow_byte_products(g);
  const Graph before = g.clone();
  run_pass(c.pass, g, cx);
  const std::string text = to_text(g);
  EXPECT_EQ(problems.list().size(), 0u) << problems.list().front().render();
  EXPECT_EQ(text != to_text(before), c.becomes) << "before:\n" << to_text(before) << "after:\n" << text;
  if (c.runs) {
    Graph typed = before.clone();
    if (!is_typed(typed)) run_pass("dynamic_to_static", typed, cx);
    expect_same(typed, g, 7, c.tolerance);
  }
  if (std::getenv("TC_UPDATE")) return update(c, text);
  EXPECT_EQ(text, c.expected) << "TC_UPDATE=1 build/tc_tests --gtest_filter='PassText*' rewrites the text";
}

INSTANTIATE_TEST_SUITE_P(, PassText, testing::ValuesIn(read_cases()),
                         [](const auto& info) { return info.param.pass + "_" + info.param.name; });

TEST(PassTexts, EveryPassHasACaseWhereItFiresAndOneWhereItMustNot) {
  const std::vector<Case> cases = read_cases();
  for (const PassInfo& p : graph_passes())
    for (const bool becomes : {true, false})
      EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                              [&](const Case& c) { return c.pass == p.name && c.becomes == becomes; }))
          << "passes/graph/tests/" << p.name << ".test has no case with --- " << (becomes ? "becomes" : "stays");
}

TEST(PassTexts, NamesAreUniqueWithinAFile) {
  std::set<std::string> seen;
  for (const Case& c : read_cases()) EXPECT_TRUE(seen.insert(c.pass + "." + c.name).second) << c.pass << ": " << c.name;
}

}  // namespace
}  // namespace tc::pass_text_test
