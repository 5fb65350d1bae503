// The decisions of templates as data. A template asks for each number with what the cost model says; while a schedule of
// the user's is applied it gets that schedule's number, if the template can do with it, and the model is not heard.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/language/schedule_text.h"

namespace tc {

class Schedule;

/// A stated schedule that cannot be: where, and why.
struct PlanRefused {
  language::Place at;
  std::string message;
  std::string loops = {};  // as they were; empty: there are none yet
};

/// What a number may be: a range, or a list in ascending order; and, where that does not speak for itself, what others would
/// break.
class KnobValues {
 public:
  static KnobValues range(int64_t least, int64_t most, int64_t step = 1);
  static KnobValues list(std::vector<int64_t> values, std::string why = "");
  /// `why`: why it is no other one.
  static KnobValues only(int64_t value, std::string why = "") { return list({value}, std::move(why)); }
  static KnobValues flag(bool possible, std::string why = "");
  /// 1, 2, 4 .. as far as they lie within these.
  static KnobValues powers_of_two(int64_t least, int64_t most, std::string why = "");
  static KnobValues divisors(int64_t n, int64_t most = INT64_MAX, std::string why = "");

  int64_t count() const { return list_.empty() ? (most_ - least_) / step_ + 1 : int64_t(list_.size()); }
  int64_t at(int64_t i) const { return list_.empty() ? least_ + i * step_ : list_[size_t(i)]; }
  /// The position of the largest value that is `v` or less; 0 if there is none.
  int64_t below(int64_t v) const;
  bool has(int64_t v) const { return at(below(v)) == v; }
  /// "it is from 1 to 8", "it is one of 32, 64, 128: ..".
  std::string text() const;

 private:
  int64_t least_ = 0, most_ = 0, step_ = 1;
  std::vector<int64_t> list_;  // empty: the range
  std::string why_;
};

/// A number that a template has decided on, and what it could be as far as the numbers before it go. Together the knobs of a
/// plan are the space in which `tc-emit tune` looks for a better one.
struct Knob {
  size_t line = 0;  // of Planner::lines()
  std::string name;
  int64_t value = 0;
  KnobValues values = {};
  bool divides = false;  // what the other numbers mean depends on it: plans that differ in it are of different kinds
  bool packs = false;    // weights are packed by it
};

/// The decisions on one function, in the order in which they are made.
class Planner {
 public:
  /// Writes down what is decided.
  Planner() = default;
  /// Applies `stated`.
  explicit Planner(FunctionPlan stated) : stated_(std::move(stated)), applies_(true) {}
  /// Applies what is stated; numbers that its lines lack, and lines behind them, are the model's.
  static Planner beginning_with(FunctionPlan stated) {
    Planner p(std::move(stated));
    p.completes_ = true;
    return p;
  }

  bool applies() const { return applies_; }
  /// Whether a line of that name comes next; always, where nothing is stated.
  bool wants(std::string_view name) const;
  /// Begins a line; the position is its handle. Throws PlanRefused if another one comes next.
  size_t open(std::string_view name);
  /// A number of a line, whose range `knob` says: `model` is called where nothing is stated. Throws PlanRefused.
  int64_t number(Knob knob, const std::function<int64_t()>& model);
  /// What is stated for a number of a line; null: nothing.
  const PlanNumber* stated(size_t line, const std::string& name) const;
  /// The steps over loops that are stated next; nothing where the model decides on them.
  std::optional<std::vector<PlanLine>> stated_steps() const;
  /// Writes steps down; stated ones as they are.
  void add_steps(const std::vector<PlanLine>& steps);
  /// Who wants to see loops before and behind every step; empty: nobody.
  std::function<void(const std::string& step, const Stmt& loops)> shown;
  /// Adds what the cost model expects of what is decided, in units of the template's own.
  void expect(double cost) { cost_ += cost; }
  /// The sum of these; 0: the model says nothing. Comparable between plans of the same templates.
  double cost() const { return cost_; }
  /// What `line` stands for, in words of which the template that opened it is not needed.
  void stands_for(size_t line, std::vector<PlanLine> lines) { meant_[line] = std::move(lines); }
  /// lines() to be written down: what some of them stand for in their place.
  std::vector<PlanLine> written() const;
  /// These as text, for Scheduled::steps.
  std::vector<std::string> texts() const;
  /// What a template that declines has decided is forgotten.
  void forget_from(size_t line);
  /// Nothing stated is left. Throws PlanRefused.
  void finish() const;
  /// Throws PlanRefused at the line that comes next, or at a line that was opened.
  [[noreturn]] void refuse(const std::string& message) const;
  [[noreturn]] void refuse_at(size_t line, const std::string& message) const;

  /// Of lines() what says how weights are packed: the templates up to the first step, and their numbers that pack.
  std::vector<PlanLine> packing() const;

  const std::vector<PlanLine>& lines() const { return lines_; }
  const std::vector<Knob>& knobs() const { return knobs_; }
  size_t size() const { return lines_.size(); }

 private:
  FunctionPlan stated_;
  bool applies_ = false, completes_ = false;
  std::vector<PlanLine> lines_;
  std::map<size_t, std::vector<PlanLine>> meant_;
  std::vector<Knob> knobs_;
  double cost_ = 0;
};

/// A line of a planner that may not be there: then the model decides, and nothing is written down.
class PlanEntry {
 public:
  PlanEntry() = default;
  PlanEntry(Planner* planner, std::string_view name) : planner_(planner), line_(planner ? planner->open(name) : 0) {}

  /// Whether anybody asks what is decided, and what else could be.
  bool listens() const { return planner_ != nullptr; }
  /// A number that `values` has. Throws PlanRefused where another one is stated.
  int64_t number(const std::string& name, const std::function<int64_t()>& model, KnobValues values) const;
  /// The same for one that decides on what others mean.
  int64_t kind(const std::string& name, const std::function<int64_t()>& model, KnobValues values) const;
  /// A number from `least` to `most`, a multiple of `step`.
  int64_t in_range(const std::string& name, const std::function<int64_t()>& model, int64_t least, int64_t most,
                   int64_t step = 1) const;
  /// The same for one that weights are packed by.
  int64_t packing(const std::string& name, const std::function<int64_t()>& model, KnobValues values) const;
  bool flag(const std::string& name, bool model, bool possible = true, const std::string& why = "") const;
  /// What is stated for a number that is decided on later.
  std::optional<int64_t> stated(const std::string& name) const;
  /// Throws PlanRefused at this line where what is stated there, number by number, cannot be as a whole.
  void refuse(const std::string& message) const;
  /// Takes the steps that are stated, or those of `model`, and writes them down. `gpu`: which loops of threads there are.
  /// Throws PlanRefused.
  void steps(Schedule& s, const std::function<void(Schedule&)>& model, bool gpu) const;
  /// See Planner::stands_for().
  void stands_for(std::vector<PlanLine> lines) const {
    if (planner_) planner_->stands_for(line_, std::move(lines));
  }
  /// See Planner::expect().
  void expect(double cost) const {
    if (planner_) planner_->expect(cost);
  }

 private:
  Planner* planner_ = nullptr;
  size_t line_ = 0;
};

}  // namespace tc
