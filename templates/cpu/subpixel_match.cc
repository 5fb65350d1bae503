#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/linear.h"
#include "support/text.h"
#include "templates/cpu/subpixel.h"
#include "templates/match/axes.h"

namespace tc {
namespace {

std::optional<SubpixelCondition> condition_of(const Expr& e, const Canonical& c) {
  const Apply* eq = as<Apply>(e);
  const Apply* mod = eq && eq->op == Op::Eq && is_const(eq->args[1], 0) ? as<Apply>(eq->args[0]) : nullptr;
  const auto stride = mod && mod->op == Op::FloorMod ? as_const_int(mod->args[1]) : std::nullopt;
  if (!stride || *stride < 2) return {};
  std::vector<Var> vars = vars_of(c.axes);
  for (const Axis& r : c.raxes) vars.push_back(r.var);
  const auto at = offset_of(mod->args[0], vars);
  if (!at) return {};
  SubpixelCondition p;
  p.stride = *stride;
  p.constant = at->constant;
  for (const Axis& a : c.axes) {
    if (at->of(a.var) == 0) continue;
    if (at->of(a.var) != 1 || p.o.var) return {};
    p.o = a;
  }
  for (const Axis& a : c.raxes) {
    if (at->of(a.var) == 0) continue;
    if (p.k.var) return {};
    p.k = a;
    p.dilation = -at->of(a.var);
  }
  return p;
}

}  // namespace

std::optional<std::vector<SubpixelCondition>> subpixel_conditions(const Expr& e, const Canonical& c) {
  Exprs tests;
  conjuncts(e, tests);
  std::vector<SubpixelCondition> list;
  for (const Expr& test : tests) {
    const auto p = condition_of(test, c);
    if (!p) return {};
    for (const SubpixelCondition& q : list)
      if ((q.o.var && q.o.var == p->o.var) || (q.k.var && q.k.var == p->k.var)) return {};
    list.push_back(*p);
  }
  return list;
}

std::vector<SubpixelRun> subpixel_runs(const SubpixelCondition& p, bool join) {
  const int64_t outs = p.o.var ? p.o.extent.value : 1, terms = p.k.var ? p.k.extent.value : 1;
  std::vector<SubpixelRun> runs;
  for (int64_t r = 0; r < std::min(p.stride, outs); r++) {
    SubpixelRun run;
    run.subpixel = r;
    run.results = (outs - r + p.stride - 1) / p.stride;
    run.step = p.stride / std::gcd(p.stride, p.dilation);
    run.first = 0;
    while (run.first < terms && floor_mod_int(r + p.constant - run.first * p.dilation, p.stride) != 0) run.first++;
    run.terms = run.first < terms ? (terms - run.first + run.step - 1) / run.step : 0;
    if (join && !runs.empty()) {
      SubpixelRun& last = runs.back();
      const int64_t slope = last.count == 1 ? run.first - last.first : last.slope;
      const bool even = run.first == last.first + slope * last.count && (1 - p.dilation * slope) % p.stride == 0;
      if (run.results == last.results && run.terms == last.terms && (even || run.terms == 0)) {
        last.slope = run.terms == 0 ? 0 : slope;
        last.count++;
        continue;
      }
    }
    runs.push_back(run);
  }
  return runs;
}

Expr split_results(std::vector<Axis>& axes, const SubpixelCondition& p, const SubpixelRun& r, VarMap& to) {
  if (!p.o.var) return 0;
  const auto at = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.var == p.o.var; });
  std::vector<Axis> now;
  Expr subpixel = 0, number = 0;
  if (r.count > 1) {
    now.push_back({make_var(p.o.var->name + "_phase"), Dim(r.count)});
    subpixel = Expr(now.back().var);
  }
  if (r.results > 1) {
    now.push_back({make_var(p.o.var->name), Dim(r.results)});
    number = Expr(now.back().var);
  }
  to[p.o.var.get()] = number * Expr(p.stride) + (subpixel + Expr(r.subpixel));
  axes.insert(axes.erase(at), now.begin(), now.end());
  return subpixel;
}

void split_terms(std::vector<Axis>& raxes, const SubpixelCondition& p, const SubpixelRun& r, const Expr& subpixel,
                 VarMap& to) {
  if (!p.k.var) return;
  const auto at = std::find_if(raxes.begin(), raxes.end(), [&](const Axis& a) { return a.var == p.k.var; });
  Expr term = Expr(r.first) + subpixel * Expr(r.slope);
  if (r.terms > 1) {
    *at = {make_var(p.k.var->name), Dim(r.terms)};
    term = Expr(at->var) * Expr(r.step) + term;
  } else {
    raxes.erase(at);
  }
  to[p.k.var.get()] = term;
}

std::string describe(const SubpixelCondition& p, const SubpixelRun& r) {
  const std::string last = r.count > 1 ? " to " + to_text(r.subpixel + r.count - 1) : "";
  return p.o.var->name + " mod " + to_text(p.stride) + " = " + to_text(r.subpixel) + last;
}

}  // namespace tc
