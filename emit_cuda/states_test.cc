#include "emit_cuda/states.h"

#include <gtest/gtest.h>

#include "emit_cuda/executor.h"
#include "passes/program/test_program.h"

namespace tc::states_test {
namespace {

std::string executor_of(const std::string& graph, const ImportOptions& options) {
  const Program p = testing::program_of(graph, true, options);
  return cuda_executor_source(p, ProgramNames(p), 0, false, {}, 4);
}

/// N elements and S new ones; the mask is as long as both.
std::string grows() {
  ImportOptions options;
  options.dims["S"] = {1, 2};
  options.dims["N"] = {0, 8};
  options.dims["T"] = SizeExpression{.terms = {{"N", 1}, {"S", 1}}, .addend = 0};
  options.states = {{"past", "present"}};
  return executor_of(
      "g (float[1, S, 4] x, float[T] mask, float[1, N, 4] past) => (float[1, 4] y, float[1, M, 4] present) {"
      " present = Concat<axis = 1>(past, x)  one = Constant<value_ints = [1]>()"
      " sum = ReduceSum<keepdims = 0>(present, one)  most = ReduceMax<keepdims = 0>(mask)  y = Add(sum, most) }",
      options);
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const size_t begin = text.find(from), end = begin == std::string::npos ? begin : text.find(to, begin);
  EXPECT_NE(end, std::string::npos) << from << "\n" << text;
  return end == std::string::npos ? "" : text.substr(begin, end - begin);
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CudaStates, NoGraphKnowsWhatTheInstanceCounts) {
  const std::string text = grows();
  EXPECT_FALSE(has(between(text, "cudaError_t segment_0(", "constexpr int segment_count"), "counts."));
  EXPECT_FALSE(has(between(text, "cudaError_t upload(", "cudaError_t capture("), "counts."));
  EXPECT_TRUE(has(between(text, "cudaError_t take_graphs(", "};"), "sizes[1] = {d.in.S"));
  // The mask is as long as what is counted.
  EXPECT_TRUE(has(between(text, "cudaError_t run_once(", "execute("), "(size_t)(d.counts.N + d.in.S) * 4"));
  EXPECT_TRUE(has(between(text, "cudaError_t execute(", "run_segment"), "(d.counts.N, AT_AS(int64_t, N), stream)"));
}

TEST(CudaStates, RoomIsTestedBeforeAnythingIsEnqueued) {
  const std::string text = grows();
  for (const auto& [run, enqueues] : {std::pair("m_status m_run(", "run_once("), {"m_status m_run_async(", "execute"}})
    EXPECT_TRUE(has(between(text, run, enqueues), "if (in->S + d->counts.N > 8) return M_E_STATE;"));
}

TEST(CudaStates, StatesThatDoNotGrowAreClearedByTheNextRun) {
  ImportOptions options;
  options.states = {{"total", "added"}};
  const std::string text = executor_of(
      "g (float[4] x, float[4] total) => (float[4] y, float[4] added) {"
      " added = Add(total, x)  y = Neg(added) }",
      options);
  EXPECT_FALSE(has(text, "counts"));
  EXPECT_TRUE(has(between(text, "void m_reset(", "}"), "d->clears = true;"));
  EXPECT_TRUE(has(between(text, "cudaError_t run_once(", "execute("), "TRY(clear_states(d, d.stream));"));
  EXPECT_TRUE(has(between(text, "cudaError_t execute_and_keep(", "execute("), "TRY(clear_states(d, stream));"));
}

TEST(CudaStates, ABatchOfStatesStaysUntilTheyAreReset) {
  ImportOptions options;
  options.dims["B"] = {1, 3};
  options.states = {{"total", "added"}};
  const std::string text = executor_of(
      "g (float[B, 4] x, float[B, 4] total) => (float[B, 4] y, float[B, 4] added) {"
      " added = Add(total, x)  y = Neg(added) }",
      options);
  for (const auto& [run, enqueues] : {std::pair("m_status m_run(", "run_once("), {"m_status m_run_async(", "execute"}})
    EXPECT_TRUE(has(between(text, run, enqueues), "if ((d->same_B != 0 && in->B != d->same_B)) return M_E_STATE;"));
  EXPECT_TRUE(has(between(text, "void m_reset(", "}"), "d->same_B = 0;"));
  EXPECT_TRUE(has(between(text, "cudaError_t execute_and_keep(", "return cudaSuccess;"), "d.same_B = in.B;"));
}

TEST(CudaStates, WithoutStatesThereIsNothing) {
  const Program p = testing::program_of("g (float[4] x) => (float[4] y) { y = Neg(x) }", true);
  const DeviceStates s = device_states(p, ProgramNames(p));
  EXPECT_EQ(s.counts + s.members + s.functions + s.test_room + s.begin_run + s.end_run + s.refuse_captured + s.api +
                s.comment + s.keep + s.forget,
            "");
  EXPECT_EQ(s.execute, "execute");
}

}  // namespace
}  // namespace tc::states_test
