// Which plan of a function is tried next.
#pragma once
#include <set>
#include <vector>

#include "cli/tune/space.h"
#include "cli/tune/time_model.h"

namespace tc {

/// First the cost model's plan, then the plans of other templates, then what is expected to be fastest, and among it every
/// fourth time a mutation or a cross of the best. Deterministic: the same measurements give the same order.
class PlanSearch {
 public:
  explicit PlanSearch(PlanSpace space);

  const PlanPoint& model() const { return model_; }
  const PlanSpace& space() const { return space_; }
  /// Whether there is any plan but the model's.
  bool has_choice() const;
  /// Up to `count` plans that were not tried yet; empty: there are no more.
  std::vector<PlanPoint> next(size_t count);
  /// What came of a plan, a share of the time of the model's; 0: it failed. It is not proposed again.
  void tell(const PlanPoint& p, double of_model);
  /// The same of a plan that was tried earlier; false where the space does not have it (any more).
  bool recall(const std::vector<PlanLine>& lines, double of_model);
  /// What did well somewhere else is tried early.
  void suggest(const std::vector<PlanLine>& lines);

 private:
  void widen();
  const PlanPoint* untried_best();
  uint64_t random();

  PlanSpace space_;
  PlanPoint model_;
  TimeModel time_;
  std::vector<PlanPoint> first_;  // other templates' plans, and what was suggested
  std::vector<PlanPoint> pool_;
  std::set<std::string> tried_, pooled_;  // by plan_text()
  std::set<std::string> widened_;         // plans whose neighbours are in the pool
  std::vector<std::pair<PlanPoint, double>> measured_;
  size_t proposed_ = 0;
  uint64_t state_ = 1;
  bool begun_ = false, stale_ = false;
};

}  // namespace tc
