// A target as the passes see it: it makes loops of functions. The passes know no template and no processor; a target is one
// implementation, beside its templates (templates/cpu/backend.h, templates/cuda/backend.h).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"
#include "passes/loop/loop_pass.h"
#include "passes/schedule/schedule.h"

namespace tc {

/// Implementations are immutable, and outlive the contexts that point to them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual TargetTraits traits() const = 0;
  /// Whether a template computes the several contractions of `fn` in one kernel, and that is expected to beat a kernel for
  /// each. `constant_input`: one flag per fn.inputs, known at compile time.
  virtual bool region_pays(const TensorFn& fn, const std::vector<bool>& constant_input,
                           const ScheduleOptions& options) const = 0;
  /// Whether the loops of `fn`, a sum of products with a factor that is computed from constants, read those constants as
  /// they are stored, in few bits or as halves, instead of the floats that they stand for.
  virtual bool reads_few_bits(const TensorFn& /*fn*/, const std::vector<bool>& /*constant_input*/,
                              const ScheduleOptions& /*options*/) const {
    return false;
  }
  /// Whether the loops of `fn` can read and write tensors whose rows lie apart (BufferDef::strides), as parts of larger ones:
  /// any of its operands, or its result where `result` is set.
  virtual bool takes_strides(const TensorFn& /*fn*/, bool /*result*/) const { return false; }
  /// The loops of `fn`. Every function has some; the same arguments give the same text on every machine.
  virtual Scheduled schedule(const TensorFn& fn, const std::vector<bool>& constant_input,
                             const ScheduleOptions& options) const = 0;
  /// The kernel of loops that schedule() made: body, parameters and scratch are set. `title`: what dumps call it.
  virtual Kernel lower(const Scheduled& s, const std::string& title, LoopPassRunner& passes) const = 0;
  /// Nanoseconds that one thread (CUDA: the whole device) takes for `work` at the very least: its products at the rate of a
  /// loop that stays in registers, its operands at the bandwidth of the level of memory that they come from. `run_bytes`: what
  /// a whole run of the program touches. 0 where the table of processors does not say. The only place that computes floors:
  /// bench, profiles, manifests and reports show this number.
  virtual double floor_ns(const KernelWork& work, int64_t run_bytes) const = 0;
  /// The names of the templates, in the order in which they are asked. "naive" is the loops of the definition.
  virtual std::vector<std::string_view> templates() const = 0;
};

}  // namespace tc
