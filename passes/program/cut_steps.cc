// cut_steps: very long lists of steps go on in another function.
//
//   call 1 ... call 2000     ->     steps_1: call 1 ... call 256     steps_2: call 257 ... call 512     ...
//
// Compilers take more than linear time for one function of thousands of calls, and reviewers lose their place. In C the
// outermost list is cut, where it is much longer than a part. In CUDA a part is what is captured as one graph: decisions
// of the host end it anyway, so that the steps between two of them are counted, inside of branches and loops of the host,
// too; a loop that is captured counts with all of its iterations and is not cut.
#include "passes/program/cut_steps.h"

namespace tc {
namespace {

constexpr int64_t kPart = 256;  // steps

void cut_outermost(std::vector<Step>& steps) {
  if (int64_t(steps.size()) <= 2 * kPart) return;
  for (size_t i = 0; i < steps.size(); i += size_t(kPart)) steps[i].begins_part = true;
}

int64_t captured_steps(const std::vector<Step>& steps) {
  int64_t n = 0;
  for (const Step& s : steps) {
    const LoopStep* l = std::get_if<LoopStep>(&s.kind);
    n = checked_add(n, l ? checked_mul(l->trips, captured_steps(l->body)) : 1);
  }
  return n;
}

void cut_between_decisions(std::vector<Step>& steps) {
  int64_t before = 0;
  for (Step& s : steps) {
    if (before >= kPart) {
      s.begins_part = true;
      before = 0;
    }
    LoopStep* const l = std::get_if<LoopStep>(&s.kind);
    IfStep* const branch = std::get_if<IfStep>(&s.kind);
    const CopyStep* const copy = std::get_if<CopyStep>(&s.kind);
    if (branch) {
      cut_between_decisions(branch->then);
      cut_between_decisions(branch->otherwise);
    }
    if (l && !l->in_graph) cut_between_decisions(l->body);
    const bool of_host = branch || (l && !l->in_graph) || (copy && copy->part != CopyStep::Part::None) ||
                         std::holds_alternative<ContinueStep>(s.kind);
    before = of_host ? 0 : checked_add(before, l ? checked_mul(l->trips, captured_steps(l->body)) : 1);
  }
}

}  // namespace

void cut_steps(Program& p, bool cuda) { cuda ? cut_between_decisions(p.steps) : cut_outermost(p.steps); }

}  // namespace tc
