// Steps as text, taken: from a line of a schedule to a primitive of Schedule.
#pragma once
#include "passes/schedule/primitives.h"

namespace tc {

/// Takes the step that `line` states. Loops and buffers are called as to_text(s.body()) calls them; `as` renames what the
/// step makes. Loops for the threads of a CPU and loops for those of a GPU are told apart by `gpu`: the other kind is refused.
/// Throws ScheduleError; `s` is then as it was.
void apply_step(Schedule& s, const PlanLine& line, bool gpu);

/// The names of all steps, in alphabetical order.
std::vector<std::string> step_names();

}  // namespace tc
