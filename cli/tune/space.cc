#include "cli/tune/space.h"

#include <algorithm>
#include <set>

#include "cli/tune/record.h"
#include "support/text.h"

namespace tc {
namespace {

/// The values of a knob: the first ones, then ever fewer, and the last one.
std::vector<int64_t> spread(const KnobValues& of) {
  constexpr int64_t kDense = 12;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < of.count(); i += i < kDense ? 1 : i / 2) values.push_back(of.at(i));
  if (values.back() != of.at(of.count() - 1)) values.push_back(of.at(of.count() - 1));
  return values;
}

int64_t& number_of(std::vector<PlanLine>& lines, const Knob& k) {
  auto& numbers = lines.at(k.line).numbers;
  const auto it = std::find_if(numbers.begin(), numbers.end(), [&](const PlanNumber& n) { return n.name == k.name; });
  check(it != numbers.end(), "a knob is a number of its line");
  return it->value;
}

/// The lines up to and with the number of `k`.
std::vector<PlanLine> up_to(std::vector<PlanLine> lines, const Knob& k) {
  lines.resize(k.line + 1);
  auto& numbers = lines.back().numbers;
  const auto it = std::find_if(numbers.begin(), numbers.end(), [&](const PlanNumber& n) { return n.name == k.name; });
  numbers.erase(it + 1, numbers.end());
  return lines;
}

/// Whether line `i` of a plan, or something behind a line that divides the function, knows little of it: plain loops, those of the
/// definition, of one formula without vectors (on C), or of a thread per result (on CUDA), rows, which read all operands of a sum
/// again for each result, and terms, which read and write all results again for each.
bool leaves_loops_plain(const PlanPoint& p, size_t i) {
  const auto plain = [&](size_t at) {
    size_t end = at + 1;
    while (end < p.lines.size() && p.lines[end].is_step()) end++;
    const auto vectors = std::any_of(p.lines.begin() + std::ptrdiff_t(at), p.lines.begin() + std::ptrdiff_t(end),
                                     [](const PlanLine& l) { return l.name == "vectorize"; });
    const std::string& name = p.lines[at].name;
    static constexpr std::string_view kPlain[] = {"naive", "nest", "per_result", "rows", "stage", "terms_in_range"};
    return std::find(std::begin(kPlain), std::end(kPlain), name) != std::end(kPlain) ||
           (name == "elementwise" && p.lines[at].numbers.empty() && !vectors);
  };
  if (p.lines[i].name != "stages" || i > 0) return plain(i);
  for (size_t at = 1; at < p.lines.size(); at++)
    if (plain(at)) return true;
  return false;
}

}  // namespace

std::string PlanPoint::family() const {
  std::vector<std::string> names;
  for (const PlanLine& l : lines) names.push_back(l.name);
  for (const Knob& k : knobs)
    if (k.divides) names.push_back(k.name + "=" + to_text(k.value));
  return join(names, " ");
}

PlanSpace::PlanSpace(TensorFn fn, std::vector<bool> constant_input, const Backend& backend,
                     const ScheduleOptions& options, int threads)
    : fn_(std::move(fn)),
      constant_input_(std::move(constant_input)),
      backend_(backend),
      options_(options),
      threaded_(threads > 1 || backend.traits().device_memory) {}

std::optional<PlanPoint> PlanSpace::point(const std::vector<PlanLine>& lines) const {
  FunctionPlan plan{"*"};
  plan.lines = lines;
  Planner planner = Planner::beginning_with(std::move(plan));
  ScheduleOptions o = options_;
  o.planner = &planner;
  try {
    backend_.schedule(fn_, constant_input_, o);
    planner.finish();
    if (planner.lines().size() < lines.size()) return {};
  } catch (const PlanRefused&) {
    return {};
  }
  PlanPoint p{planner.lines(), planner.written(), planner.knobs(), planner.cost()};
  for (auto* lines : {&p.lines, &p.written})
    for (PlanLine& l : *lines) l.at = {};
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
    for (const std::string_view name : backend_.templates()) {
      if (name == "naive" || name == own.lines[i].name || (name == "sketch" && !leaves_loops_plain(own, i))) continue;
      std::vector<PlanLine> lines(own.lines.begin(), own.lines.begin() + std::ptrdiff_t(i));
      lines.push_back({std::string(name), {}});
      if (auto p = point(lines); p && seen.insert(plan_text(p->lines)).second) points.push_back(std::move(*p));
    }
  return points;
}

// Threads are no question where there is one: the loop over chunks is the same.
bool PlanSpace::is_open(const Knob& k) const {
  return k.values.count() > 1 && (threaded_ || (k.name != "parallel" && k.name != "parts"));
}

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
    for (const int64_t a : spread(open[0]->values)) {
      std::vector<PlanLine> lines = up_to(p.lines, *open[open.size() > 1 ? 1 : 0]);
      number_of(lines, *open[0]) = a;
      if (open.size() == 1) add(lines);
      for (const int64_t b : open.size() > 1 ? spread(open[1]->values) : std::vector<int64_t>()) {
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
    const int64_t last = k.values.count() - 1, here = k.values.below(k.value);
    for (const int64_t i :
         {here - 1, here + 1, k.values.below(k.value / 2), k.values.below(k.value * 2), int64_t(0), last})
      values.insert(k.values.at(std::clamp<int64_t>(i, 0, last)));
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
      if ((from_b & 1) != 0) lines[i].numbers[k].value = b.lines[i].numbers[k].value;
  return point(lines);
}

}  // namespace tc
