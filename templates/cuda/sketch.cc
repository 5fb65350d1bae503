// Sketches on CUDA: steps over the plain loops of any function, whose sizes are numbers of the line `sketch`. No template knows what
// is computed; every step is checked, and one that is refused leaves its nest as it was.
//
// First where things are computed (templates/sketch.h): temporaries of one formula inline, others in a thread that has some
// iterations of the last stage's loops to itself. Then each nest that is left becomes a launch of its own (sketch_nest.cc). Of what no
// formula says, and of nests that were refused, independent iterations have a thread each.
//
// It is never the model's choice: `tc-emit tune` looks for better numbers, and keeps the steps.
#include "templates/cuda/sketch.h"

#include "support/text.h"

namespace tc {
namespace {

/// A thread for each iteration of the loops that all stages share.
void bind_shared(Schedule& s, const SketchedStages& stages, const CudaArgs& a) {
  std::vector<Var> loops;
  int64_t n = 1;
  for (const Var& v : s.loops(s.buffer(*stages.list.back()))) {
    if (stages.shared.count(v) == 0) continue;
    loops.push_back(v);
    n *= trips(s, v).value_or(1);
  }
  const int64_t threads = decide_threads(a.plan, n, "threads_at");
  s.attempt([&](Schedule& t) { bind_points(t, loops, threads, true); });
}

}  // namespace

std::optional<Scheduled> cuda_sketch(const CudaArgs& a) {
  if (!a.plan.listens()) return {};
  Schedule s(a.fn, a.options);
  const auto names = s.tell_apart();
  const SketchedStages stages = place_temporaries(s, a.fn, a.plan, kThreadBytes);
  for (const Stage* stage : stages.list) {
    if (!is_plain(*stage)) continue;
    const Buffer result = s.buffer(*stage);
    const std::vector<Var> loops = s.loops(result);
    if (!loops.empty() && stages.shared.count(loops[0]) != 0) continue;
    const std::string suffix = stages.suffix(s, result);
    s.attempt([&](Schedule& t) { sketch_launch(t, result, suffix, a); });
  }
  if (!stages.shared.empty()) bind_shared(s, stages, a);
  bind_independent(s, a.plan, true);
  if (s.lines().empty() || !why_no_kernel(s.body()).empty()) return {};
  finish_sketch(s, names, a.plan);
  Scheduled made = with_operands(a.fn, "naive", join(s.steps(), "; "));
  s.hand_over(made);
  return made;
}

}  // namespace tc
