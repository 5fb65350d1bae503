// Schedules of the user's, and what the backend decided where there is none: program_kernels.cc schedules each function here.
#pragma once
#include "passes/backend.h"
#include "passes/pass.h"

namespace tc {

class PlannedSchedules {
 public:
  /// `cx` has to stay.
  explicit PlannedSchedules(const PassContext& cx);

  /// The loops of `fn`: by the first of cx.schedules that fits, else as the backend likes; cx.scheduled is told. Throws Error
  /// TC0606 where a stated schedule cannot be.
  /// A recorded one that cannot be is left out, with a warning. `constants`: one per fn.inputs, null where it is none.
  /// `function`: becomes its function_hash() where somebody asks for it.
  Scheduled schedule(const TensorFn& fn, const std::vector<Constant>& constants, const ScheduleOptions& options,
                     std::string& function);
  /// Adds an error TC0606 to cx.diagnostics for every stated schedule that no function took.
  void finish() const;

 private:
  size_t stated_for(const std::string& signature, const std::string& function) const;
  /// By the plan, or by the model where it is null. Throws PlanRefused.
  Scheduled apply(const FunctionPlan* stated, FunctionPlan& made, const TensorFn& fn,
                  const std::vector<bool>& constant_input, const ScheduleOptions& options) const;
  Diagnostic refusal(const language::Place& at, const std::string& message) const;

  const PassContext& cx_;
  std::vector<bool> used_;  // by cx_.schedules
};

}  // namespace tc
