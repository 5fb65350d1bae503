#include "cli/tune/space.h"

#include <algorithm>
#include <set>

#include "cli/tune/record.h"
#include "support/text.h"
#include "templates/cpu/schedule_cpu.h"

namespace tc {
namespace {

int64_t values_of(const Knob& k) { return (k.most - k.least) / k.step + 1; }

/// The values of a knob: the first ones, then ever fewer, and the last one.
std::vector<int64_t> spread(const Knob& k) {
  constexpr int64_t kDense = 12;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < values_of(k); i += i < kDense ? 1 : i / 2) values.push_back(k.least + i * k.step);
  if (values.back() + k.step <= k.most) values.push_back(k.least + (values_of(k) - 1) * k.step);
  return values;
}

int64_t& number_of(std::vector<PlanLine>& lines, const Knob& k) {
  auto& numbers = lines.at(k.line).numbers;
  const auto it = std::find_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.first == k.name; });
  check(it != numbers.end(), "a knob is a number of its line");
  return it->second;
}

/// The lines up to and with the number of `k`.
std::vector<PlanLine> up_to(std::vector<PlanLine> lines, const Knob& k) {
  lines.resize(k.line + 1);
  auto& numbers = lines.back().numbers;
  const auto it = std::find_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.first == k.name; });
  numbers.erase(it + 1, numbers.end());
  return lines;
}

}  // namespace

std::string PlanPoint::family() const {
  std::vector<std::string> names;
  for (const PlanLine& l : lines) names.push_back(l.name);
  return join(names, " ");
}

PlanSpace::PlanSpace(TensorFn fn, std::vector<bool> constant_input, const CpuModel& cpu, bool strict_fp, int threads)
    : fn_(std::move(fn)),
      constant_input_(std::move(constant_input)),
      cpu_(cpu),
      strict_fp_(strict_fp),
      threaded_(threads > 1) {}

std::optional<PlanPoint> PlanSpace::point(const std::vector<PlanLine>& lines) const {
  FunctionPlan plan{"*"};
  plan.lines = lines;
  Planner planner = Planner::beginning_with(std::move(plan));
  ScheduleOptions o;
  o.strict_fp = strict_fp_;
  o.planner = &planner;
  try {
    schedule_cpu(fn_, constant_input_, cpu_, o);
    planner.finish();
    if (planner.lines().size() < lines.size()) return {};
  } catch (const PlanRefused&) {
    return {};
  }
  PlanPoint p{planner.lines(), planner.knobs(), planner.cost()};
  for (PlanLine& l : p.lines) l.at = {};
  return p;
}

PlanPoint PlanSpace::model() const {
  std::optional<PlanPoint> p = point({});
  check(p.has_value(), "every function has a schedule");
  return std::move(*p);
}

std::vector<PlanPoint> PlanSpace::alternatives() const {
  const PlanPoint own = model();
  std::vector<PlanPoint> points;
  std::set<std::string> seen{plan_text(own.lines)};
  for (size_t i = 0; i < own.lines.size(); i++)
    for (const std::string_view name : cpu_templates()) {
      if (name == "naive" || name == own.lines[i].name) continue;
      std::vector<PlanLine> lines(own.lines.begin(), own.lines.begin() + std::ptrdiff_t(i));
      lines.push_back({std::string(name), {}});
      if (auto p = point(lines); p && seen.insert(plan_text(p->lines)).second) points.push_back(std::move(*p));
    }
  return points;
}

// Threads are no question where there is one: the loop over chunks is the same.
bool PlanSpace::is_open(const Knob& k) const { return values_of(k) > 1 && (threaded_ || k.name != "parallel"); }

bool PlanSpace::is_open(const PlanPoint& p) const {
  return std::any_of(p.knobs.begin(), p.knobs.end(), [this](const Knob& k) { return is_open(k); });
}

std::vector<PlanPoint> PlanSpace::grid(const PlanPoint& p) const {
  std::vector<PlanPoint> points;
  const auto add = [&](const std::vector<PlanLine>& lines) {
    if (auto q = point(lines)) points.push_back(std::move(*q));
  };
  for (size_t i = 0; i < p.lines.size(); i++) {
    std::vector<const Knob*> open;
    for (const Knob& k : p.knobs)
      if (k.line == i && is_open(k)) open.push_back(&k);
    if (open.empty()) continue;
    for (const int64_t a : spread(*open[0])) {
      std::vector<PlanLine> lines = up_to(p.lines, *open[open.size() > 1 ? 1 : 0]);
      number_of(lines, *open[0]) = a;
      if (open.size() == 1) add(lines);
      for (const int64_t b : open.size() > 1 ? spread(*open[1]) : std::vector<int64_t>()) {
        number_of(lines, *open[1]) = b;
        add(lines);
      }
    }
  }
  return points;
}

std::optional<PlanPoint> PlanSpace::changed(const PlanPoint& p, const Knob& k, int64_t value) const {
  std::vector<PlanLine> lines = p.lines;
  number_of(lines, k) = value;
  if (auto q = point(lines)) return q;
  return point(up_to(std::move(lines), k));
}

std::vector<PlanPoint> PlanSpace::neighbours(const PlanPoint& p) const {
  std::vector<PlanPoint> points;
  for (const Knob& k : p.knobs) {
    if (!is_open(k)) continue;
    std::set<int64_t> values;
    for (const int64_t v : {k.value - k.step, k.value + k.step, k.value / 2, k.value * 2, k.least, k.most})
      values.insert(std::clamp(v - v % k.step, k.least, k.most));
    values.erase(k.value);
    for (const int64_t v : values)
      if (auto q = changed(p, k, v)) points.push_back(std::move(*q));
  }
  return points;
}

std::optional<PlanPoint> PlanSpace::cross(const PlanPoint& a, const PlanPoint& b, uint64_t from_b) const {
  if (a.family() != b.family()) return {};
  std::vector<PlanLine> lines = a.lines;
  for (size_t i = 0; i < lines.size(); i++)
    for (size_t k = 0; k < lines[i].numbers.size() && k < b.lines[i].numbers.size(); k++, from_b >>= 1)
      if ((from_b & 1) != 0) lines[i].numbers[k].second = b.lines[i].numbers[k].second;
  return point(lines);
}

}  // namespace tc
