// The plain loops, in the order of the definition: what every function falls back on. The outermost loop of a stage is
// shared among threads where its iterations are independent and worth it, innermost loops run over vectors where they can.
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/lower_lanes.h"
#include "passes/schedule/primitives.h"
#include "support/text.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

int64_t work_of(const Stage& s) {
  int64_t n = 1;
  for (const auto* l : {&s.axes, &s.raxes})
    for (const Axis& a : *l) n = a.extent.is_const() && n < (int64_t(1) << 40) ? n * a.extent.value : n;
  return n;
}

bool is_plain(const Stage& s) { return s.kind != Stage::Kind::Nest && s.scan < 0; }

// Index raises a status word, which threads must not race for; it is only ever set, to the same value.
void share_outermost(Schedule& loops, const TensorFn& fn) {
  for (const Stage& stage : fn.stages) {
    if (!is_plain(stage) || stage.axes.empty() || stage.axes[0].extent.value < 2) continue;
    if (work_of(stage) < kParallelThreshold) continue;
    const Buffer result = loops.buffer(stage);
    loops.attempt([&](Schedule& s) { s.parallel(s.loops(result)[0]); });
  }
}

// The innermost loops that have a form on vectors, of iterations that are independent.
void vectorize_innermost(Schedule& loops) {
  std::vector<Var> innermost;
  walk(loops.body(), [&](const Stmt& s) {
    const For* f = as<For>(s);
    if (f && f->kind == ForKind::Serial && loops_in(f->body).empty() && runs_on_vectors(*f))
      innermost.push_back(f->var);
    return true;
  });
  for (const Var& v : innermost) loops.attempt([&](Schedule& s) { s.vectorize(v); });
}

}  // namespace

std::optional<Scheduled> schedule_naive(const TemplateArgs& a) {
  Schedule loops(a.fn, a.options, a.constant_input);
  a.plan.steps(
      loops,
      [&](Schedule& s) {
        share_outermost(s, a.fn);
        vectorize_innermost(s);
      },
      false);
  return with_steps(a, loops);
}

Scheduled with_steps(const TemplateArgs& a, const Schedule& loops) {
  Scheduled s;
  s.inputs = a.fn.inputs;
  for (size_t i = 0; i < s.inputs.size(); i++) s.input_index.push_back(int(i));
  s.outputs = a.fn.outputs;
  loops.hand_over(s);
  const std::string plain = "plain loops in the order of the definition";
  s.description = loops.only({"parallel"})                ? plain
                  : loops.only({"parallel", "vectorize"}) ? plain + ", vectors along the innermost"
                                                          : join(s.steps, "; ");
  s.family = "naive";
  return s;
}

}  // namespace tc
