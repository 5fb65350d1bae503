// Sketches: steps over the plain loops of any function, whose sizes are numbers of the line `sketch`. No template knows what is
// computed; every step is checked, and one that is refused leaves its nest as it was.
//
// First where things are computed: temporaries of one formula inline (`inline_NAME`), others in one of the loops of the last stage
// (`at`: how many of them stand around all stages). Then each nest on its own (sketch_nest.cc), at last threads.
//
// It is never the model's choice: `tc-emit tune` looks for better numbers, and keeps the steps.
#include "templates/cpu/sketch.h"

#include <algorithm>

#include "ir/loop/print.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "templates/cpu/lanes.h"

namespace tc {
namespace {

constexpr int64_t kStackBytes = 4096;

bool is_output(const TensorFn& fn, const Stage& stage) {
  return std::any_of(stage.outputs.begin(), stage.outputs.end(), [&](const Buffer& b) {
    return std::find(fn.outputs.begin(), fn.outputs.end(), b) != fn.outputs.end();
  });
}

bool is_plain(const Stage& stage) {
  return stage.kind != Stage::Kind::Nest && stage.scan < 0 && stage.outputs.size() == 1;
}

std::string name_of(const Schedule& s, const Buffer& b) {
  const auto names = printed_names(s.body());
  const auto it = names.find(b.get());
  return it == names.end() ? b->name : it->second;
}

int64_t bytes_of(const Buffer& b) {
  int64_t n = (info(b->dtype).bits + 7) / 8;
  for (const Dim& d : b->shape) n = d.is_const() && n <= kStackBytes ? n * d.value : kStackBytes + 1;
  return n;
}

/// The stages that are left, and the loops that they share.
struct Structure {
  std::vector<const Stage*> stages;
  std::set<Var> shared;
};

void compute_inline(Schedule& s, const TemplateArgs& a, Structure& made) {
  const TensorFn& fn = a.fn;
  for (size_t i = 0; i < fn.stages.size(); i++) {
    const Stage& stage = fn.stages[i];
    bool gone = false;
    if (is_plain(stage) && stage.kind == Stage::Kind::Compute && !is_output(fn, stage)) {
      const Buffer b = s.buffer(stage);
      gone = a.plan.flag("inline_" + name_of(s, b), !is_costly(stage.values[0])) &&
             s.attempt([&](Schedule& t) { t.compute_inline(b); });
    }
    if (!gone) made.stages.push_back(&stage);
  }
}

void compute_at(Schedule& s, const TemplateArgs& a, Structure& made) {
  const Stage& last = *made.stages.back();
  if (made.stages.size() < 2 || !is_plain(last)) return;
  const std::vector<Var> loops = s.loops(s.buffer(last));
  const int64_t at = a.plan.in_range(
      "at", [] { return 0; }, 0, int64_t(loops.size()));
  if (at == 0) return;
  const Var& v = loops[size_t(at) - 1];
  bool moved = false;
  for (size_t i = made.stages.size() - 1; i-- > 0;) {
    if (!is_plain(*made.stages[i]) || is_output(a.fn, *made.stages[i])) continue;
    s.attempt([&](Schedule& t) {
      const Buffer part = t.compute_at(t.buffer(*made.stages[i]), v);
      if (bytes_of(part) <= kStackBytes) t.attempt([&](Schedule& u) { u.set_scope(part, Scope::Stack); });
      moved = true;
    });
  }
  if (moved) made.shared.insert(loops.begin(), loops.begin() + at);
}

/// Loops that other code than formulas has written: the innermost ones in vectors where that is possible.
void vectorize_innermost(Schedule& s) {
  std::vector<Var> innermost;
  for (const For* f : loops_in(s.body()))
    if (loops_in(f->body).empty()) innermost.push_back(f->var);
  for (const Var& v : innermost) s.attempt([&](Schedule& t) { t.vectorize(v); });
}

void share_outermost(Schedule& s, const Structure& made) {
  for (const Stage* stage : made.stages) {
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
  Structure made;
  compute_inline(s, a, made);
  compute_at(s, a, made);
  for (const Stage* stage : made.stages) {
    if (!is_plain(*stage)) continue;
    const Buffer result = s.buffer(*stage);
    const std::string suffix = made.stages.size() > 1 ? "_" + name_of(s, result) : "";
    s.attempt([&](Schedule& t) { sketch_nest(t, result, made.shared, suffix, a); });
  }
  const bool any_nest =
      std::any_of(made.stages.begin(), made.stages.end(), [](const Stage* x) { return x->kind == Stage::Kind::Nest; });
  if (any_nest && a.plan.flag("vectors", true)) vectorize_innermost(s);
  if (a.plan.flag("parallel", true)) share_outermost(s, made);
  if (s.lines().empty()) return {};
  std::vector<PlanLine> lines = {{"naive", {}}};
  lines.insert(lines.end(), s.lines().begin(), s.lines().end());
  a.plan.stands_for(std::move(lines));
  s.call_again(names);
  return with_steps(a, s);
}

}  // namespace tc
