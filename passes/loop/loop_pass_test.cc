// The lists of loop passes: what their runner prints, and that it finds what a pass breaks.
#include "passes/loop/loop_pass.h"

#include <gtest/gtest.h>

#include "ir/loop/build.h"

namespace tc::loop_pass_test {
namespace {

// y[i] = x[i], both of four elements
Lowering copy() {
  const Buffer x = make_buffer("x", DType::F32, {Dim(4)}), y = make_buffer("y", DType::F32, {Dim(4)});
  const Var i = make_var("i");
  return {.body = loop(i, 4, store(y, {i}, load(x, {i}))), .visible = {x, y}};
}

void nothing(Lowering&) {}
void forgets_a_buffer(Lowering& l) { l.visible.pop_back(); }
void runs_too_far(Lowering& l) {
  const For f = *as<For>(l.body);
  l.body = loop(f.var, 5, f.body);
}

TEST(LoopPasses, VerifyEachNamesThePassThatBreaksTheLoops) {
  Options o;
  const auto run = [&](void (*pass)(Lowering&)) -> std::string {
    Lowering l = copy();
    LoopPassRunner runner(o);
    try {
      runner.run({{"first", nothing, ""}, {"second", pass, ""}}, l, "copy");
    } catch (const InternalError& e) {
      return e.what();
    }
    return "fine";
  };
  EXPECT_EQ(run(forgets_a_buffer), "fine");
  o.verify_each = true;
  EXPECT_EQ(run(nothing), "fine");
  EXPECT_EQ(run(forgets_a_buffer), "pass second: verify: store: buffer \"y\" is not visible");
  EXPECT_EQ(run(runs_too_far), "pass second: verify: store to buffer \"y\": index i reaches from 0 to 4 of 4");
}

TEST(LoopPasses, DumpsAndTimes) {
  Options o;
  o.print_after = {"second"};
  o.time_passes = true;
  LoopPassRunner runner(o);
  for (const char* title : {"conv2d relu", "softmax"}) {
    Lowering l = copy();
    runner.run({{"first", nothing, ""}, {"second", nothing, ""}}, l, title);
  }
  const std::string log = runner.log();
  EXPECT_EQ(log.find("after first"), std::string::npos);
  EXPECT_EQ(log.find("after second of conv2d relu:\n  for i in 0 .. +4:\n    y[i] = x[i]\nafter second of softmax:\n"),
            0u)
      << log;
  EXPECT_NE(log.find("\nfirst  "), std::string::npos);
  EXPECT_NE(log.find(" ms"), std::string::npos);
}

TEST(LoopPasses, NamesOfAListAreDistinct) {
  for (const auto* list : {&c_loop_passes(), &cuda_loop_passes(), &device_loop_passes()})
    for (size_t i = 0; i < list->size(); i++)
      for (size_t k = 0; k < i; k++) EXPECT_NE((*list)[i].name, (*list)[k].name);
}

}  // namespace
}  // namespace tc::loop_pass_test
