// For tests: the CUDA schedule of a function, run by the interpreter with its race checker, gives what the definition says.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/interpreter.h"
#include "ir/loop/print.h"
#include "templates/cuda/schedule_cuda.h"

namespace tc::testing {

/// Memory for every buffer of a schedule: inputs as given, outputs of -77.
class ScheduleMemory {
 public:
  ScheduleMemory(const Scheduled& s, const TensorFn& fn, const std::vector<Constant>& in) : s_(s), fn_(fn), in_(in) {
    std::vector<Constant> from;
    for (const Buffer& b : s.prologue.inputs) from.push_back(in[index_of(fn.inputs, b)]);
    if (!s.prologue.stages.empty()) packed_ = evaluate(s.prologue, from);
    for (const Buffer& b : fn.outputs) {
      MutableTensor t = new_tensor(b->dtype, static_dims(b->shape));
      std::memset(t.bytes, 0x5a, t.data.num_bytes);
      results_.push_back(std::move(t));
    }
  }

  std::vector<Constant> run(int vl = 4) {
    std::vector<Binding> bindings;
    for (const auto& [view, of] : s_.views) bindings.push_back({view, memory(of)});
    for (const Buffer& b : s_.inputs) bindings.push_back({b, memory(b)});
    for (const Buffer& b : s_.outputs) bindings.push_back({b, memory(b)});
    RunOptions o;
    o.vl = vl;
    o.check_races = true;
    tc::run(s_.body, bindings, o, &status_);
    std::vector<Constant> out;
    for (MutableTensor& t : results_) out.push_back(std::make_shared<const TensorData>(std::move(t.data)));
    return out;
  }

 private:
  static size_t index_of(const std::vector<Buffer>& list, const Buffer& b) {
    for (size_t i = 0; i < list.size(); i++)
      if (list[i] == b) return i;
    return list.size();
  }
  uint8_t* memory(const Buffer& b) {
    if (const size_t i = index_of(fn_.outputs, b); i < results_.size()) return results_[i].bytes;
    if (const size_t i = index_of(fn_.inputs, b); i < in_.size()) return const_cast<uint8_t*>(in_[i]->bytes.get());
    return const_cast<uint8_t*>(packed_.at(index_of(s_.prologue.outputs, b))->bytes.get());
  }

  const Scheduled& s_;
  const TensorFn& fn_;
  const std::vector<Constant>& in_;
  std::vector<Constant> packed_;
  std::vector<MutableTensor> results_;
  int status_ = 0;
};

/// The largest finite magnitude among float operands.
inline double largest(const std::vector<Constant>& in) {
  double most = 0;
  for (const Constant& c : in)
    for (int64_t k = 0; c && is_float(c->dtype) && k < c->size(); k++)
      if (const double v = std::abs(c->as_double(k)); std::isfinite(v)) most = std::max(most, v);
  return most;
}

/// Integers and copies bit for bit; floats to `tolerance` of 1 + |expected|, since sums may be taken in another order, and to
/// `rounding`, what single precision loses of large operands.
inline void expect_close(const Constant& got, const Constant& expected, double tolerance, const std::string& what,
                         double rounding = 0) {
  ASSERT_EQ(got->num_bytes, expected->num_bytes) << what;
  if (!is_float(got->dtype) || tolerance == 0) {
    ASSERT_EQ(std::memcmp(got->bytes.get(), expected->bytes.get(), got->num_bytes), 0) << what;
    return;
  }
  for (int64_t k = 0; k < got->size(); k++) {
    const double a = got->as_double(k), b = expected->as_double(k);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b)) + rounding)
        << "element " << k << " is " << a << ", not " << b << "\n"
        << what;
  }
}

/// `expected`: what evaluate(fn, in) gives.
inline void expect_cuda_schedule(const TensorFn& fn, const std::vector<Constant>& in,
                                 const std::vector<Constant>& expected, double tolerance = 1e-4) {
  for (const auto* list : {&fn.inputs, &fn.outputs})
    for (const Buffer& b : *list)
      if (!is_static(b->shape) || b->dtype == DType::String) return;  // strings have no kernel
  for (const Buffer& b : fn.outputs)
    if (!producer(fn, b)) return;  // an operand, passed through: no kernel either
  for (const bool constant : {false, true}) {
    const Scheduled s = schedule_cuda(fn, std::vector<bool>(fn.inputs.size(), constant), *find_arch("sm_80"));
    ScheduleMemory memory(s, fn, in);
    const std::vector<Constant> got = memory.run();
    for (size_t k = 0; k < got.size(); k++)
      expect_close(got[k], expected[k], tolerance,
                   "CUDA schedule \"" + s.family + "\" of\n" + to_text(fn) + to_text(s.body), 4e-7 * largest(in));
  }
}

}  // namespace tc::testing
