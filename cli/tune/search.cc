#include "cli/tune/search.h"

#include <algorithm>

#include "cli/tune/record.h"

namespace tc {
namespace {

constexpr size_t kParents = 4;    // of the best plans, for mutations and crosses
constexpr size_t kExploring = 4;  // every so often another than what is expected to be best
constexpr size_t kLargestPool = 4000;

}  // namespace

PlanSearch::PlanSearch(PlanSpace space)
    : space_(std::move(space)), model_(space_.model()), time_(model_), first_(space_.alternatives()) {}

uint64_t PlanSearch::random() {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return state_ >> 33;
}

void PlanSearch::widen() {
  const auto take = [&](PlanPoint p) {
    if (pool_.size() >= kLargestPool) return;
    const std::string text = plan_text(p.written);
    if (pooled_.insert(text).second) pool_.push_back(std::move(p));
  };
  const auto widen_at = [&](const PlanPoint& p, bool grid) {
    if (!widened_.insert(plan_text(p.written)).second) return;
    if (grid)
      for (PlanPoint& q : space_.grid(p)) take(std::move(q));
    for (PlanPoint& q : space_.neighbours(p)) take(std::move(q));
  };
  if (!begun_) {
    begun_ = true;
    widen_at(model_, true);
    for (const PlanPoint& p : first_) widen_at(p, true);
    return;
  }
  std::stable_sort(measured_.begin(), measured_.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  const size_t parents = std::min(kParents, measured_.size());
  for (size_t i = 0; i < parents; i++) widen_at(measured_[i].first, false);
  for (size_t i = 0; i < parents; i++)
    for (size_t k = 0; k < i; k++)
      if (auto p = space_.cross(measured_[k].first, measured_[i].first, random())) take(std::move(*p));
}

bool PlanSearch::has_choice() const { return !first_.empty() || space_.is_open(model_); }

// The one of which most is expected; null: the pool has none that was not tried.
const PlanPoint* PlanSearch::untried_best() {
  std::vector<const PlanPoint*> open;
  for (const PlanPoint& p : pool_)
    if (tried_.count(plan_text(p.written)) == 0) open.push_back(&p);
  if (open.empty()) return nullptr;
  if (!measured_.empty() && ++proposed_ % kExploring == 0) return open[random() % open.size()];
  return *std::min_element(open.begin(), open.end(), [&](const PlanPoint* a, const PlanPoint* b) {
    return time_.predict(*a) < time_.predict(*b);
  });
}

std::vector<PlanPoint> PlanSearch::next(size_t count) {
  if (stale_ || !begun_) widen();
  if (stale_) time_.fit(measured_);
  stale_ = false;
  std::vector<PlanPoint> list;
  const auto propose = [&](const PlanPoint& p) {
    if (list.size() < count && tried_.insert(plan_text(p.written)).second) list.push_back(p);
  };
  propose(model_);
  for (const PlanPoint& p : first_) propose(p);
  while (list.size() < count) {
    const PlanPoint* p = untried_best();
    if (!p) break;
    propose(*p);
  }
  return list;
}

void PlanSearch::tell(const PlanPoint& p, double of_model) {
  tried_.insert(plan_text(p.written));
  if (of_model <= 0) return;
  const std::string text = plan_text(p.written);
  const auto it = std::find_if(measured_.begin(), measured_.end(),
                               [&](const auto& m) { return plan_text(m.first.written) == text; });
  if (it != measured_.end())
    it->second = of_model;
  else
    measured_.push_back({p, of_model});
  stale_ = true;
}

bool PlanSearch::recall(const std::vector<PlanLine>& lines, double of_model) {
  const std::optional<PlanPoint> p = space_.point(lines);
  if (!p || plan_text(p->lines) != plan_text(lines)) return false;
  tell(*p, of_model);
  return true;
}

void PlanSearch::suggest(const std::vector<PlanLine>& lines) {
  if (auto p = space_.point(lines); p && first_.size() < kLargestPool) first_.insert(first_.begin(), std::move(*p));
}

}  // namespace tc
