// Sums along one axis in which every result is the one before it joined with a value: CumSum, CumProd. A warp has a
// sequence and goes through it 32 steps at a time.
//
//   carry = identity
//   for i in 0 .. steps / 32:
//     scan[lane] = value(i * 32 + lane)
//     scan[lane] += scan[lane - d] for d = 1, 2, 4, 8, 16    where there is such a lane; shuffles
//     y[i * 32 + lane] = carry + scan[lane]
//     carry += scan[31]
//
// For few sequences of many steps: many sequences have a thread each (cuda_scan), neighbours of which are neighbours in
// memory. Sums are taken in another order than the definition's, so not under strict floating point.
#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cuda/flat_point.h"
#include "templates/cuda/template.h"
#include "templates/match/prefix.h"

namespace tc {
namespace {

constexpr int64_t kFewSteps = 64;          // up to so many, a thread goes through them
constexpr int64_t kThreadsToBeBusy = 64;   // of a multiprocessor, when each has a sequence
constexpr int64_t kSequencesOfABlock = 4;  // where the model decides

class ScanLoops {
 public:
  ScanLoops(const Prefix& r, const Stage& stage, int64_t sequences, int64_t of_block)
      : r_(r),
        stage_(stage),
        steps_(stage.axes[0].extent.value),
        sequences_(sequences),
        of_block_(of_block),
        rest_(stage.axes.begin() + 1, stage.axes.end()),
        at_(rest_, Expr(block_) * Expr(of_block_) + floor_div(Expr(thread_), kWarp), "sequence") {
    const DType t = stage.outputs[0]->dtype;
    scan_ = make_buffer("scan", t, {Dim(kWarp)}, Scope::Warp);
    carry_ = make_buffer("carry", t, {}, Scope::Register);
  }

  Stmt build() const {
    const int64_t iterations = ceil_div(steps_, kWarp);
    const Var iteration = make_var("turn"), step = make_var("step");
    Stmts list{store(scan_, {Expr(lane_)}, value(Expr(step)))};
    for (int64_t d = 1; d < kWarp; d *= 2) {
      const Expr before = select(Expr(lane_) >= Expr(d), of_lane(Expr(lane_) - Expr(d)), identity());
      list.push_back(store(scan_, {Expr(lane_)}, before, r_.op));
    }
    list.push_back(result(Expr(step)));
    list.push_back(store(carry_, {}, of_lane(kWarp - 1), r_.op));
    Stmt body =
        loop(iteration, iterations, let(step, Expr(iteration) * Expr(kWarp) + Expr(lane_), alloc(scan_, seq(list))));
    body = alloc(carry_, seq({store(carry_, {}, identity()), body}));
    if (sequences_ % of_block_ != 0) body = if_then(at_.flat < Expr(sequences_), body);
    body = let(lane_, floor_mod(Expr(thread_), kWarp), at_.wrap(body));
    const Stmt threads = loop(thread_, of_block_ * kWarp, body, ForKind::ThreadX);
    return loop(block_, ceil_div(sequences_, of_block_), threads, ForKind::BlockX);
  }

 private:
  Expr identity() const { return identity_of(r_.op, scan_->dtype); }
  Expr of_lane(const Expr& lane) const { return load(scan_, {lane}); }
  Expr at_step(const Expr& e, const Expr& step) const {
    VarMap at = at_.at;
    at[stage_.axes[0].var.get()] = step;
    return substitute(e, at);
  }
  bool has_tail() const { return steps_ % kWarp != 0; }

  // What joins at a step; nothing behind the last one.
  Expr value(const Expr& step) const {
    const Expr first = at_step(r_.first, 0), next = at_step(r_.next, step);
    const Expr v = select(eq(step, 0), first, next);
    return has_tail() ? select(step < Expr(steps_), v, identity()) : v;
  }

  Stmt result(const Expr& step) const {
    Exprs index{step};
    for (const Axis& a : rest_) index.push_back(at_.at.at(a.var.get()));
    const Stmt s = store(stage_.outputs[0], index, apply(r_.op, {load(carry_, {}), of_lane(Expr(lane_))}));
    return has_tail() ? if_then(step < Expr(steps_), s) : s;
  }

  const Prefix& r_;
  const Stage& stage_;
  int64_t steps_, sequences_, of_block_;
  const Var block_ = make_var("block"), thread_ = make_var("thread"), lane_ = make_var("lane");
  std::vector<Axis> rest_;
  FlatPoint at_;
  Buffer scan_, carry_;
};

}  // namespace

std::optional<Scheduled> cuda_prefix_scan(const CudaArgs& a) {
  const auto r = a.fn.stages.size() == 1 ? match_prefix(a.fn.stages[0]) : std::nullopt;
  if (!r) return {};
  const Stage& stage = a.fn.stages[0];
  const DType t = stage.outputs[0]->dtype;
  const std::vector<Axis> rest(stage.axes.begin() + 1, stage.axes.end());
  const int64_t sequences = points(rest), steps = stage.axes[0].extent.value;
  if (sequences == 0 || steps <= kFewSteps || sequences >= a.gpu.multiprocessors * kThreadsToBeBusy) return {};
  if ((info(t).bytes != 4 && info(t).bytes != 8) || (is_float(t) && a.options.strict_fp)) return {};
  Scheduled s =
      with_operands(a.fn, "prefix_scan", "a warp per sequence, 32 steps at a time, which its lanes join by shuffles");
  const int64_t of_block = a.plan.in_range(
      "sequences", [&] { return std::min(sequences, kSequencesOfABlock); }, 1,
      std::min(sequences, kMaxBlockThreads / kWarp));
  s.body = ScanLoops(*r, stage, sequences, of_block).build();
  return s;
}

}  // namespace tc
