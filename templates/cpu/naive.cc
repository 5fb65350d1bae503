// The plain loops, in the order of the definition: what every function falls back on. The outermost loop of a stage is
// shared among threads where its iterations are independent and worth it, innermost loops run over vectors where they can.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/analysis/nest.h"
#include "passes/loop/kernel_interface.h"
#include "passes/loop/lower_lanes.h"
#include "passes/loop/vector_form.h"
#include "passes/schedule/primitives.h"
#include "support/text.h"
#include "templates/cpu/template.h"
#include "templates/fills.h"
#include "templates/sketch.h"

namespace tc {
namespace {

bool has_open(const Dims& dims) { return std::any_of(dims.begin(), dims.end(), is_open); }

int64_t work_of(const Stage& s) {
  int64_t n = 1;
  for (const auto* l : {&s.axes, &s.raxes})
    for (const Axis& a : *l) n = a.extent.is_const() && n < (int64_t(1) << 40) ? n * a.extent.value : n;
  return n;
}

bool has_own_loops(const Stage& s) { return s.kind != Stage::Kind::Nest && s.scan < 0; }

// Index raises a status word, which threads must not race for; it is only ever set, to the same value.
void share_outermost(Schedule& loops, const TensorFn& fn) {
  for (const Stage& stage : fn.stages) {
    if (!has_own_loops(stage) || stage.axes.empty() || stage.axes[0].extent.value < 2) continue;
    if (work_of(stage) < kParallelThreshold) continue;
    const Buffer result = loops.buffer(stage);
    loops.attempt([&](Schedule& s) { s.parallel(s.loops(result)[0]); });
  }
}

// Integers of 64 and 16 bits have no vectors of ours. Where a sum's terms lie apart but those of neighbouring results side by side, results
// stand innermost, for which a compiler finds vectors.
//   for n: { acc = 0; for k: acc += x[k] * w[k, n]; y[n] = acc }   ->   for n: acc[n] = 0; for k, n: acc[n] += x[k] * w[k, n]; for n: y[n] = acc[n]
constexpr int64_t kMostSums = 64;  // in one tile

bool has_results_side_by_side(const Stage& s) {
  if (s.axes.empty() || s.raxes.empty() || s.values.size() != 1 || s.axes.back().extent.value < 8) return false;
  const DType t = s.outputs[0]->dtype;
  if (!is_int(t) || has_lanes(t)) return false;
  bool fit = true, apart = false;
  walk(s.values[0], [&](const Expr& e) {
    const Load* l = as<Load>(e);
    if (!l) return true;
    fit = fit && lane_step(l->index, s.axes.back().var).has_value();
    apart = apart || !lane_step(l->index, s.raxes.back().var).has_value();
    return true;
  });
  return fit && apart;
}

void put_results_inside(Schedule& loops, const TensorFn& fn) {
  for (const Stage& stage : fn.stages) {
    if (!has_own_loops(stage) || !has_results_side_by_side(stage)) continue;
    const Buffer result = loops.buffer(stage);
    loops.attempt([&](Schedule& s) {
      const std::vector<Var> all = s.loops(result);
      Var inside = all.at(stage.axes.size() - 1);
      if (stage.axes.back().extent.value > kMostSums) inside = s.split(inside, kMostSums).second;
      std::vector<Var> order = nest_from(s, s.decompose_reduction(inside).at(1));
      std::rotate(order.begin(), order.begin() + 1, order.end());
      s.reorder(order);
    });
  }
}

constexpr int64_t kMostShared = 64 << 10;  // bytes of memory of their own that the chunks of a nest have together
constexpr int64_t kMostWork = int64_t(1) << 31;

// Iterations, and bytes of memory of its own that one has, as far as they are known.
struct Cost {
  int64_t work = 1, bytes = 0;
};
Cost cost_of(const Stmt& s) {
  Cost all;
  if (const Seq* q = as<Seq>(s)) {
    for (const Stmt& x : q->list) {
      const Cost c = cost_of(x);
      all = {std::min(all.work + c.work, kMostWork), std::min(all.bytes + c.bytes, kMostWork)};
    }
  } else if (const For* f = as<For>(s)) {
    const Cost c = cost_of(f->body);
    const int64_t n = std::clamp<int64_t>(as_const_int(f->extent).value_or(1), 1, kMostWork);
    all = {std::min(c.work * n, kMostWork), c.bytes};
  } else if (const If* k = as<If>(s)) {
    all = cost_of(k->then);
  } else if (const Let* k = as<Let>(s)) {
    all = cost_of(k->body);
  } else if (const Alloc* k = as<Alloc>(s)) {
    all = cost_of(k->body);
    if (k->buffer->scope == Scope::Workspace)
      all.bytes =
          std::min(all.bytes + num_elements(static_dims(k->buffer->shape)) * info(k->buffer->dtype).bytes, kMostWork);
  }
  return all;
}

// A status word is one for all threads, and so is the arena of texts.
void share_nests(Schedule& loops, const TensorFn& fn) {
  if (std::none_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) { return s.kind == Stage::Kind::Nest; }) ||
      makes_strings(loops.body()))
    return;
  std::vector<Var> outermost;
  walk(loops.body(), [&](const Stmt& s) {
    const For* f = as<For>(s);
    if (!f) return true;
    const auto n = as_const_int(f->extent);
    const Cost each = cost_of(f->body);
    if (f->kind == ForKind::Serial && n && *n > 1 && !raises_status(f->body) && each.work * *n >= kParallelThreshold &&
        each.bytes <= kMostShared / *n)
      outermost.push_back(f->var);
    return false;
  });
  for (const Var& v : outermost) loops.attempt([&](Schedule& s) { s.parallel(v); });
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

// Whether what a stage gives to others has no upper bound.
bool grows(const Stage& s, const TensorFn& fn) {
  const Buffer& b = s.outputs.at(0);
  return is_static(b->shape) && has_open(static_dims(b->shape)) &&
         std::find(fn.outputs.begin(), fn.outputs.end(), b) == fn.outputs.end();
}

// Does anything that stages give to each other?
bool keeps_open_stages(const TensorFn& fn) {
  return std::any_of(fn.stages.begin(), fn.stages.end(), [&](const Stage& s) { return grows(s, fn); });
}

}  // namespace

