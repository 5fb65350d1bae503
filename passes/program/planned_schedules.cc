#include "passes/program/planned_schedules.h"

#include <optional>

#include "ir/loop/print.h"
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

bool PlannedSchedules::fits(const FunctionPlan& stated, const FunctionPlan& f, const TensorFn& fn) const {
  return stated.fits(f.signature, f.function) && (!stated.selects || stated.selects->fits(fn, stage_names(fn)));
}

size_t PlannedSchedules::stated_for(const FunctionPlan& f, const TensorFn& fn) {
  if (!cx_.schedules) return used_.size();
  size_t i = 0;
  while (i < used_.size() && !fits(cx_.schedules->plans[i], f, fn)) i++;
  if (i == used_.size()) return i;
  const FunctionPlan& p = cx_.schedules->plans[i];
  const std::string it = "\"" + printable(f.signature) + "\"";
  for (size_t k = i + 1; p.selects && k < used_.size(); k++)
    if (const FunctionPlan& q = cx_.schedules->plans[k]; q.selects && fits(q, f, fn))
      throw Error(refusal({q.at, "this schedule and the one in line " + to_text(int64_t(p.at.line)) + " are both for " +
                                     it + "; say more of what they are for"}));
  if (p.selects && p.selects->is_exact() && p.function.empty() && !used_[i].empty() && used_[i] != f.function)
    throw Error(refusal({p.at, "this is for two functions, of \"" + used_[i] + "\" and of \"" + f.function +
                                   "\": what they compute differs in more than that; say which, or put a '*' into it "
                                   "for all"}));
  used_[i] = f.function;
  return i;
}

Diagnostic PlannedSchedules::refusal(const PlanRefused& why) const {
  const std::string at = language::render(cx_.schedules->source, {why.at, why.message});
  return {"TC0606", ExitCode::Rejected, {}, at + (why.loops.empty() ? "" : "the loops before it:\n" + why.loops), {},
          false};
}

Scheduled PlannedSchedules::apply(const FunctionPlan* stated, FunctionPlan& made, const TensorFn& fn,
                                  const std::vector<bool>& constant_input, const ScheduleOptions& options,
                                  std::vector<PlanLine>* packing) {
  // What a recorded plan does not say, because its template had fewer numbers then, the model decides.
  Planner planner = !stated ? Planner() : stated->recorded ? Planner::beginning_with(*stated) : Planner(*stated);
  ScheduleOptions o = options;
  o.planner = &planner;
  std::string text;
  if (is_shown(made))
    planner.shown = [&](const std::string& step, const Stmt& loops) {
      text += (step.empty() ? "" : "  " + step + "\n") + to_text(loops, 2);
    };
  Scheduled s = cx_.backend->schedule(fn, constant_input, o);
  planner.finish();
  made.lines = planner.written();
  s.steps = planner.texts();
  if (packing) *packing = planner.packing();
  if (planner.shown) show(made, text.empty() ? s.body : Stmt(), text);
  return s;
}

bool PlannedSchedules::is_shown(const FunctionPlan& f) {
  const std::string& wanted = cx_.options.print_steps;
  if (wanted.empty()) return false;
  signatures_.insert(f.signature);
  // A kernel's name is the signature and four digits.
  return FunctionPlan{wanted}.fits(f.signature, "") || FunctionPlan{wanted}.fits(f.signature + "_", "") ||
         (wanted.size() > 5 && FunctionPlan{wanted.substr(0, wanted.size() - 5)}.fits(f.signature, ""));
}

void PlannedSchedules::show(const FunctionPlan& made, const Stmt& whole, const std::string& steps) {
  shown_ = true;
  FunctionPlan head = made;
  if (!whole) std::erase_if(head.lines, [](const PlanLine& l) { return l.is_step(); });
  if (cx_.shown) cx_.shown(language::print(head) + (whole ? to_text(whole, 2) : steps));
}

Scheduled PlannedSchedules::schedule(const TensorFn& fn, const std::vector<Constant>& constants,
                                     const ScheduleOptions& options, std::string& function,
                                     std::vector<PlanLine>* packing) {
  std::vector<bool> known;
  for (const Constant& c : constants) known.push_back(c != nullptr);
  FunctionPlan made;
  const bool is_named = cx_.schedules || cx_.scheduled || cx_.called || !cx_.options.print_steps.empty() || packing;
  if (!is_named) return apply(nullptr, made, fn, known, options, nullptr);
  made = {signature_of(fn), std::string(cx_.target.processor), function_hash(fn, known)};
  function = made.function;
  const size_t i = stated_for(made, fn);
  const FunctionPlan* stated = cx_.schedules && i < used_.size() ? &cx_.schedules->plans[i] : nullptr;
  if (stated && !stated->processor.empty() && stated->processor != made.processor)
    throw Error(refusal(
        {stated->at, "this schedule is for \"" + printable(stated->processor) + "\", and --cpu is " + made.processor}));
  std::optional<Scheduled> s;
  try {
    s = apply(stated, made, fn, known, options, packing);
  } catch (const PlanRefused& e) {
    if (!stated->recorded) throw Error(refusal(e));
    cx_.diagnostics->add({"TC0607",
                          ExitCode::Ok,
                          {},
                          "the schedule recorded for \"" + printable(made.signature) + "\" cannot be: " + e.message,
                          {"the cost model decides instead; tc-emit tune measures anew"},
                          true});
    stated = nullptr;
    s = apply(stated, made, fn, known, options, packing);
  }
  made.recorded = stated && stated->recorded;
  if (cx_.scheduled) cx_.scheduled({made, fn, constants});
  return std::move(*s);
}

void PlannedSchedules::finish() const {
  if (!cx_.options.print_steps.empty() && !shown_)
    cx_.diagnostics->add({"TC0606",
                          ExitCode::Rejected,
                          {},
                          "no function of this model has the signature \"" + printable(cx_.options.print_steps) + "\"",
                          {"there are " + join({signatures_.begin(), signatures_.end()}, ", ")},
                          false});
  for (size_t i = 0; i < used_.size(); i++) {
    const FunctionPlan& p = cx_.schedules->plans[i];
    if (!used_[i].empty() || p.recorded) continue;
    const std::string wanted = p.selects
                                   ? "no function of this model is " + printable(language::print(*p.selects))
                                   : "no function of this model has the signature \"" + printable(p.signature) + "\"";
    cx_.diagnostics->add(refusal({p.at, wanted +
                                            (p.function.empty() ? ""
                                             : p.selects        ? " of that hash"
                                                                : " and this hash") +
                                            ", or a schedule above takes them all"}));
  }
}

}  // namespace tc
