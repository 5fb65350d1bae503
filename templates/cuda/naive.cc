// The loops of the definition under the steps of a schedule that is stated: nothing else is decided on them. What the steps
// leave outside of blocks and threads runs in a single thread.
#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "passes/analysis/nest.h"
#include "passes/loop/launches.h"
#include "passes/schedule/primitives.h"
#include "support/text.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

// A nest that becomes a launch: loops of blocks and threads outermost, each kind once.
std::string why_no_launch(const Stmt& s) {
  Stmt outermost = s;
  while (const Alloc* a = as<Alloc>(outermost)) outermost = a->body;
  const For* first = as<For>(outermost);
  if (!first || !is_gpu(first->kind))
    return "loops of blocks and threads stand inside of something that is no plain loop";
  std::vector<ForKind> met;
  for (const For* f : loops_in(s)) {
    if (!is_gpu(f->kind)) continue;
    for (const ForKind k : met)
      if (k == f->kind) return "two loops of one launch are " + std::string(kind_name(k));
    met.push_back(f->kind);
  }
  return "";
}

// Why these loops are not a sequence of launches, as template.h describes it; "" if they are.
std::string why_no_launches(const Stmt& s) {
  if (!s || !has_device_loops(s)) return "";
  if (const Alloc* a = as<Alloc>(s); a && a->buffer->scope == Scope::Workspace) return why_no_launches(a->body);
  if (const Comment* c = as<Comment>(s)) return why_no_launches(c->body);
  if (const Seq* q = as<Seq>(s)) {
    std::string why;
    for (const Stmt& x : q->list)
      if (why.empty()) why = why_no_launches(x);
    return why;
  }
  if (const For* f = as<For>(s); f && f->kind == ForKind::Serial) {
    if (!as_const_int(f->begin) || !as_const_int(f->extent))
      return "loop " + f->var->name + " around launches runs a number of times that is no constant";
    return why_no_launches(f->body);
  }
  return why_no_launch(s);
}

// Memory that threads share may need a barrier where not all of them come by, which the placing of barriers finds; "" if not.
std::string why_no_barriers(const Stmt& s) {
  try {
    synchronise(s);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

std::string why_no_kernel(const Stmt& s) {
  const Stmt simple = simplify(s);  // a loop of one block is none
  const std::string why = why_no_launches(simple);
  return why.empty() ? why_no_barriers(simple) : why;
}

std::optional<Scheduled> cuda_naive(const CudaArgs& a) {
  if (!a.options.planner || !a.options.planner->applies()) return {};
  Schedule loops(a.fn, a.options, a.constant_input);
  a.plan.steps(
      loops, [](Schedule&) {}, true);
  if (const std::string why = why_no_kernel(loops.body()); !why.empty()) a.options.planner->refuse(why);
  Scheduled s = with_operands(a.fn, "naive", join(loops.steps(), "; "));
  loops.hand_over(s);
  return s;
}

}  // namespace tc
