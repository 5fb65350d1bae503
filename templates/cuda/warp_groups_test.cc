// Products of warp groups (wgmma) equal the plain loops: bit for bit, on integers small enough that the order of sums does not
// matter, without races; as tiles of warps, and spread over their lanes.
#include <gtest/gtest.h>

#include "passes/loop/infer_fragment.h"
#include "templates/cuda/contraction.h"
#include "templates/cuda/test_bytes.h"

namespace tc::warp_groups_test {
namespace {

using namespace tc::testing;

struct Numbers {
  int64_t rows, columns, part, stages, splits = 1;
};

// With these numbers stated.
void expect_in_groups(const TestFunction& f, const Numbers& n, Precision precision = Precision::F32,
                      bool in_all_forms = false) {
  const CudaModel& gpu = *find_arch("sm_90a");
  Planner listening;
  ScheduleOptions o{.precision = precision, .planner = &listening};
  schedule_cuda(f.fn, f.constant, gpu, o);
  std::vector<PlanLine> lines = listening.lines();
  std::map<std::string, int64_t> numbers = {
      {"warps", 4},  {"rows", n.rows},     {"columns", n.columns}, {"warp_rows", n.part},
      {"groups", 1}, {"splits", n.splits}, {"stages", n.stages},   {"warp_columns", n.columns}};
  if (precision != Precision::F32) numbers["bits"] = 16, numbers["products"] = 1;
  for (PlanLine& line : lines) {
    std::erase_if(line.numbers, [](const auto& number) { return number.name == "depth"; });  // follows
    for (auto& number : line.numbers)
      if (const auto it = numbers.find(number.name); it != numbers.end()) number.value = it->second;
  }
  Planner stated = Planner::beginning_with(FunctionPlan{"*", "", "", lines});
  o.planner = &stated;
  Scheduled s = schedule_cuda(f.fn, f.constant, gpu, o);
  EXPECT_NE(s.description.find("a group of four warps"), std::string::npos) << s.description;
  const std::vector<Constant> in = small_integers_for(f.fn);
  const Constant expected = evaluate(f.fn, in)[0];
  const std::string what = s.description + "\n" + to_text(f.fn) + to_text(s.body);
  const Stmt lanes = infer_fragment(s.body);
  EXPECT_NE(to_text(lanes).find("wgmma_"), std::string::npos) << to_text(s.body);
  std::vector<Stmt> forms = {lanes};
  if (in_all_forms) forms = {s.body, lanes, synchronise(lanes)};
  for (const Stmt& form : forms) {
    s.body = form;
    expect_close(ScheduleMemory(s, f.fn, in).run()[0], expected, 0, what);
  }
}

TEST(WarpGroups, EveryTile) {
  const TestFunction f = of_halves(product(1, 30, 40, 70, false, true));
  for (const auto& [rows, columns, part] :
       {std::tuple{64, 128, 64}, {64, 256, 64}, {128, 64, 64}, {128, 128, 64}, {128, 256, 64}, {256, 128, 128}})
    expect_in_groups(f, {rows, columns, part, 3});
}

TEST(WarpGroups, StepsAheadAndSums) {
  for (const int64_t depth : {9, 128, 200})
    expect_in_groups(of_halves(product(1, 20, 30, depth, false, true)), {64, 64, 64, 4});
  for (const int64_t stages : {5, 6})
    expect_in_groups(of_halves(product(1, 20, 30, 400, false, true)), {64, 64, 64, stages});
  expect_in_groups(of_halves(product(1, 20, 30, 300, false, true)), {64, 64, 64, 4, 2}, Precision::F32, true);
}

TEST(WarpGroups, FactorsOfAnyKind) {
  expect_in_groups(of_halves(product(2, 70, 20, 72, true, false)),
                   {64, 64, 64, 4});  // both are operands, along the sum
  expect_in_groups(of_halves(product(2, 20, 70, 33, true, false)), {64, 64, 64, 4});  // element by element
  expect_in_groups(of_halves(product(1, 20, 30, 100, false, true), DType::BF16), {64, 64, 64, 4});
  expect_in_groups(product(1, 20, 30, 100, false, true), {64, 64, 64, 4}, Precision::F16);  // rounded on their way
  expect_in_groups(product(1, 20, 30, 100, false, true), {64, 64, 64, 4}, Precision::Bf16);
  expect_in_groups(of_halves(convolution({.h = 9, .w = 9, .c = 16, .oc = 70, .kernel = 3})), {64, 64, 64, 4});
}

TEST(WarpGroups, Bytes) {
  const DType i8 = DType::I8, u8 = DType::U8;
  expect_in_groups(of_bytes(product(1, 20, 30, 200, false, true), {i8}, {i8}), {64, 64, 64, 4});
  expect_in_groups(of_bytes(product(1, 20, 30, 200, false, true), {u8, 77}, {i8}), {64, 64, 64, 4});
  expect_in_groups(of_bytes(product(1, 20, 30, 130, false, true), {i8, -5}, {u8}), {64, 64, 64, 4});
  expect_in_groups(of_bytes(product(2, 20, 30, 160, true, false), {u8}, {u8}), {64, 64, 64, 4});
}

TEST(WarpGroups, OnlyWhereTheyCan) {
  auto text = [](const TestFunction& f, const char* arch) {
    CudaModel gpu = *find_arch(arch);
    gpu.multiprocessors = 1;  // large tiles
    return to_text(schedule_cuda(f.fn, f.constant, gpu).body);
  };
  const TestFunction f = of_halves(product(1, 300, 300, 640, false, true));
  EXPECT_NE(text(f, "sm_90a").find("wgmma_f16"), std::string::npos);
  for (const char* arch : {"sm_80", "sm_90", "sm_100"})
    EXPECT_EQ(text(f, arch).find("wgmma"), std::string::npos) << arch;
  // A factor that lies along the columns of the result is turned by ldmatrix.
  EXPECT_EQ(text(of_halves(product(2, 300, 304, 640, false, false)), "sm_90a").find("wgmma"), std::string::npos);
}

}  // namespace
}  // namespace tc::warp_groups_test
