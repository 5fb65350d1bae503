// Checks a template's loops against the plain loops: bit for bit, on integers small enough that the order of sums does
// not matter. For tests only.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ir/identity.h"
#include "ir/interpreter.h"
#include "ir/loop/print.h"
#include "ir/test_random.h"
#include "ir/verify.h"
#include "passes/loop/lower_lanes.h"
#include "passes/schedule/planner.h"
#include "templates/cpu/schedule_cpu.h"
#include "templates/cpu/test_functions.h"

namespace tc::testing {

inline std::vector<float> run_scheduled(const Scheduled& s, const TensorFn& fn, const std::vector<Constant>& in,
                                        int vl) {
  std::vector<Constant> packed_from;
  for (const Buffer& b : s.prologue.inputs)
    packed_from.push_back(in[size_t(std::find(fn.inputs.begin(), fn.inputs.end(), b) - fn.inputs.begin())]);
  const std::vector<Constant> packed =
      s.prologue.stages.empty() ? std::vector<Constant>() : evaluate(s.prologue, packed_from);
  const size_t bytes =
      size_t(num_elements(static_dims(fn.outputs[0]->shape))) * size_t(info(fn.outputs[0]->dtype).bytes);
  std::vector<float> out((bytes + 3) / 4, -77.0f);
  auto memory = [&](const Buffer& b) -> uint8_t* {
    for (size_t i = 0; i < fn.inputs.size(); i++)
      if (fn.inputs[i] == b) return const_cast<uint8_t*>(in[i]->bytes.get());
    for (size_t i = 0; i < packed.size(); i++)
      if (s.prologue.outputs[i] == b) return const_cast<uint8_t*>(packed[i]->bytes.get());
    return reinterpret_cast<uint8_t*>(out.data());
  };
  std::vector<Binding> bindings;
  for (const auto& [view, of] : s.views) bindings.push_back({view, memory(of)});
  for (const Buffer& b : s.inputs) bindings.push_back({b, memory(b)});
  for (const Buffer& b : s.outputs) bindings.push_back({b, memory(b)});
  RunOptions o;
  o.vl = vl;
  run(lower_lanes(s.body), bindings, o);
  return out;
}

inline void expect_equal_to(const Scheduled& s, const CpuModel& cpu, const TestFunction& f,
                            const std::vector<Constant>& in, const Constant& expected) {
  for (const int vl : {1, 4, 8, 16}) {
    const std::vector<float> got = run_scheduled(s, f.fn, in, vl);
    ASSERT_EQ(std::memcmp(got.data(), expected->bytes.get(), expected->num_bytes), 0)
        << cpu.name << (cpu.best_variant.empty() ? "" : " and others") << ", " << vl << " lanes\n"
        << to_text(f.fn) << to_text(s.body);
  }
}

inline Scheduled expect_equal_on(const CpuModel& cpu, const TestFunction& f, const std::string& family,
                                 const std::vector<Constant>& in, const Constant& expected,
                                 const ScheduleOptions& options = {}) {
  Scheduled s = schedule_cpu(f.fn, f.constant, cpu, options);
  EXPECT_EQ(s.family, family);
  expect_equal_to(s, cpu, f, in, expected);
  return s;
}

// Another processor's loops over what is packed for `best`, as a list of processors has them.
inline void expect_equal_over_panels_of(const CpuModel& best, const CpuModel& other, const TestFunction& f,
                                        const std::vector<Constant>& in, const Constant& expected,
                                        ScheduleOptions options) {
  Planner planned;
  options.planner = &planned;
  const Scheduled wanted = schedule_cpu(f.fn, f.constant, best, options);
  Planner as_packed = Planner::beginning_with({.signature = "", .lines = planned.packing()});
  options.planner = &as_packed;
  options.wide_panels = true;
  const Scheduled s = schedule_cpu(f.fn, f.constant, other, options);
  as_packed.finish();
  EXPECT_EQ(identity_of(s.prologue), identity_of(wanted.prologue)) << other.name << " over the panels of " << best.name;
  EXPECT_EQ(s.family, wanted.family);
  expect_equal_to(s, other, f, in, expected);
}

// The scheduled text gives what the definition says, whatever the number of lanes: text for one processor, text for
// several, and text for one of several over one blob of weights.
inline void expect_equal(const TestFunction& f, const std::string& family, const char* cpu = "x86-64-v4",
                         std::vector<Constant> in = {}, const ScheduleOptions& options = {}) {
  for (size_t i = in.size(); i < f.fn.inputs.size(); i++)
    in.push_back(small_integers(static_dims(f.fn.inputs[i]->shape), uint32_t(i + 1)));
  const Constant expected = evaluate(f.fn, in)[0];
  expect_equal_on(*find_cpu(cpu), f, family, in, expected, options);
  expect_equal_on(any_cpu(), f, family, in, expected, options);
  if (std::string_view(cpu) == "x86-64-v4")
    expect_equal_over_panels_of(*find_cpu(cpu), *find_cpu("x86-64-v3"), f, in, expected, options);
}

}  // namespace tc::testing
