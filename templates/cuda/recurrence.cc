// Stages that advance together and hold sums of products of their own past: RNN, LSTM, GRU.
//
//   for each step:                          the host's loop: one launch a phase
//     a block has 8 neighbouring units of up to 8 sequences; a warp has a unit
//     sum[gate][sequence][unit] += h[step - 1][k] * R[gate][unit][k]      all gates at once, the lanes along k
//     barrier
//     a thread per sequence and unit: gates, cell and state from the sums
//
// A phase ends where a sum needs what other units have computed in the same step (a GRU that resets before its
// product). Sums are never stored: a phase that needs one computes it.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/intrin.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cuda/flat_point.h"
#include "templates/cuda/template.h"

namespace tc {
namespace {

constexpr int64_t kUnits = 8, kMaxSequences = 8;  // of a block, where the model decides

// A stage's values at our step and point.
struct Formula {
  const Stage* stage;
  Expr value;
};

struct Sum {
  Expr at_sum;  // the load that it stands for
  Expr value;   // over `k`
  Expr init;
  DType type;
};

struct Phase {
  std::vector<Formula> points;
  std::vector<Sum> sums;
};

class Recurrence {
 public:
  explicit Recurrence(const TensorFn& fn) : fn_(fn) {}

  bool match() {
    const std::vector<Stage>& stages = fn_.stages;
    const auto first =
        std::find_if(stages.begin(), stages.end(), [](const Stage& s) { return s.kind == Stage::Kind::Compute; });
    if (first == stages.end() || first->axes.size() < 2) return false;
    for (const Stage& s : stages)
      if (!fits(s, *first)) return false;
    step_ = make_var(first->axes[0].var->name);
    for (size_t k = 1; k + 1 < first->axes.size(); k++)
      outer_.push_back({make_var(first->axes[k].var->name), first->axes[k].extent});
    unit_ = {make_var("unit"), first->axes.back().extent};
    at_ = {Expr(step_)};
    for (const Axis& a : outer_) at_.emplace_back(a.var);
    at_.emplace_back(unit_.var);
    phases_.emplace_back();
    for (const Stage& s : stages)
      if (s.kind == Stage::Kind::Compute && !add(s)) return false;
    return points(outer_) > 0 && unit_.extent.value > 0 && k_.extent.value > 0 && has_sums_;
  }

  void decide(const PlanEntry& plan) {
    units_ = plan.number(
        "units", [] { return kUnits; }, KnobValues::powers_of_two(1, kMaxBlockThreads / kWarp, "a warp each"));
    const int64_t all = points(outer_);
    sequences_ = plan.number(
        "sequences",
        [&] {
          int64_t n = kMaxSequences;
          while (all % n != 0) n /= 2;
          return n;
        },
        KnobValues::divisors(all, kWarp, "blocks have equal shares of " + to_text(all)));
  }

  Stmt build() const {
    Stmts launches;
    for (const Phase& p : phases_) launches.push_back(launch(p));
    Stmt body = loop(step_, fn_.stages[0].axes[0].extent, seq(std::move(launches)));
    // What is no result lives in scratch memory.
    for (const Stage& s : fn_.stages) {
      const Buffer& b = s.outputs[0];
      if (s.kind != Stage::Kind::Compute || is_output(b)) continue;
      const Buffer w = in_scope(b, Scope::Workspace);
      body = alloc(w, substitute_buffers(body, {{b.get(), w}}));
    }
    return body;
  }

 private:
  // All stages step along the same axis; sums run over one axis, all of one length; the others have one shape.
  bool fits(const Stage& s, const Stage& first) {
    if (s.scan < 0 || s.outputs.size() != 1 || !is_static(s.outputs[0]->shape) || !s.outputs[0]->strides.empty())
      return false;
    if (s.axes.empty() || s.axes[0].extent.value != first.axes[0].extent.value) return false;
    if (s.kind == Stage::Kind::Compute) return static_dims(s.outputs[0]->shape) == static_dims(first.outputs[0]->shape);
    const DType t = s.outputs[0]->dtype;
    if (s.kind != Stage::Kind::Reduce || s.combiner.op != Op::Add || s.raxes.size() != 1 || is_output(s.outputs[0]))
      return false;
    if (t != DType::F32 && t != DType::F64) return false;
    if (!k_.var) k_ = {make_var("k"), s.raxes[0].extent};
    return k_.extent.value == s.raxes[0].extent.value;
  }
  bool is_output(const Buffer& b) const {
    return std::find(fn_.outputs.begin(), fn_.outputs.end(), b) != fn_.outputs.end();
  }

  Ranges ranges() const {
    Ranges r;
    r[step_.get()] = {0, fn_.stages[0].axes[0].extent.value - 1};
    for (const Axis& a : outer_) r[a.var.get()] = {0, a.extent.value - 1};
    r[unit_.var.get()] = {0, unit_.extent.value - 1};
    if (k_.var) r[k_.var.get()] = {0, k_.extent.value - 1};
    return r;
  }

