// docs/passes.md: what the table of graph passes says, with the first case of each pass's text test for its example.
//
// TC_UPDATE=1 build/tc_tests --gtest_filter='PassPage*' writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "passes/graph/passes.h"
#include "passes/tvm_names.h"

namespace tc::pass_page_test {
namespace {

const std::string kPage = std::string(TC_SOURCE_DIR) + "/docs/passes.md";

struct Example {
  std::string before, after;
};

/// The first case of passes/graph/tests/NAME.test whose graph changes.
Example example_of(std::string_view pass) {
  std::ifstream in(std::string(TC_SOURCE_DIR) + "/passes/graph/tests/" + std::string(pass) + ".test");
  Example e;
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("=== ")) {
      if (!e.after.empty()) break;
      e = {};
      part = nullptr;
    } else if (line == "--- model") {
      part = &e.before;
    } else if (line.starts_with("--- ")) {
      part = line == "--- becomes" ? &e.after : nullptr;
    } else if (part && !line.empty()) {
      *part += line + "\n";
    }
  }
  return e;
}

std::string page() {
  std::ostringstream s;
  s << "# Passes on graphs\n\n"
       "What happens to a model between its import and its kernels, in this order; `-O` says from which level on. The\n"
       "preconditions of each rule stand at the top of `passes/graph/NAME.cc`. `tc-emit passes` lists them, too, and "
       "those on\n"
       "loops; `--print-ir-after NAME` shows the graph behind one, `--disable-pass NAME` leaves one out.\n"
       "[Coming from TVM](from_tvm.md) has all of TVM's passes; [adding a pass](adding-a-pass.md) says how one is "
       "made.\n\n"
       "Do not edit this page: a unit test writes it from the table of `passes/pipeline.cc` and the tests of the "
       "passes.\n\n"
       "| pass | level | in TVM | what it does |\n|---|---|---|---|\n";
  for (const PassInfo& p : graph_passes())
    s << "| [" << p.name << "](#" << p.name << ") | " << p.opt_level << " | " << tvm_name(p.name) << " | " << p.summary
      << " |\n";
  std::set<std::string_view> seen;
  for (const PassInfo& p : graph_passes()) {
    if (!seen.insert(p.name).second) continue;
    const Example e = example_of(p.name);
    s << "\n## " << p.name << "\n\nIt " << p.summary << ". Before, in ONNX's text syntax:\n\n```text\n"
      << e.before << "```\n\nAfter:\n\n```text\n"
      << e.after << "```\n";
  }
  return s.str();
}

TEST(PassPage, EveryPassHasAnExample) {
  for (const PassInfo& p : graph_passes()) {
    EXPECT_FALSE(example_of(p.name).before.empty()) << p.name;
    EXPECT_FALSE(example_of(p.name).after.empty()) << p.name;
  }
}

TEST(PassPage, DocumentIsCurrent) {
  if (std::getenv("TC_UPDATE")) std::ofstream(kPage, std::ios::binary) << page();
  std::ifstream file(kPage, std::ios::binary);
  ASSERT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), page()) << "TC_UPDATE=1 build/tc_tests --gtest_filter='PassPage*' writes docs/passes.md";
}

}  // namespace
}  // namespace tc::pass_page_test