// A sum along an axis that has no upper bound: what is put behind its last element, say, is in no memory. Where fills inside of
// sums leave nothing that grows, the sums' own templates do better.
std::optional<Scheduled> schedule_inlined(const TemplateArgs& a) {
  if (!keeps_open_stages(a.fn) || !keeps_open_stages(with_fills_inside(a.fn))) return {};
  Schedule loops(a.fn, a.options, a.constant_input);
  a.plan.steps(
      loops,
      [&](Schedule& all) {
        std::vector<const Stage*> sums;  // and what else is no formula
        for (const Stage& stage : a.fn.stages)
          if (grows(stage, a.fn) && !all.attempt([&](Schedule& s) { s.compute_inline(s.buffer(stage)); }))
            sums.push_back(&stage);
        for (size_t i = sums.size(); i-- > 0;)
          all.attempt([&](Schedule& s) {
            s.compute_at(s.buffer(*sums[i]), s.loops(s.buffer(a.fn.stages.back())).at(0), Scope::Stack);
          });
        share_outermost(all, a.fn);
        vectorize_innermost(all);
      },
      false);
  bool keeps = false;
  walk(loops.body(), [&](const Stmt& s) {
    const Alloc* k = as<Alloc>(s);
    keeps = keeps || (k && has_open(static_dims(k->buffer->shape)));
    return !keeps;
  });
  return keeps ? std::nullopt : std::optional(with_steps(a, loops));
}

std::optional<Scheduled> schedule_naive(const TemplateArgs& a) {
  Schedule loops(a.fn, a.options, a.constant_input);
  a.plan.steps(
      loops,
      [&](Schedule& s) {
        put_results_inside(s, a.fn);
        share_outermost(s, a.fn);
        share_nests(s, a.fn);
        vectorize_innermost(s);
      },
      false);
  return with_steps(a, loops);
}

Scheduled schedule_nest(const TemplateArgs& a, const TensorFn& fn, const std::string& family, const std::string& what,
                        const std::function<void(Schedule&)>& caches) {
  Schedule loops(fn, a.options, a.constant_input);
  a.plan.steps(
      loops,
      [&](Schedule& s) {
        share_nests(s, fn);
        s.attempt(caches);
        vectorize_innermost(s);
      },
      false);
  Scheduled s = with_steps(a, loops);
  if (loops.only({"parallel", "cache_write", "unroll", "vectorize"})) s.description = what;
  s.family = family;
  return s;
}

Scheduled with_steps(const TemplateArgs& a, const Schedule& loops) {
  Scheduled s;
  s.inputs = a.fn.inputs;
  for (size_t i = 0; i < s.inputs.size(); i++) s.input_index.push_back(int(i));
  s.outputs = a.fn.outputs;
  loops.hand_over(s);
  const std::string plain = "plain loops in the order of the definition";
  const auto decomposes = [](const PlanLine& l) { return l.name == "decompose_reduction"; };
  const bool sums = loops.only({"parallel", "vectorize", "split", "decompose_reduction", "reorder"}) &&
                    std::any_of(loops.lines().begin(), loops.lines().end(), decomposes);
  s.description = loops.only({"parallel"})                ? plain
                  : loops.only({"parallel", "vectorize"}) ? plain + ", vectors along the innermost"
                  : loops.only({"parallel", "vectorize", "compute_inline", "compute_at"})
                      ? "plain loops, the first stages inside of what reads them"
                  : sums ? "plain loops, sums of several results at a time"
                         : join(s.steps, "; ");
  s.family = "naive";
  return s;
}

}  // namespace tc
