// Sketches: steps over the plain loops of any function, whose sizes are numbers of the line `sketch`. No template knows what is
// computed; every step is checked, and one that is refused leaves its nest as it was.
//
// First where things are computed: temporaries of one formula inline (`inline_NAME`), others in one of the loops of the last stage
// (`at`: how many of them stand around all stages). Then each nest on its own (sketch_nest.cc), at last threads.
//
// It is never the model's choice: `tc-emit tune` looks for better numbers, and keeps the steps.
#include "templates/cpu/sketch.h"

#include <algorithm>

#include "passes/analysis/nest.h"

namespace tc {
namespace {

/// Loops that other code than formulas has written: the innermost ones in vectors where that is possible.
void vectorize_innermost(Schedule& s) {
  std::vector<Var> innermost;
  for (const For* f : loops_in(s.body()))
    if (loops_in(f->body).empty()) innermost.push_back(f->var);
  for (const Var& v : innermost) s.attempt([&](Schedule& t) { t.vectorize(v); });
}

void share_outermost(Schedule& s, const SketchedStages& made) {
  for (const Stage* stage : made.list) {
    if (!is_plain(*stage)) continue;
    const std::vector<Var> loops = s.loops(s.buffer(*stage));
    if (!loops.empty()) s.attempt([&](Schedule& t) { t.parallel(loops[0]); });
  }
}

}  // namespace

std::optional<Scheduled> schedule_sketch(const TemplateArgs& a) {
  if (!a.plan.listens()) return {};
  Schedule s(a.fn, a.options);
  const auto names = s.tell_apart();
  const SketchedStages made = place_temporaries(s, a.fn, a.plan, INT64_MAX);
  for (const Stage* stage : made.list) {
    if (!is_plain(*stage)) continue;
    const Buffer result = s.buffer(*stage);
    const std::string suffix = made.suffix(s, result);
    s.attempt([&](Schedule& t) { sketch_nest(t, result, made.shared, suffix, a); });
  }
  const bool any_nest =
      std::any_of(made.list.begin(), made.list.end(), [](const Stage* x) { return x->kind == Stage::Kind::Nest; });
  if (any_nest && a.plan.flag("vectors", true)) vectorize_innermost(s);
  if (a.plan.flag("parallel", true)) share_outermost(s, made);
  if (s.lines().empty()) return {};
  finish_sketch(s, names, a.plan);
  return with_steps(a, s);
}

}  // namespace tc
