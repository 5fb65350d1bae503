// The plain loops, in the order of the definition: what every function falls back on. If a single nest makes the
// result, its outermost loop is split among threads.
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

int64_t work_of(const TensorFn& fn) {
  int64_t work = 0;
  for (const Stage& s : fn.stages) {
    int64_t n = 1;
    for (const auto* l : {&s.axes, &s.raxes})
      for (const Axis& a : *l) n = a.extent.is_const() && n < (int64_t(1) << 40) ? n * a.extent.value : n;
    work += n;
  }
  return work;
}

bool is_plain(const Stage& s) { return s.kind != Stage::Kind::Nest && s.scan < 0; }

// Index raises a status word, which threads must not race for; it is only ever set, to the same value.
Stmt parallel_outermost(const TensorFn& fn, const Stmt& body) {
  const For* f = as<For>(body);
  if (fn.stages.size() != 1 || !is_plain(fn.stages[0]) || !f || fn.stages[0].axes.empty()) return body;
  if (f->var != fn.stages[0].axes[0].var || work_of(fn) < kParallelThreshold) return body;
  if (!as_const_int(f->extent) || *as_const_int(f->extent) < 2) return body;
  return loop(f->var, f->extent, f->body, ForKind::Parallel, f->begin);
}

}  // namespace

std::optional<Scheduled> schedule_naive(const TemplateArgs& a) {
  Scheduled s;
  s.body = parallel_outermost(a.fn, lower_naive(a.fn));
  s.inputs = a.fn.inputs;
  for (size_t i = 0; i < s.inputs.size(); i++) s.input_index.push_back(int(i));
  s.outputs = a.fn.outputs;
  s.words = "plain loops in the order of the definition";
  s.family = "naive";
  return s;
}

}  // namespace tc
