#include "passes/program/planned_schedules.h"

#include <optional>

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

Scheduled PlannedSchedules::apply(const FunctionPlan* stated, FunctionPlan& made, const TensorFn& fn,
                                  const std::vector<bool>& constant_input, const ScheduleOptions& options) const {
  Planner planner = stated ? Planner(*stated) : Planner();
  ScheduleOptions o = options;
  o.planner = &planner;
  Scheduled s = cx_.backend->schedule(fn, constant_input, o);
  planner.finish();
  made.lines = planner.lines();
  return s;
}

Scheduled PlannedSchedules::schedule(const TensorFn& fn, const std::vector<Constant>& constants,
                                     const ScheduleOptions& options, std::string& function) {
  std::vector<bool> known;
  for (const Constant& c : constants) known.push_back(c != nullptr);
  if (!cx_.schedules && !cx_.scheduled && !cx_.called) return cx_.backend->schedule(fn, known, options);
  FunctionPlan made{signature_of(fn), std::string(cx_.target.processor), function_hash(fn, known)};
  function = made.function;
  const size_t i = stated_for(made.signature, made.function);
  const FunctionPlan* stated = i < used_.size() ? &cx_.schedules->plans[i] : nullptr;
  if (stated && !stated->processor.empty() && stated->processor != made.processor)
    throw Error(refusal(
        stated->at, "this schedule is for \"" + printable(stated->processor) + "\", and --cpu is " + made.processor));
  std::optional<Scheduled> s;
  try {
    s = apply(stated, made, fn, known, options);
  } catch (const PlanRefused& e) {
    if (!stated->recorded) throw Error(refusal(e.at, e.message));
    cx_.diagnostics->add({"TC0607",
                          ExitCode::Ok,
                          {},
                          "the schedule recorded for \"" + printable(made.signature) + "\" cannot be: " + e.message,
                          {"the cost model decides instead; tc-emit tune measures anew"},
                          true});
    stated = nullptr;
    s = apply(stated, made, fn, known, options);
  }
  if (stated) used_[i] = true;
  made.recorded = stated && stated->recorded;
  if (cx_.scheduled) cx_.scheduled({made, fn, constants});
  return std::move(*s);
}

void PlannedSchedules::finish() const {
  for (size_t i = 0; i < used_.size(); i++) {
    const FunctionPlan& p = cx_.schedules->plans[i];
    if (used_[i] || p.recorded) continue;
    cx_.diagnostics->add(refusal(p.at, "no function of this model has the signature \"" + printable(p.signature) +
                                           "\"" + (p.function.empty() ? "" : " and this hash") +
                                           ", or a schedule above takes them all"));
  }
}

}  // namespace tc
