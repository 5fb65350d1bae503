// The subpixel decomposition of sums of which each result takes only every s-th term: transposed convolutions.
//
//   y[o] = sum(k) [(o + c - k * d) mod s = 0]  x[(o + c - k * d) / s] * w[k]
//
// Results that lie s apart take the same terms. With o = Q * s + r and the terms k = first(r) + j * step it is
//
//   y[Q * s + r] = sum(j) x[Q + at(r) - j * d'] * w[first(r) + j * step]
//
// a plain convolution of stride 1 for each subpixel r, over a part of the weights. Subpixels whose first term and
// position move evenly with r, and which have equally many terms and results, are one function with r as an axis; the
// others are computed one after the other. Several axes: every combination.
//
// Preconditions: a sum of products, of which one factor is select(conditions, value, 0); every condition is of the form
// above, of one axis of the result and one summed axis at most, none of them in two conditions. Where results lie side by side
// along an axis that is cut (one channel: a mask, a waveform), vectors run along joined subpixels, or along the sum (dots.cc). A condition of the
// other factor stays.
#include <algorithm>
#include <numeric>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/template.h"

namespace tc {
namespace {

constexpr size_t kMostParts = 16;      // functions that are printed one after the other
constexpr int64_t kFewestColumns = 4;  // of vectors of results

// (o + constant - k * dilation) mod stride = 0
struct Condition {
  Axis o, k;  // without a variable: the one position or term
  int64_t stride = 1, dilation = 0, constant = 0;
};

// Neighbouring subpixels that one function computes.
struct Run {
  int64_t subpixel = 0, count = 1;  // first, number
  int64_t results = 0, terms = 0;   // of each subpixel
  int64_t first = 0, slope = 0;     // first term of the first subpixel, and how it moves
  int64_t step = 1;
};

std::optional<Condition> condition_of(const Expr& e, const Canonical& c) {
  const Apply* eq = as<Apply>(e);
  const Apply* mod = eq && eq->op == Op::Eq && is_const(eq->args[1], 0) ? as<Apply>(eq->args[0]) : nullptr;
  const auto stride = mod && mod->op == Op::FloorMod ? as_const_int(mod->args[1]) : std::nullopt;
  if (!stride || *stride < 2) return {};
  std::vector<Var> vars = vars_of(c.axes);
  for (const Axis& r : c.raxes) vars.push_back(r.var);
  const auto at = offset_of(mod->args[0], vars);
  if (!at) return {};
  Condition p;
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

bool conditions_of(const Expr& e, const Canonical& c, std::vector<Condition>& list) {
  const Apply* k = as<Apply>(e);
  if (k && k->op == Op::And) return conditions_of(k->args[0], c, list) && conditions_of(k->args[1], c, list);
  const auto p = condition_of(e, c);
  if (!p) return false;
  for (const Condition& q : list)
    if ((q.o.var && q.o.var == p->o.var) || (q.k.var && q.k.var == p->k.var)) return false;
  list.push_back(*p);
  return true;
}

int64_t floor_mod(int64_t a, int64_t b) { return (a % b + b) % b; }

// The subpixels of one axis, in order; neighbours are joined where that is possible and `join` is set.
std::vector<Run> runs_of(const Condition& p, bool join) {
  const int64_t outs = p.o.var ? p.o.extent.value : 1, terms = p.k.var ? p.k.extent.value : 1;
  std::vector<Run> runs;
  for (int64_t r = 0; r < std::min(p.stride, outs); r++) {
    Run run;
    run.subpixel = r;
    run.results = (outs - r + p.stride - 1) / p.stride;
    run.step = p.stride / std::gcd(p.stride, p.dilation);
    run.first = 0;
    while (run.first < terms && floor_mod(r + p.constant - run.first * p.dilation, p.stride) != 0) run.first++;
    run.terms = run.first < terms ? (terms - run.first + run.step - 1) / run.step : 0;
    if (join && !runs.empty()) {
      Run& last = runs.back();
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

class SubpixelDecomposition {
 public:
  SubpixelDecomposition(const TemplateArgs& a, const Canonical& c) : a_(a), c_(c) {}

  bool match() {
    const Apply* k = as<Apply>(c_.value);
    const auto to = offset_of(c_.out_index, vars_of(c_.axes));
    if (!to || !k || k->op != Op::Mul || c_.combine != Op::Add) return false;
    for (conditional_ = 0; conditional_ < 2; conditional_++) {
      const Select* s = as<Select>(k->args[conditional_]);
      const auto no = s ? as_const_number(s->no) : std::nullopt;
      if (!no || *no != 0) continue;
      return conditions_of(s->condition, c_, conditions_);
    }
    return false;
  }

  std::optional<Scheduled> schedule() {
    const bool joins = count_runs(true) < count_runs(false);
    const std::optional<int64_t> stated = a_.plan.stated("joined");
    // Templates for windows know no weights that differ from row to row: their subpixels stay apart.
    const bool together = stated.value_or(1) != 0 && attempt(true);
    if (stated.value_or(0) != 0 && !together) a_.plan.refuse("no template computes these results together");
    if (!together && !attempt(false)) return {};
    a_.plan.number(
        "joined", [&] { return joins && together ? 1 : 0; },
        joins ? KnobValues::flag(true) : KnobValues::only(0, "no neighbours take their terms alike"));
    s_.body = seq({fill_border(c_), seq(std::move(bodies_))});
    s_.outputs = {c_.original_out};
    s_.family = "phases";
    s_.description = to_text(int64_t(count_)) + (count_ == 1 ? " group" : " groups") +
                     " of results that take the same terms: " + families_;
    return std::move(s_);
  }

 private:
  bool attempt(bool join) {
    if (Planner* const planner = a_.options.planner) {
      if (!mark_) mark_ = planner->size();
      planner->forget_from(*mark_);
    }
    s_ = {};
    bodies_.clear();
    families_.clear();
    count_ = 0;
    failed_ = !find_runs(join);
    parts({});
    return !failed_;
  }

  size_t count_runs(bool join) const {
    size_t n = 0;
    for (const Condition& p : conditions_) n += runs_of(p, join).size();
    return n;
  }

  // Do results lie side by side, along another axis than those that are cut, or along joined subpixels?
  static bool has_columns(const Canonical& c) {
    const auto to = offset_of(c.out_index, vars_of(c.axes));
    return to && std::any_of(c.axes.begin(), c.axes.end(),
                             [&](const Axis& a) { return to->of(a.var) == 1 && a.extent.value >= kFewestColumns; });
  }

  // False if they are too many.
  bool find_runs(bool join) {
    size_t n = 1;
    runs_.clear();
    for (const Condition& p : conditions_) {
      runs_.push_back(runs_of(p, join));
      n *= runs_.back().size();
    }
    return n <= kMostParts;
  }

  // Every combination of the axes' runs.
  void parts(std::vector<const Run*> chosen) {
    if (failed_) return;
    if (chosen.size() == conditions_.size()) return part(chosen);
    for (const Run& r : runs_[chosen.size()]) {
      chosen.push_back(&r);
      parts(chosen);
      chosen.pop_back();
    }
  }

  void part(const std::vector<const Run*>& chosen) {
    Canonical c = c_;
    c.border = std::nullopt;
    VarMap to;
    bool terms = true;
    std::string subpixels;
    for (size_t i = 0; i < chosen.size(); i++) {
      const Condition& p = conditions_[i];
      const Run& r = *chosen[i];
      const Expr subpixel = split_results(c.axes, p, r, to);
      terms = terms && r.terms > 0;
      if (terms) split_terms(c.raxes, p, r, subpixel, to);
      if (p.o.var) subpixels += (subpixels.empty() ? "" : ", ") + describe(p, r);
    }
    Ranges ranges;
    for (const auto* l : {&c.axes, &c.raxes})
      for (const Axis& a : *l) ranges[a.var.get()] = {0, a.extent.value - 1};
    for (Expr* e : {&c.value, &c.shaped_value})
      *e = terms ? simplify(substitute(without_condition(*e), to), ranges) : Expr();
    for (Expr* e : {&c.init, &c.epilogue, &c.out_index}) *e = simplify(substitute(*e, to), ranges);
    if (!terms)
      c.epilogue = rewrite(c.epilogue, [&](const Expr& x) {
        const Load* l = as<Load>(x);
        return l && l->buffer == c.reduced ? c.init : Expr();
      });
    add(c, subpixels);
  }

  // Axis o becomes the subpixel (where there are several) and the number of the result.
  static Expr split_results(std::vector<Axis>& axes, const Condition& p, const Run& r, VarMap& to) {
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

  static void split_terms(std::vector<Axis>& raxes, const Condition& p, const Run& r, const Expr& subpixel,
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

  // A condition of the other factor says something else (where a kernel ends) and stays.
  Expr without_condition(const Expr& product) const {
    Exprs args = as<Apply>(product)->args;
    if (const Select* s = as<Select>(args[conditional_])) args[conditional_] = s->yes;
    return apply(Op::Mul, std::move(args));
  }

  static std::string describe(const Condition& p, const Run& r) {
    const std::string last = r.count > 1 ? " to " + to_text(r.subpixel + r.count - 1) : "";
    return p.o.var->name + " mod " + to_text(p.stride) + " = " + to_text(r.subpixel) + last;
  }

  // The template's decisions in a line of their own.
  static std::optional<Scheduled> in_line(const char* name, std::optional<Scheduled> (*make)(const TemplateArgs& a),
                                          TemplateArgs args) {
    Planner* const planner = args.options.planner;
    if (planner && !planner->wants(name)) return {};
    const size_t mark = planner ? planner->size() : 0;
    args.plan = PlanEntry(planner, name);
    std::optional<Scheduled> s = make(args);
    if (!s && planner) planner->forget_from(mark);
    return s;
  }

  void add(const Canonical& c, const std::string& subpixels) {
    TemplateArgs args{a_.fn, &c, a_.constant_input, a_.cpu, a_.options, true};
    args.no_columns = !has_columns(c);
    const bool sums = bool(c.value) && !c.raxes.empty();
    std::optional<Scheduled> s = sums ? in_line("dots", schedule_dots, args) : std::nullopt;
    if (!s && sums) s = schedule_contraction(args);
    if (!s && bool(c.value) && has_columns(c)) s = in_line("window", schedule_window, args);
    if (!s && !c.value) s = in_line("elementwise", schedule_elementwise, args);
    failed_ = !s;
    if (failed_) return;
    count_++;
    bodies_.push_back(subpixels.empty() ? s->body : comment(subpixels, s->body));
    auto append = [](auto& list, const auto& from) { list.insert(list.end(), from.begin(), from.end()); };
    for (const Buffer& b : s->prologue.inputs)
      if (std::find(s_.prologue.inputs.begin(), s_.prologue.inputs.end(), b) == s_.prologue.inputs.end())
        s_.prologue.inputs.push_back(b);
    append(s_.prologue.stages, s->prologue.stages);
    append(s_.prologue.outputs, s->prologue.outputs);
    append(s_.prologue_layouts, s->prologue_layouts);
    append(s_.steps, s->steps);
    for (size_t i = 0; i < s->inputs.size(); i++) {
      if (std::find(s_.inputs.begin(), s_.inputs.end(), s->inputs[i]) != s_.inputs.end()) continue;
      s_.inputs.push_back(s->inputs[i]);
      s_.input_index.push_back(s->input_index[i]);
    }
    for (const auto& v : s->views)
      if (std::none_of(s_.views.begin(), s_.views.end(), [&](const auto& w) { return w.of == v.of; }))
        s_.views.push_back(v);
    if (families_.find(s->family) == std::string::npos) families_ += (families_.empty() ? "" : ", ") + s->family;
  }

  const TemplateArgs& a_;
  const Canonical& c_;
  size_t conditional_ = 0;  // the factor that has the conditions
  std::vector<Condition> conditions_;
  std::vector<std::vector<Run>> runs_;  // by condition
  Stmts bodies_;
  Scheduled s_;
  std::string families_;
  size_t count_ = 0;
  bool failed_ = false;
  std::optional<size_t> mark_;  // of the planner's lines: ours begin there
};

}  // namespace

std::optional<Scheduled> schedule_subpixels(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value) return {};
  SubpixelDecomposition p(a, *a.canonical);
  return p.match() ? p.schedule() : std::nullopt;
}

}  // namespace tc
