#include "passes/program/planned_schedules.h"

#include "passes/program/kernel_name.h"
#include "passes/schedule/planner.h"

namespace tc {
namespace {

// Of a kernel's name what does not depend on its loops.
std::string signature_of(const TensorFn& fn) {
  const std::string name = kernel_name(fn, "");
  return name.substr(0, name.size() - 5);
}

}  // namespace

PlannedSchedules::PlannedSchedules(const PassContext& cx)
    : cx_(cx), used_(cx.schedules ? cx.schedules->plans.size() : 0) {}

size_t PlannedSchedules::stated_for(const std::string& signature, const std::string& function) const {
  size_t i = 0;
  while (i < used_.size() && !cx_.schedules->plans[i].fits(signature, function)) i++;
  return i;
}

Diagnostic PlannedSchedules::refusal(const language::Place& at, const std::string& message) const {
  return {"TC0606", ExitCode::Rejected, {}, language::render(cx_.schedules->source, {at, message}), {}, false};
}

Scheduled PlannedSchedules::schedule(const TensorFn& fn, const std::vector<bool>& constant_input,
                                     const ScheduleOptions& options) {
  if (!cx_.schedules && !cx_.scheduled) return cx_.backend->schedule(fn, constant_input, options);
  FunctionPlan made{signature_of(fn), std::string(cx_.target.processor), function_hash(fn, constant_input)};
  const size_t i = stated_for(made.signature, made.function);
  const FunctionPlan* stated = i < used_.size() ? &cx_.schedules->plans[i] : nullptr;
  if (stated && !stated->processor.empty() && stated->processor != made.processor)
    throw Error(refusal(
        stated->at, "this schedule is for \"" + printable(stated->processor) + "\", and --cpu is " + made.processor));
  Planner planner = stated ? Planner(*stated) : Planner();
  ScheduleOptions o = options;
  o.planner = &planner;
  try {
    Scheduled s = cx_.backend->schedule(fn, constant_input, o);
    planner.finish();
    if (stated) used_[i] = true;
    made.lines = planner.lines();
    if (cx_.scheduled) cx_.scheduled(made);
    return s;
  } catch (const PlanRefused& e) {
    throw Error(refusal(e.at, e.message));
  }
}

void PlannedSchedules::finish() const {
  for (size_t i = 0; i < used_.size(); i++) {
    const FunctionPlan& p = cx_.schedules->plans[i];
    if (used_[i]) continue;
    cx_.diagnostics->add(refusal(p.at, "no function of this model has the signature \"" + printable(p.signature) +
                                           "\"" + (p.function.empty() ? "" : " and this hash") +
                                           ", or a schedule above takes them all"));
  }
}

}  // namespace tc
