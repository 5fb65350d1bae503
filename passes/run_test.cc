#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "passes/pass.h"

namespace tc::run_test {
namespace {

void append_relu(Graph& g, PassContext&) {
  Node* n = g.append("Relu", {g.outputs()[0]}, {ModelText(g.outputs()[0]->name.raw() + "r")});
  g.set_type(n->outputs[0], n->inputs[0]->type);
  g.set_output(0, n->outputs[0]);
}
void complain(Graph&, PassContext& cx) { cx.diagnostics->add({"TC0999", ExitCode::Rejected, {}, "no", {}, false}); }
void break_invariant(Graph&, PassContext&) { check(false, "broken"); }

Graph identity() {
  Graph g(ModelText("g"));
  g.set_outputs({g.add_input(ModelText("x"), ValueType::tensor(DType::F32, {Dim(2)}))});
  return g;
}

const std::vector<PassInfo> kTwo = {{"first", 0, append_relu, ""}, {"second", 2, append_relu, ""}};

TEST(RunPasses, HonoursOptLevelAndDisabledPasses) {
  for (auto [level, disabled, expected] : {std::tuple{2, "", 2u}, {1, "", 1u}, {2, "first", 1u}}) {
    Graph g = identity();
    PassContext cx;
    cx.options.opt_level = level;
    if (*disabled) cx.options.disabled = {disabled};
    std::string log;
    run_passes(kTwo, g, cx, log);
    EXPECT_EQ(g.num_nodes(), expected);
    EXPECT_EQ(log, "");
  }
}

TEST(RunPasses, PrintsAfterTheNamedPass) {
  Graph g = identity();
  PassContext cx;
  cx.options.print_after = {"first"};
  std::string log;
  run_passes(kTwo, g, cx, log);
  EXPECT_EQ(log, "after first:\ngraph g(x: f32[2]) -> (xr) {\n  xr: f32[2] = Relu(x)\n}\n");
}

TEST(RunPasses, StopsAfterAPassThatReportsAnError) {
  Graph g = identity();
  PassContext cx;
  Diagnostics diagnostics;
  cx.diagnostics = &diagnostics;
  std::string log;
  run_passes({{"complain", 0, complain, ""}, {"first", 0, append_relu, ""}}, g, cx, log);
  EXPECT_EQ(g.num_nodes(), 0u);
}

TEST(RunPasses, ADefectNamesThePass) {
  Graph g = identity();
  PassContext cx;
  std::string log;
  try {
    run_passes({{"bad_pass", 0, break_invariant, ""}}, g, cx, log);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("pass bad_pass: "), std::string::npos);
  }
}

TEST(RunPasses, DumpsOneFileAPass) {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "tc_run_test_dump";
  std::filesystem::remove_all(dir);
  Graph g = identity();
  PassContext cx;
  cx.options.dump_dir = dir.string();
  std::string log;
  run_passes(kTwo, g, cx, log);
  for (const char* name : {"00_input.txt", "01_first.txt", "02_second.txt"}) EXPECT_TRUE(exists(dir / name)) << name;
  std::ifstream in(dir / "02_second.txt");
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), to_text(g));
}

TEST(RunPasses, TimesEveryPass) {
  Graph g = identity();
  PassContext cx;
  cx.options.time_passes = true;
  std::string log;
  run_passes(kTwo, g, cx, log);
  EXPECT_NE(log.find("first "), std::string::npos);
  EXPECT_NE(log.find(" ms"), std::string::npos);
  EXPECT_NE(log.find("2 nodes\n"), std::string::npos);
}

}  // namespace
}  // namespace tc::run_test
