// Steps as text: what they say is what the primitives do, and what cannot be is refused with a reason.
#include "passes/schedule/apply_step.h"

#include "passes/schedule/test_schedules.h"

namespace tc::apply_step_test {
namespace {

using namespace tc::testing;

PlanLine line_of(const std::string& text) {
  language::Problems problems;
  const auto plans = language::read_schedules("schedule \"*\"\n  naive()\n  " + text + "\n", problems);
  EXPECT_TRUE(problems.empty()) << text;
  return plans.at(0).lines.at(1);
}

void take(Schedule& s, const std::vector<std::string>& lines, bool gpu = false) {
  for (const std::string& l : lines) apply_step(s, line_of(l), gpu);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string refused(const TensorFn& fn, const std::vector<std::string>& before, const std::string& text,
                    bool gpu = false) {
  Schedule s(fn);
  take(s, before, gpu);
  const std::string loops = to_text(s.body());
  const std::string why = refusal([&] { apply_step(s, line_of(text), gpu); });
  EXPECT_EQ(to_text(s.body()), loops) << text;
  return first_line(why);
}

TEST(ApplyStep, NamesAreThoseOfTheText) {
  const TensorFn fn = row_sums(8, 10);
  Schedule s(fn);
  take(s, {"split(i0, 4) as rows, row", "decompose_reduction(row) as start, add, result", "reorder(r0, add)",
           "unroll(start)"});
  EXPECT_EQ(to_text(s.body()),
            "for rows in 0 .. +2:\n"
            "  alloc acc: f32[4] register\n"
            "  unroll start in 0 .. +4:\n"
            "    acc[start] = 0.0f\n"
            "  for r0 in 0 .. +10:\n"
            "    for add in 0 .. +4:\n"
            "      acc[add] += x[rows * 4 + add, r0]\n"
            "  for result in 0 .. +4:\n"
            "    sum[rows * 4 + result] = acc[result]\n");
  expect_same(fn, s.body());
  EXPECT_EQ(s.steps(), (std::vector<std::string>{"split(i0, 4, guard) as rows, row",
                                                 "decompose_reduction(row, register) as start, add, result",
                                                 "reorder(r0, add)", "unroll(start)"}));
}

TEST(ApplyStep, TilesAreNamedAndTurned) {
  const TensorFn fn = row_sums(8, 12);
  Schedule s(fn);
  take(s, {"split(i0, 4) as rows, row", "cache_read(x, rows, stack) as tile", "transform_layout(tile, 1, 0)",
           "storage_align(tile, 0, 8, 1)", "set_scope(tile, workspace) as kept"});
  EXPECT_NE(to_text(s.body()).find("alloc kept: f32[12,4] workspace"), std::string::npos) << to_text(s.body());
  expect_same(fn, s.body());
}

TEST(ApplyStep, AListOfBuffersIsOneArgument) {
  const TensorFn fn = twice(6, 8);
  Schedule s(fn);
  take(s, {"cache_read(x, i0, stack) as tile", "pipeline([tile], 2) as ring"});
  EXPECT_NE(to_text(s.body()).find("alloc ring: f32[2,1,8] stack"), std::string::npos) << to_text(s.body());
  expect_same(fn, s.body());
}

TEST(ApplyStep, RefusesWhatIsNotThere) {
  const TensorFn fn = twice(6, 8);
  EXPECT_TRUE(refused(fn, {}, "slice(i0, 4)").starts_with("there is no step slice; there are annotate, bind, "));
  EXPECT_EQ(refused(fn, {}, "split(k, 4)"), "split(k, 4): there is no loop k; there are i0, i1");
  EXPECT_EQ(refused(fn, {}, "cache_read(w, i0, stack)"),
            "cache_read(w, i0, stack): there is no buffer w; there are add, x");
  EXPECT_TRUE(refused(fn, {}, "prefetch(x, i0, 2)", true).starts_with("prefetch(x, i0, 2): other threads work"));
  EXPECT_EQ(refused(fn, {}, "split(i0)"), "split(i0): argument 2 is missing: the factor");
  EXPECT_EQ(refused(fn, {}, "split(i0, i1)"), "split(i0, i1): argument 2 is the factor, a number");
  EXPECT_EQ(refused(fn, {}, "split(4, 4)"), "split(4, 4): it is told the name of a loop here");
  EXPECT_EQ(refused(fn, {}, "split(i0, 4, most)"), "split(i0, 4, most): argument 3 is one of guard, min");
  EXPECT_EQ(refused(fn, {}, "split(i0, 4, min, 5)"), "split(i0, 4, min, 5): argument 4 is one of let");
  EXPECT_EQ(refused(fn, {}, "split(i0, 4, min, let, 5)"), "split(i0, 4, min, let, 5): it takes 4 arguments at most");
  EXPECT_EQ(refused(fn, {}, "fuse(i0, let, i1)"), "fuse(i0, let, i1): there is no loop let; there are i0, i1");
  EXPECT_EQ(refused(fn, {}, "fuse(let)"), "fuse(let): no loops are given");
  EXPECT_EQ(refused(fn, {}, "cache_read(x, i0, attic)"),
            "cache_read(x, i0, attic): argument 3 is one of register, stack, workspace, shared");
  EXPECT_EQ(refused(fn, {}, "storage_align(x, -1, 2)"), "storage_align(x, -1, 2): dimensions count from 0");
  EXPECT_EQ(refused(fn, {}, "transform_layout(x, 1, 0)"), "transform_layout(x, 1, 0): \"x\" is not allocated here");
  EXPECT_EQ(refused(fn, {"cache_read(x, i0, stack) as t"}, "transform_layout(t, 1, 1)"),
            "transform_layout(t, 1, 1): this is no order of its 2 dimensions");
}

TEST(ApplyStep, RefusesWrongNames) {
  const TensorFn fn = twice(6, 8);
  EXPECT_EQ(refused(fn, {}, "split(i0, 2) as a"), "split(i0, 2, guard) as i0_o, i0_i: it makes 2, 1 names are given");
  EXPECT_EQ(refused(fn, {}, "unroll(i0) as a"), "unroll(i0): it makes 0, 1 names are given");
  EXPECT_EQ(refused(fn, {}, "split(i0, 2) as i1, a"), "split(i0, 2, guard) as i0_o, i0_i: the name i1 is taken");
  EXPECT_EQ(refused(fn, {}, "split(i0, 2) as x, a"), "split(i0, 2, guard) as i0_o, i0_i: the name x is taken");
  EXPECT_EQ(refused(fn, {}, "rename(i0)"), "rename(i0): the new name stands behind 'as'");
}

// Two results of one name: the second one is called as it was told to be, whatever the first one is called from then on.
TEST(ApplyStep, ASecondOfItsNameKeepsTheNameThatItGot) {
  const TensorFn fn = twice(6, 8);
  Schedule s(fn);
  take(s, {"partition(i0, 2) as first, i0_2", "unroll(i0_2)"});
  EXPECT_NE(to_text(s.body()).find("unroll i0_2 in 2 .. +4"), std::string::npos) << to_text(s.body());
}

// What is known of the parts of a loop does not hang on their names.
TEST(ApplyStep, OtherNamesChangeNothing) {
  FunctionBuilder b;
  const Buffer x = b.input("x", {18 * 32});
  const TensorFn fn = b.take(b.compute("turn", {32 * 18}, [&](const Exprs& i) { return load(x, {i[0]}); })).fn;
  const Buffer y = fn.outputs[0];
  const Var j = make_var("j"), k = make_var("k");
  const Stmt nest = loop(
      j, 32, loop(k, 18, store(y, {Expr(j) * Expr(18) + Expr(k)}, load(fn.inputs[0], {Expr(k) * Expr(32) + Expr(j)}))));
  Schedule own(nest), named(nest);
  take(own, {"split(j, 5, min)", "split(k, 16, min)", "reorder(j_o, k_o, k_i, j_i)", "parallel(j_o)"});
  take(named, {"split(j, 5, min) as a, b", "split(k, 16, min) as c, d", "reorder(a, c, d, b)", "parallel(a)"});
  EXPECT_EQ(own.lines().size(), named.lines().size());
}

TEST(ApplyStep, EachTargetHasItsOwnThreads) {
  const TensorFn fn = twice(6, 8);
  EXPECT_EQ(refused(fn, {}, "bind(i0, block.x)"),
            "bind(i0, block.x): the C target has no blocks and threads; parallel shares a loop among threads");
  EXPECT_EQ(refused(fn, {}, "parallel(i0)", true), "parallel(i0): a GPU has blocks and threads: bind");
  EXPECT_EQ(refused(fn, {}, "bind(i0, warp.x)", true),
            "bind(i0, warp.x): argument 2 is one of block.x, block.y, block.z, thread.x, thread.y, thread.z");
  Schedule s(fn);
  take(s, {"bind(i0, block.x)", "bind(i1, thread.x)"}, true);
  expect_same(fn, s.body());
}

// The argument that cannot be, where it is a single one.
TEST(ApplyStep, SaysWhichArgumentCannotBe) {
  const TensorFn fn = twice(6, 8);
  auto argument = [&](const std::string& text) -> int {
    Schedule s(fn);
    try {
      apply_step(s, line_of(text), false);
    } catch (const ScheduleError& e) {
      return e.argument ? int(*e.argument) : -1;
    }
    return -2;
  };
  for (const auto& [text, at] : std::vector<std::pair<std::string, int>>{{"split(i0, 0)", 1},
                                                                         {"split(z, 4)", 0},
                                                                         {"split(i0, 4, most)", 2},
                                                                         {"tile(i0, i1, 2, 0)", 3},
                                                                         {"partition(i0, 2, 2)", 2},
                                                                         {"partition(i0, 6)", 1},
                                                                         {"pad(i0, 0)", 1},
                                                                         {"annotate(i0, 4)", 1},
                                                                         {"annotate(i0, \"\")", 1},
                                                                         {"pack(x, 4)", 1},
                                                                         {"pack(x, [0, 1])", 0},
                                                                         {"tensorize(i0, dot5)", 1},
                                                                         {"parallel(i0, 4)", 1},
                                                                         {"fuse(i1, i0)", -1}})
    EXPECT_EQ(argument(text), at) << text;
}

TEST(ApplyStep, AllStepsHaveNames) {
  const std::vector<std::string> names = step_names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(names.size(), 29u);
}

}  // namespace
}  // namespace tc::apply_step_test
