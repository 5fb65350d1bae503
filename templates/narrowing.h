// Plans of several numbers that depend on each other: of all that can be, those that agree with what is decided already.
#pragma once
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "passes/schedule/planner.h"

namespace tc {

template <class Plan>
class Narrowing {
 public:
  struct Candidate {
    Plan plan;
    double cost = 0;
    bool is_own = true;  // the model considers it; others may be stated only
  };

  /// `candidates`: one at least.
  explicit Narrowing(std::vector<Candidate> candidates) : left_(std::move(candidates)) {}

  /// Decides on a number of the plan: what the cheapest has, unless it is stated.
  template <class Number>
  void decide(const PlanEntry& plan, const std::string& name, Number number, const std::string& why = "") {
    std::set<int64_t> values;
    for (const Candidate& c : left_) values.insert(int64_t(number(c.plan)));
    const int64_t value = plan.number(
        name, [&] { return int64_t(number(best().plan)); }, KnobValues::list({values.begin(), values.end()}, why));
    std::erase_if(left_, [&](const Candidate& c) { return int64_t(number(c.plan)) != value; });
  }

  /// The cheapest, of the model's own where some are left; the first of equals.
  const Candidate& best() const {
    return *std::min_element(left_.begin(), left_.end(), [](const Candidate& a, const Candidate& b) {
      return a.is_own != b.is_own ? a.is_own : a.cost < b.cost;
    });
  }

 private:
  std::vector<Candidate> left_;
};

}  // namespace tc
