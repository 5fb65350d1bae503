// What a plan is going to take: the cost model's closed form, corrected by what was measured.
#pragma once
#include <map>
#include <vector>

#include "cli/tune/space.h"

namespace tc {

/// A ridge regression over the numbers of plans, of the logarithm of the measured time, or of its ratio to the model's cost
/// where that says something. Each family is a regression of its own.
class TimeModel {
 public:
  /// The closed form, with which plans of a family are compared before anything of it was measured; plans near `model`
  /// come first where that says nothing, too.
  explicit TimeModel(const PlanPoint& model) : model_(model) {}

  /// Fits anew to all that was measured, as a share of the model's plan each.
  void fit(const std::vector<std::pair<PlanPoint, double>>& measured);
  /// The expected share of the model's plan. Comparable between families as far as they were measured.
  double predict(const PlanPoint& p) const;

 private:
  struct Family {
    std::vector<double> centre, scale, weights;  // by feature; weights: of the standardised ones, then the constant
    bool has_cost = false;
  };
  double prior(const PlanPoint& p) const;

  PlanPoint model_;
  std::map<std::string, Family> families_;
};

/// The solution x of (A'A + lambda I) x = A'y, rows of A being `rows`, without lambda for the last column, the constant. For tests.
std::vector<double> ridge(const std::vector<std::vector<double>>& rows, const std::vector<double>& y, double lambda);

}  // namespace tc
