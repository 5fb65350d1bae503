// How a target picks a template: the first of its list that takes the function, or the one that a schedule states.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "passes/schedule/planner.h"
#include "passes/schedule/schedule.h"

namespace tc {

/// `Args`: what the templates of a target get (templates/cpu/template.h, templates/cuda/template.h).
template <class Args>
struct Template {
  std::string_view name;  // in schedules
  std::optional<Scheduled> (*make)(const Args& a);
};

/// The loops by the first that takes the function. What it decides is a line of the plan and those behind it; of one that
/// declines nothing is kept. Throws PlanRefused where a template is stated that does not take the function.
template <class Args>
Scheduled choose_template(std::span<const Template<Args>> list, Args args) {
  Planner* const planner = args.options.planner;
  for (const Template<Args>& t : list) {
    if (planner && !planner->wants(t.name)) continue;
    const size_t mark = planner ? planner->size() : 0;
    args.plan = PlanEntry(planner, t.name);
    if (std::optional<Scheduled> s = t.make(args)) return std::move(*s);
    if (planner) planner->forget_from(mark);
  }
  if (planner && planner->applies())
    planner->refuse(
        "no template of that name takes this function; the model's choice is what --write-schedules writes");
  throw InternalError("no schedule for " + to_text(args.fn));
}

}  // namespace tc
