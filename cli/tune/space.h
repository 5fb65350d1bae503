// The schedules that a function may have. Templates say what can be decided, with which numbers (Knob); whether a plan can be
// is asked of the template itself, which builds the loops or refuses.
#pragma once
#include <optional>
#include <vector>

#include "passes/backend.h"
#include "passes/schedule/planner.h"

namespace tc {

/// A complete plan.
struct PlanPoint {
  std::vector<PlanLine> lines;
  std::vector<PlanLine> written;  // the same for a record: sketches as the steps that they stand for
  std::vector<Knob> knobs;        // what its numbers could be
  double cost = 0;                // the cost model's, comparable within a family; 0: it says nothing
  /// The names of its lines, and the numbers that decide on what others mean: plans of one family differ in the rest only.
  std::string family() const;
};

/// The plans of one function.
class PlanSpace {
 public:
  /// `backend` has to stay. `options`: what of them concerns all plans. `threads`: on one of C, whether loops run on threads is no
  /// question.
  PlanSpace(TensorFn fn, std::vector<bool> constant_input, const Backend& backend, const ScheduleOptions& options,
            int threads);

  /// The model's own.
  PlanPoint model() const;
  /// What begins with `lines`; numbers and lines that are missing are the model's. Null where a template refuses.
  std::optional<PlanPoint> point(const std::vector<PlanLine>& lines) const;
  /// Whether one of its numbers could be another one.
  bool is_open(const PlanPoint& p) const;
  /// The plans of other templates: each of them in place of each line of the model's plan, with the model's numbers. Without the plain
  /// loops, which are what others are compared with.
  std::vector<PlanPoint> alternatives() const;
  /// For each line the values of its first two knobs, ever fewer of the large ones, the other numbers as the model takes them.
  std::vector<PlanPoint> grid(const PlanPoint& p) const;
  /// `p` with one number changed: to the next ones, half and double, and the ends of its range. Where the numbers behind it
  /// cannot stay they are the model's.
  std::vector<PlanPoint> neighbours(const PlanPoint& p) const;
  /// Line by line, number by number from one of two plans of a family; bit k of `from_b` says where number k comes from.
  std::optional<PlanPoint> cross(const PlanPoint& a, const PlanPoint& b, uint64_t from_b) const;

 private:
  bool is_open(const Knob& k) const;
  std::optional<PlanPoint> changed(const PlanPoint& p, const Knob& k, int64_t value) const;

  TensorFn fn_;
  std::vector<bool> constant_input_;
  const Backend& backend_;
  ScheduleOptions options_;
  bool threaded_;
};

}  // namespace tc
