// For tests: the CUDA schedule of a function equals the definition bit for bit, on integers small enough that the order
// of sums does not matter, without races.
#pragma once
#include <string>

#include "ir/loop/visit.h"
#include "passes/loop/lower_thread_allreduce.h"
#include "passes/loop/thread_sync.h"
#include "templates/cpu/test_functions.h"
#include "templates/cuda/test_schedule.h"

namespace tc::testing {

inline Constant small_integers(const Dims& dims, uint32_t seed) {
  MutableTensor t = new_tensor(DType::F32, dims);
  for (int64_t i = 0; i < num_elements(dims); i++) {
    seed = seed * 1664525u + 1013904223u;
    t.as<float>()[i] = float(int(seed >> 24) % 7 - 3);
  }
  return std::make_shared<const TensorData>(std::move(t.data));
}

inline bool has_barriers(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& x) {
    found = found || as<Barrier>(x);
    return !found;
  });
  return found;
}

/// On machines with few and with many multiprocessors; as the template writes it, and with block-wide reductions and
/// barriers lowered. Returns the schedule's words for the machine with many.
inline std::string expect_equal(const TestFunction& f, const std::string& family) {
  std::vector<Constant> in;
  for (size_t i = 0; i < f.fn.inputs.size(); i++)
    in.push_back(small_integers(static_dims(f.fn.inputs[i]->shape), uint32_t(i + 1)));
  const Constant expected = evaluate(f.fn, in)[0];
  std::string words;
  for (const int multiprocessors : {1, 108}) {
    CudaModel gpu = *find_arch("sm_80");
    gpu.multiprocessors = multiprocessors;
    Scheduled s = schedule_cuda(f.fn, f.constant, gpu);
    if (!family.empty()) {
      EXPECT_EQ(s.family, family) << to_text(f.fn);
    }
    words = s.words;
    for (const bool lowered : {false, true}) {
      if (lowered) {
        const bool placed = has_barriers(s.body);  // then all of them are
        s.body = lower_thread_allreduce(s.body);
        if (!placed) s.body = thread_sync(s.body);
      }
      ScheduleMemory memory(s, f.fn, in);
      expect_close(memory.run()[0], expected, 0, s.words + "\n" + to_text(f.fn) + to_text(s.body));
    }
  }
  return words;
}

}  // namespace tc::testing
