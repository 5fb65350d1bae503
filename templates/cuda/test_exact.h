// For tests: the CUDA schedule of a function equals the definition bit for bit, on integers small enough that the order
// of sums does not matter, without races.
#pragma once
#include <string>

#include "ir/loop/visit.h"
#include "ir/test_random.h"
#include "passes/loop/launches.h"
#include "templates/cpu/test_functions.h"
#include "templates/cuda/test_schedule.h"

namespace tc::testing {

inline std::vector<Constant> small_integers_for(const TensorFn& fn) {
  std::vector<Constant> in;
  for (size_t i = 0; i < fn.inputs.size(); i++)
    in.push_back(small_integers(static_dims(fn.inputs[i]->shape), uint32_t(i + 1), fn.inputs[i]->dtype));
  return in;
}

/// The same function of tensors of halves: sums are single precision, the result is rounded once.
inline TestFunction of_halves(TestFunction f, DType t = DType::F16) {
  BufferMap halves;
  for (Buffer& b : f.fn.inputs) {
    const Buffer h = make_buffer(b->name, t, b->shape);
    halves[b.get()] = h;
    b = h;
  }
  for (Stage& s : f.fn.stages)
    for (Expr& e : s.values)
      e = rewrite(e, [&](const Expr& x) -> Expr {
        const Load* l = as<Load>(x);
        const auto it = l ? halves.find(l->buffer.get()) : halves.end();
        return it == halves.end() ? Expr() : cast(DType::F32, load(it->second, l->index));
      });
  const Buffer out = f.fn.outputs[0];
  Stage last;
  last.name = "cast";
  Exprs at;
  for (size_t d = 0; d < out->shape.size(); d++) {
    last.axes.push_back({make_var("i" + std::to_string(d)), out->shape[d]});
    at.push_back(Expr(last.axes.back().var));
  }
  last.values = {cast(t, load(out, at))};
  last.outputs = {make_buffer("cast", t, out->shape)};
  f.fn.outputs = last.outputs;
  f.fn.stages.push_back(std::move(last));
  return f;
}

/// On machines with few and with many multiprocessors; as the template writes it, and with block-wide reductions and
/// barriers lowered. Returns the schedule's description for the machine with many.
inline std::string expect_equal(const TestFunction& f, const std::string& family) {
  const std::vector<Constant> in = small_integers_for(f.fn);
  const Constant expected = evaluate(f.fn, in)[0];
  std::string description;
  for (const int multiprocessors : {1, 108}) {
    CudaModel gpu = *find_arch("sm_80");
    gpu.multiprocessors = multiprocessors;
    Scheduled s = schedule_cuda(f.fn, f.constant, gpu);
    if (!family.empty()) {
      EXPECT_EQ(s.family, family) << to_text(f.fn);
    }
    description = s.description;
    for (const bool lowered : {false, true}) {
      if (lowered) s.body = synchronise(s.body);
      ScheduleMemory memory(s, f.fn, in);
      expect_close(memory.run()[0], expected, 0, s.description + "\n" + to_text(f.fn) + to_text(s.body));
    }
  }
  return description;
}

}  // namespace tc::testing
