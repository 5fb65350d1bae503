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
// Results of few channels: subpixels that are joined and take the same elements by other weights are columns of one product
// beside their channels. Where subpixels that lie side by side take different terms (one channel: a picture made larger), each is a
// formula of few terms, with vectors along its results, which are stored in turn (interleaved_store.cc).
//
// Preconditions: a sum of products, of which one factor is select(conditions, value, 0); every condition is of the form
// above, of one axis of the result and one summed axis at most, none of them in two conditions. Where results lie side by side
// along an axis that is cut (a mask, a waveform), vectors run along joined subpixels, along the sum (dots.cc), or along results
// of one subpixel, each of at most 32 terms. A condition of the other factor stays.
#include "templates/cpu/subpixel.h"

#include <algorithm>

#include "ir/axis_ranges.h"
#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"
#include "templates/cpu/template.h"
#include "templates/packed.h"

namespace tc {
namespace {

constexpr size_t kMostParts = 16;  // functions that are printed one after the other
constexpr size_t kMostFormulas = 32;
constexpr int64_t kFewestColumns = 4;  // of vectors of results
constexpr int64_t kFewestJoined = 12;  // channels that are columns of their own
constexpr int64_t kMostTerms = 32;     // of a result, written out

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
      auto conditions = subpixel_conditions(s->condition, c_);
      if (conditions) conditions_ = std::move(*conditions);
      return conditions.has_value();
    }
    return false;
  }

  // The condition of the axis along which results lie side by side.
  std::optional<size_t> columns_condition() const {
    const auto to = offset_of(c_.out_index, vars_of(c_.axes));
    for (size_t i = 0; to && i < conditions_.size(); i++)
      if (conditions_[i].o.var && to->of(conditions_[i].o.var) == 1) return i;
    return {};
  }
  bool cuts_columns() const { return columns_condition().has_value(); }

  std::optional<Scheduled> schedule() {
    const bool joins = count_runs(true) < count_runs(false);
    const std::optional<int64_t> stated = a_.plan.stated("joined");
    // Templates for windows know no weights that differ from row to row: their subpixels stay apart.
    const bool may_join = stated.value_or(1) != 0, must_join = stated.value_or(0) != 0;
    bool together = may_join && attempt(true);
    bool found = together || (!must_join && (attempt(false) || attempt_alternating()));
    if (!found) {
      alternating_ = std::nullopt;
      few_columns_ = true;
      together = may_join && attempt(true);
      found = together || (!must_join && attempt(false));
    }
    if (must_join && !together) a_.plan.refuse("no template computes these results together");
    if (!found) return {};
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

  // Results of different terms side by side, which one channel has: each is a formula, stored in turn with those beside it.
  bool attempt_alternating() {
    alternating_ = columns_condition();
    return alternating_ && conditions_[*alternating_].o.extent.value >= conditions_[*alternating_].stride &&
           attempt(false);
  }

  size_t count_runs(bool join) const {
    size_t n = 0;
    for (const SubpixelCondition& p : conditions_) n += subpixel_runs(p, join).size();
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
    for (const SubpixelCondition& p : conditions_) {
      runs_.push_back(subpixel_runs(p, join));
      n *= runs_.back().size();
      if (alternating_ == runs_.size() - 1) runs_.back().resize(1);  // part() looks at the others
    }
    return n <= (alternating_ ? kMostFormulas : kMostParts);
  }

  // Every combination of the axes' runs.
  void parts(std::vector<const SubpixelRun*> chosen) {
    if (failed_) return;
    if (chosen.size() == conditions_.size()) return part(chosen);
    for (const SubpixelRun& r : runs_[chosen.size()]) {
      chosen.push_back(&r);
      parts(chosen);
      chosen.pop_back();
    }
  }

  void part(const std::vector<const SubpixelRun*>& chosen) {
    std::string subpixels;
    for (size_t i = 0; i < chosen.size(); i++)
      if (conditions_[i].o.var && alternating_ != i)
        subpixels += (subpixels.empty() ? "" : ", ") + describe(conditions_[i], *chosen[i]);
    if (!alternating_) {
      Canonical c = cut(chosen);
      join_columns(c);
      return add(c, subpixels);
    }
    const SubpixelCondition& p = conditions_[*alternating_];
    const std::vector<SubpixelRun> runs = subpixel_runs(p, false);
    const int64_t whole = p.o.extent.value / p.stride * p.stride;
    if (const auto c = in_turn(chosen); c && add_in_turn(*c, subpixels)) {
      for (int64_t last = whole; last < p.o.extent.value; last++)
        add_formula(formula_of(chosen, alone(runs[size_t(last % p.stride)], last)), "");
      return;
    }
    for (const SubpixelRun& run : runs)
      add_formula(formula_of(chosen, run), subpixels + (subpixels.empty() ? "" : ", ") + describe(p, run));
  }

  // Few channels of joined subpixels that lie side by side, and take the same elements by other weights, are columns of one product.
  void join_columns(Canonical& c) {
    const auto to = offset_of(c.out_index, vars_of(c.axes));
    const auto along = [&](int64_t step) {
      return std::find_if(c.axes.begin(), c.axes.end(), [&](const Axis& a) { return to->of(a.var) == step; });
    };
    if (!to || !c.value) return;
    const auto n = along(1);
    if (n == c.axes.end() || n->extent.value >= kFewestJoined) return;
    const auto subpixel = along(n->extent.value);
    const Expr& elements = as<Apply>(c.value)->args[conditional_];
    if (subpixel == c.axes.end() || uses_var(elements, n->var) || uses_var(elements, subpixel->var)) return;
    const Axis joined{make_var(subpixel->var->name + "_" + n->var->name),
                      Dim(subpixel->extent.value * n->extent.value)};
    const Expr column(joined.var);
    const VarMap at = {{subpixel->var.get(), floor_div(column, n->extent.value)},
                       {n->var.get(), floor_mod(column, n->extent.value)}};
    const Var gone = subpixel->var;
    *n = joined;
    std::erase_if(c.axes, [&](const Axis& a) { return a.var == gone; });
    const Ranges ranges = ranges_of({&c.axes, &c.raxes});
    for (Expr* e : {&c.value, &c.shaped_value, &c.init, &c.epilogue, &c.out_index})
      *e = simplify(substitute(*e, at), ranges);
    for (Expr* e : {&c.init, &c.epilogue}) *e = pack_known_loads(s_, c, a_.constant_input, *e, joined);
  }

  // The results of all subpixels along the axis where these alternate, as formulas: y[.., q * s + i] = i = 0 ? a + b : c + d; without
  // those behind the last that are as many as there are subpixels.
  std::optional<Canonical> in_turn(const std::vector<const SubpixelRun*>& chosen) const {
    const SubpixelCondition& p = conditions_[*alternating_];
    const Var i = make_var(p.o.var->name + "_phase");
    std::vector<SubpixelRun> runs = subpixel_runs(p, false);
    std::optional<Canonical> all;
    for (size_t r = runs.size(); r-- > 0;) {
      runs[r].results = p.o.extent.value / p.stride;
      auto c = formula_of(chosen, runs[r]);
      if (!c) return {};
      if (!all) {
        all = std::move(*c);
        continue;
      }
      VarMap same;
      for (size_t a = 0; a < c->axes.size(); a++) same[c->axes[a].var.get()] = Expr(all->axes[a].var);
      all->epilogue = select(eq(Expr(i), Expr(int64_t(r))), substitute(c->epilogue, same), all->epilogue);
      if (r == 0) all->out_index = substitute(c->out_index, same) + Expr(i);
    }
    all->axes.push_back({i, Dim(int64_t(runs.size()))});
    return all;
  }

  // The subpixel's result at `position` alone.
  static SubpixelRun alone(SubpixelRun r, int64_t position) {
    r.subpixel = position;
    r.results = 1;
    return r;
  }

  // The results of `run` along the axis where subpixels alternate, every term written out; null if these are too many.
  std::optional<Canonical> formula_of(std::vector<const SubpixelRun*> chosen, const SubpixelRun& run) const {
    chosen[*alternating_] = &run;
    Canonical c = cut(chosen);
    if (points(c.raxes) > kMostTerms) return {};
    if (c.value) {
      const bool from_zero = as_const_number(c.init) == 0.0;
      c.epilogue = with_reduced(c.epilogue, c.reduced, from_zero ? sum_of(c) : c.init + sum_of(c));
    }
    c.value = c.shaped_value = Expr();
    c.raxes = {};
    return c;
  }

  static Expr sum_of(const Canonical& c) {
    Expr sum;
    for (int64_t k = 0; k < points(c.raxes); k++) {
      VarMap at;
      int64_t rest = k;
      for (size_t a = c.raxes.size(); a-- > 0; rest /= c.raxes[a].extent.value)
        at[c.raxes[a].var.get()] = Expr(rest % c.raxes[a].extent.value);
      const Expr term = simplify(substitute(c.value, at));
      sum = sum ? sum + term : term;
    }
    return sum;
  }

  // The function of the chosen subpixels; without a value where these have no terms.
  Canonical cut(const std::vector<const SubpixelRun*>& chosen) const {
    Canonical c = c_;
    c.border = std::nullopt;
    VarMap to;
    bool terms = true;
    for (size_t i = 0; i < chosen.size(); i++) {
      const SubpixelCondition& p = conditions_[i];
      const SubpixelRun& r = *chosen[i];
      const Expr subpixel = split_results(c.axes, p, r, to);
      terms = terms && r.terms > 0;
      if (terms) split_terms(c.raxes, p, r, subpixel, to);
    }
    const Ranges ranges = ranges_of({&c.axes, &c.raxes});
    for (Expr* e : {&c.value, &c.shaped_value})
      *e = terms ? simplify(substitute(without_condition(*e), to), ranges) : Expr();
    for (Expr* e : {&c.init, &c.epilogue, &c.out_index}) *e = simplify(substitute(*e, to), ranges);
    if (!terms) c.epilogue = with_reduced(c.epilogue, c.reduced, c.init);
    return c;
  }

  // A condition of the other factor says something else (where a kernel ends) and stays.
  Expr without_condition(const Expr& product) const {
    Exprs args = as<Apply>(product)->args;
    if (const Select* s = as<Select>(args[conditional_])) args[conditional_] = s->yes;
    return apply(Op::Mul, std::move(args));
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
    if (!s && sums && (few_columns_ || !args.no_columns)) s = schedule_contraction(args);
    if (!s && bool(c.value) && has_columns(c)) s = in_line("window", schedule_window, args);
    if (!s && !c.value) s = in_line("elementwise", schedule_elementwise, args);
    failed_ = !s;
    if (s) take(*s, subpixels);
  }

  void add_formula(const std::optional<Canonical>& c, const std::string& subpixels) {
    failed_ = failed_ || !c;
    if (!failed_) add(*c, subpixels);
  }

  bool add_in_turn(const Canonical& c, const std::string& subpixels) {
    const TemplateArgs args{a_.fn, &c, a_.constant_input, a_.cpu, a_.options, true};
    const auto s = in_line("interleaved_store", schedule_interleaved_store, args);
    if (s) take(*s, subpixels);
    return s.has_value();
  }

  void take(const Scheduled& s, const std::string& subpixels) {
    count_++;
    bodies_.push_back(subpixels.empty() ? s.body : comment(subpixels, s.body));
    auto append = [](auto& list, const auto& from) { list.insert(list.end(), from.begin(), from.end()); };
    for (const Buffer& b : s.prologue.inputs)
      if (std::find(s_.prologue.inputs.begin(), s_.prologue.inputs.end(), b) == s_.prologue.inputs.end())
        s_.prologue.inputs.push_back(b);
    append(s_.prologue.stages, s.prologue.stages);
    append(s_.prologue.outputs, s.prologue.outputs);
    append(s_.prologue_layouts, s.prologue_layouts);
    append(s_.steps, s.steps);
    for (size_t i = 0; i < s.inputs.size(); i++) {
      if (std::find(s_.inputs.begin(), s_.inputs.end(), s.inputs[i]) != s_.inputs.end()) continue;
      s_.inputs.push_back(s.inputs[i]);
      s_.input_index.push_back(s.input_index[i]);
    }
    for (const auto& v : s.views)
      if (std::none_of(s_.views.begin(), s_.views.end(), [&](const auto& w) { return w.of == v.of; }))
        s_.views.push_back(v);
    if (families_.find(s.family) == std::string::npos) families_ += (families_.empty() ? "" : ", ") + s.family;
  }

  const TemplateArgs& a_;
  const Canonical& c_;
  size_t conditional_ = 0;  // the factor that has the conditions
  std::vector<SubpixelCondition> conditions_;
  std::vector<std::vector<SubpixelRun>> runs_;  // by condition
  bool few_columns_ = false;                    // nothing else takes them: a product of two or three columns
  std::optional<size_t> alternating_;           // the condition whose subpixels are stored in turn
  Stmts bodies_;
  Scheduled s_;
  std::string families_;
  size_t count_ = 0;
  bool failed_ = false;
  std::optional<size_t> mark_;  // of the planner's lines: ours begin there
};

}  // namespace

bool cuts_columns(const TemplateArgs& a) {
  SubpixelDecomposition p(a, *a.canonical);
  return p.match() && p.cuts_columns();
}

std::optional<Scheduled> schedule_subpixels(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value) return {};
  SubpixelDecomposition p(a, *a.canonical);
  return p.match() ? p.schedule() : std::nullopt;
}

}  // namespace tc