  // How a load of one of the group's values relates to our point.
  enum class Read { Past, Here, Elsewhere, Unknown };
  Read relation(const Load& l) const {
    const auto o = affine_in(l.index[0], {step_});
    const auto rest = o && o->coefficients[0] == 1 ? as_const_int(simplify(o->rest, ranges())) : std::nullopt;
    if (!rest || *rest > 0) return Read::Unknown;
    if (*rest < 0) return Read::Past;
    for (size_t k = 1; k < at_.size(); k++)
      if (!structurally_equal(simplify(l.index[k], ranges()), simplify(at_[k], ranges()))) return Read::Elsewhere;
    return Read::Here;
  }
  const Stage* of_group(const Load& l) const { return producer(fn_, l.buffer); }

  bool add(const Stage& s) {
    VarMap to;
    for (size_t k = 0; k < s.axes.size(); k++) to[s.axes[k].var.get()] = at_[k];
    const Expr value = substitute(s.values[0], to);
    std::vector<Sum> sums;
    bool next = false;  // it needs what other points have computed
    for (const Load* l : loads_of(value)) {
      const Stage* from = of_group(*l);
      if (!from) continue;
      if (from->kind == Stage::Kind::Reduce) {
        if (!add_sum(*l, *from, sums, next)) return false;
        continue;
      }
      const Read r = relation(*l);
      if (r == Read::Unknown) return false;
      next = next || r == Read::Elsewhere;
    }
    if (next) phases_.emplace_back();
    Phase& p = phases_.back();
    for (Sum& u : sums)
      if (std::none_of(p.sums.begin(), p.sums.end(),
                       [&](const Sum& x) { return structurally_equal(x.at_sum, u.at_sum); }))
        p.sums.push_back(std::move(u));
    p.points.push_back({&s, value});
    return true;
  }

  bool add_sum(const Load& l, const Stage& from, std::vector<Sum>& sums, bool& next) {
    if (const VarRef* v = as<VarRef>(l.index[0]); !v || v->var != step_) return false;
    VarMap to;
    for (size_t k = 0; k < from.axes.size(); k++) to[from.axes[k].var.get()] = l.index[k];
    to[from.raxes[0].var.get()] = Expr(k_.var);
    const Expr value = substitute(from.values[0], to), init = substitute(from.init[0], to);
    for (const Load* x : loads_of(value)) {
      const Stage* s = of_group(*x);
      if (!s) continue;
      const Read r = relation(*x);
      if (s->kind == Stage::Kind::Reduce || r == Read::Unknown) return false;
      // Computed in the phase before, or to be waited for.
      const std::vector<Formula>& now = phases_.back().points;
      const bool fresh = std::any_of(now.begin(), now.end(), [&](const Formula& f) { return f.stage == s; });
      next = next || (r != Read::Past && fresh);
    }
    sums.push_back({load(l.buffer, l.index), value, init, from.outputs[0]->dtype});
    has_sums_ = true;
    return true;
  }

  // The phase's own values of this step are names at the point that computes them.
  Stmt compute(const Phase& p, size_t i, const std::vector<Buffer>& arrays, const Expr& element,
               std::vector<std::pair<const BufferDef*, Var>>& named) const {
    if (i == p.points.size()) return {};
    const Formula& f = p.points[i];
    const Expr value = rewrite(f.value, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      if (!l) return {};
      for (size_t u = 0; u < p.sums.size(); u++)
        if (structurally_equal(p.sums[u].at_sum, x)) {
          const Expr sum = load(arrays[u], {element});
          const auto zero = as_const_number(p.sums[u].init);
          return zero && *zero == 0 ? sum : p.sums[u].init + sum;
        }
      for (const auto& [b, v] : named)
        if (b == l->buffer.get() && relation(*l) == Read::Here) return Expr(v);
      return {};
    });
    const Buffer& b = f.stage->outputs[0];
    const Var v = make_var(f.stage->name, b->dtype);
    named.push_back({b.get(), v});
    return let(v, value, seq({store(b, at_, Expr(v)), compute(p, i + 1, arrays, element, named)}));
  }

  // A launch's own variables. `sequences`: of a block; there are several groups of these.
  struct Launch {
    int64_t sequences;
    Var block = make_var("block"), group = make_var("group"), thread = make_var("thread");
  };

  // `body` at a sequence of the block and a unit.
  Stmt at_point(const Launch& l, const Expr& sequence, const Expr& unit, const Stmt& body) const {
    const FlatPoint outer(outer_, Expr(l.group) * Expr(l.sequences) + sequence, "sequence");
    return let(unit_.var, unit, outer.wrap(substitute(body, outer.at)));
  }

