// Schedules of the user's, and what the backend decided where there is none: compile_kernel.cc schedules each function here.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "passes/backend.h"
#include "passes/pass.h"
#include "passes/schedule/planner.h"

namespace tc {

class PlannedSchedules {
 public:
  /// `cx` has to stay.
  explicit PlannedSchedules(const PassContext& cx);

  /// The loops of `fn`: by the first of cx.schedules that fits, else as the backend likes; cx.scheduled is told. Throws Error
  /// TC0606 where a stated schedule cannot be.
  /// A recorded one that cannot be is left out, with a warning. `constants`: one per fn.inputs, null where it is none.
  /// `function`: becomes its function_hash() where somebody asks for it. `packing`: becomes Planner::packing(), unless it is null.
  Scheduled schedule(const TensorFn& fn, const std::vector<Constant>& constants, const ScheduleOptions& options,
                     std::string& function, std::vector<PlanLine>* packing = nullptr);
  /// Adds an error TC0606 to cx.diagnostics for every stated schedule that no function took, and where no function is the one
  /// whose steps are to be shown.
  void finish() const;

 private:
  /// The position of the schedule that is for `fn`; that of the end if there is none. Throws Error where several of equal standing are, or
  /// where one that leaves nothing open is for another function, too.
  size_t stated_for(const FunctionPlan& f, const TensorFn& fn);
  bool fits(const FunctionPlan& stated, const FunctionPlan& f, const TensorFn& fn) const;
  /// By the plan, or by the model where it is null. Throws PlanRefused.
  Scheduled apply(const FunctionPlan* stated, FunctionPlan& made, const TensorFn& fn,
                  const std::vector<bool>& constant_input, const ScheduleOptions& options,
                  std::vector<PlanLine>* packing);
  bool is_shown(const FunctionPlan& f);
  /// The decisions on a function and its loops, after every step where there are steps, go to cx.shown.
  void show(const FunctionPlan& made, const Stmt& whole, const std::string& steps);
  Diagnostic refusal(const PlanRefused& why) const;

  const PassContext& cx_;
  std::vector<std::string> used_;     // by cx_.schedules: the hash of the last function that it was for; "": none yet
  std::set<std::string> signatures_;  // of all functions, where steps are to be shown
  bool shown_ = false;                // the loops of one at least
};

}  // namespace tc