  // arrays[sequence][unit] = the sums of all sequences of the block, by the warp that has the unit.
  Stmt sums(const Launch& l, const Phase& p, const std::vector<Buffer>& arrays) const {
    const int64_t units = unit_.extent.value, columns = k_.extent.value;
    const Var lane = make_var("lane"), warp = make_var("warp"), iteration = make_var("i"), s = make_var("s");
    std::vector<Buffer> totals;
    Stmts add, store_sums;
    for (size_t u = 0; u < p.sums.size(); u++) {
      const Sum& sum = p.sums[u];
      totals.push_back(make_buffer(sum_name(p, u), sum.type, {}, Scope::Register));
      add.push_back(store(totals[u], {}, sum.value, Op::Add));
      store_sums.push_back(store(arrays[u], {Expr(s) * Expr(units_) + Expr(warp)}, load(totals[u], {})));
    }
    Stmt one = seq(std::move(add));
    if (columns % kWarp != 0) one = if_then(Expr(k_.var) < Expr(columns), one);
    Stmts list = {
        loop(iteration, ceil_div(columns, kWarp), let(k_.var, Expr(iteration) * Expr(kWarp) + Expr(lane), one))};
    for (const Buffer& t : totals) list.push_back(allreduce(t, Op::Add, kWarp));
    list.push_back(if_then(eq(lane, 0), seq(std::move(store_sums))));
    Stmt all = seq(std::move(list));
    for (size_t u = totals.size(); u-- > 0;)
      all = alloc(totals[u], seq({store(totals[u], {}, zero(p.sums[u].type)), all}));
    // Lanes behind the last unit add up the last one's again.
    const Expr unit = Expr(l.block) * Expr(units_) + Expr(warp);
    const Expr clamped = units % units_ == 0 ? unit : min(unit, Expr(units - 1));
    all = loop(s, l.sequences, at_point(l, Expr(s), clamped, all));
    return let(lane, floor_mod(Expr(l.thread), kWarp), let(warp, floor_div(Expr(l.thread), kWarp), all));
  }

  // What the sums are for, by a thread per sequence and unit.
  Stmt finish(const Launch& l, const Phase& p, const std::vector<Buffer>& arrays) const {
    const int64_t units = unit_.extent.value;
    const Expr thread = Expr(l.thread), unit = Expr(l.block) * Expr(units_) + floor_mod(thread, units_);
    std::vector<std::pair<const BufferDef*, Var>> named;
    const Stmt one = at_point(l, floor_div(thread, units_), unit, compute(p, 0, arrays, thread, named));
    Expr mine = thread < Expr(l.sequences * units_);
    if (units % units_ != 0) mine = mine && unit < Expr(units);
    return if_then(mine, one);
  }

  Stmt launch(const Phase& p) const {
    const Launch l{sequences_};
    std::vector<Buffer> arrays;
    for (size_t u = 0; u < p.sums.size(); u++)
      arrays.push_back(
          make_buffer(sum_name(p, u) + "_of_unit", p.sums[u].type, {Dim(l.sequences * units_)}, Scope::Shared));
    Stmt body = finish(l, p, arrays);
    if (!p.sums.empty())
      body = seq({comment("the sums of a unit, the lanes of a warp along k", sums(l, p, arrays)),
                  barrier(Scope::Shared), comment("a thread per sequence and unit", body)});
    body = loop(l.thread, units_ * kWarp, body, ForKind::ThreadX);
    for (size_t u = arrays.size(); u-- > 0;) body = alloc(arrays[u], body);
    body = loop(l.block, ceil_div(unit_.extent.value, units_), body, ForKind::BlockX);
    const int64_t groups = points(outer_) / l.sequences;
    return groups > 1 ? loop(l.group, groups, body, ForKind::BlockY) : substitute(body, {{l.group.get(), Expr(0)}});
  }
  static std::string sum_name(const Phase& p, size_t u) {
    return "sum" + (p.sums.size() == 1 ? std::string() : to_text(int64_t(u)));
  }

  const TensorFn& fn_;
  Var step_;
  std::vector<Axis> outer_;
  Axis unit_, k_;
  Exprs at_;
  std::vector<Phase> phases_;
  bool has_sums_ = false;
  int64_t units_ = kUnits, sequences_ = 1;  // of a block
};

}  // namespace

std::optional<Scheduled> cuda_recurrence(const CudaArgs& a) {
  if (a.options.strict_fp || a.fn.stages.empty() || a.fn.stages[0].scan < 0) return {};
  for (const Stage& s : a.fn.stages)
    if (s.scan != a.fn.stages[0].scan) return {};
  for (const Buffer& b : a.fn.outputs)
    if (!producer(a.fn, b)) return {};
  Recurrence r(a.fn);
  if (!r.match()) return {};
  r.decide(a.plan);
  Scheduled s = with_operands(a.fn, "recurrence", "a launch or two per step; a warp per unit sums all gates");
  s.body = r.build();
  return s;
}

}  // namespace tc
