#include "passes/schedule/planner.h"

#include <algorithm>

#include "passes/schedule/apply_step.h"
#include "support/text.h"

namespace tc {

void Planner::refuse(const std::string& message) const {
  const size_t next = lines_.size();
  throw PlanRefused{next < stated_.lines.size() ? stated_.lines[next].at : stated_.at, message};
}

void Planner::refuse_at(size_t line, const std::string& message) const {
  throw PlanRefused{line < stated_.lines.size() ? stated_.lines[line].at : stated_.at, message};
}

bool Planner::wants(std::string_view name) const {
  if (lines_.size() >= stated_.lines.size()) return !applies_ || completes_;
  return stated_.lines[lines_.size()].name == name;
}

size_t Planner::open(std::string_view name) {
  if (!wants(name)) refuse("here the template decides on " + std::string(name));
  PlanLine line{std::string(name),
                {},
                lines_.size() < stated_.lines.size() ? stated_.lines[lines_.size()].at : language::Place{}};
  lines_.push_back(std::move(line));
  return lines_.size() - 1;
}

KnobValues KnobValues::range(int64_t least, int64_t most, int64_t step) {
  KnobValues v;
  v.least_ = (least + step - 1) / step * step;
  v.most_ = std::max(most, v.least_);
  v.step_ = step;
  return v;
}

KnobValues KnobValues::list(std::vector<int64_t> values, std::string why) {
  check(!values.empty() && std::is_sorted(values.begin(), values.end()), "a knob has values, in order");
  KnobValues v;
  v.list_ = std::move(values);
  v.why_ = std::move(why);
  return v;
}

KnobValues KnobValues::flag(bool possible, std::string why) { return possible ? range(0, 1) : only(0, std::move(why)); }

KnobValues KnobValues::powers_of_two(int64_t least, int64_t most, std::string why) {
  std::vector<int64_t> values;
  for (int64_t v = 1; v <= most; v *= 2)
    if (v >= least) values.push_back(v);
  return list(std::move(values), std::move(why));
}

KnobValues KnobValues::divisors(int64_t n, int64_t most, std::string why) {
  std::vector<int64_t> values;
  for (int64_t d = 1; d <= n / d; d++)
    if (n % d == 0) values.insert(values.end(), {d, n / d});
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::erase_if(values, [&](int64_t d) { return d > most; });
  return list(std::move(values), std::move(why));
}

int64_t KnobValues::below(int64_t v) const {
  if (list_.empty()) return std::clamp<int64_t>(v < least_ ? 0 : (v - least_) / step_, 0, count() - 1);
  const auto it = std::upper_bound(list_.begin(), list_.end(), v);
  return std::max<int64_t>(0, it - list_.begin() - 1);
}

std::string KnobValues::text() const {
  const std::string why = why_.empty() ? "" : ": " + why_;
  if (count() == 1) return "here it is " + to_text(at(0)) + why;
  if (list_.empty())
    return "it is " + std::string(step_ > 1 ? "a multiple of " + to_text(step_) + " " : "") + "from " +
           to_text(least_) + " to " + to_text(at(count() - 1)) + why;
  constexpr size_t kShown = 12;
  std::vector<std::string> some;
  for (size_t i = 0; i < std::min(kShown, list_.size()); i++) some.push_back(to_text(list_[i]));
  if (list_.size() > kShown) some.push_back(".. " + to_text(list_.back()));
  return "it is one of " + join(some, ", ") + why;
}

const PlanNumber* Planner::stated(size_t line, const std::string& name) const {
  if (line >= stated_.lines.size()) return nullptr;
  for (const PlanNumber& n : stated_.lines[line].numbers)
    if (n.name == name) return &n;
  return nullptr;
}

int64_t Planner::number(Knob knob, const std::function<int64_t()>& model) {
  if (const PlanNumber* said = stated(knob.line, knob.name)) {
    knob.value = said->value;
    if (!knob.values.has(knob.value))
      throw PlanRefused{said->at, knob.name + " = " + to_text(knob.value) + ": " + knob.values.text()};
  } else if (applies_ && !completes_) {
    const PlanLine none, &line = knob.line < stated_.lines.size() ? stated_.lines[knob.line] : none;
    throw PlanRefused{line.at, line.name + " needs " + knob.name};
  } else {
    knob.value = model();
    check(knob.values.has(knob.value), "what the model decides may be stated: " + knob.name);
  }
  lines_.at(knob.line).numbers.push_back({knob.name, knob.value});
  knobs_.push_back(std::move(knob));
  return knobs_.back().value;
}

std::optional<std::vector<PlanLine>> Planner::stated_steps() const {
  const size_t next = lines_.size();
  if (!applies_ || (completes_ && next >= stated_.lines.size())) return {};
  std::vector<PlanLine> steps;
  for (size_t i = next; i < stated_.lines.size() && stated_.lines[i].is_step(); i++) steps.push_back(stated_.lines[i]);
  return steps;
}

void Planner::add_steps(const std::vector<PlanLine>& steps) { lines_.insert(lines_.end(), steps.begin(), steps.end()); }

std::vector<PlanLine> Planner::written() const {
  std::vector<PlanLine> all;
  for (size_t i = 0; i < lines_.size(); i++) {
    const auto it = meant_.find(i);
    if (it == meant_.end())
      all.push_back(lines_[i]);
    else
      all.insert(all.end(), it->second.begin(), it->second.end());
  }
  return all;
}

std::vector<std::string> Planner::texts() const {
  std::vector<std::string> list;
  for (const PlanLine& line : written()) list.push_back(language::print(line));
  return list;
}

std::vector<PlanLine> Planner::packing() const {
  std::vector<PlanLine> list;
  for (const PlanLine& line : lines_) {
    if (line.is_step()) break;
    list.push_back({line.name, {}, line.at});
  }
  for (const Knob& k : knobs_)
    if (k.packs && k.line < list.size()) list[k.line].numbers.push_back({k.name, k.value});
  return list;
}

void Planner::forget_from(size_t line) {
  lines_.resize(line);
  meant_.erase(meant_.lower_bound(line), meant_.end());
  std::erase_if(knobs_, [&](const Knob& k) { return k.line >= line; });
}

void Planner::finish() const {
  if (!applies_) return;
  for (size_t i = 0; i < std::min(lines_.size(), stated_.lines.size()); i++)
    for (const PlanNumber& said : stated_.lines[i].numbers) {
      const auto same = [&](const PlanNumber& n) { return n.name == said.name; };
      if (std::none_of(lines_[i].numbers.begin(), lines_[i].numbers.end(), same))
        throw PlanRefused{said.at, lines_[i].name + " has no number " + said.name};
    }
  if (lines_.size() < stated_.lines.size()) refuse("nothing is left to decide");
}

std::optional<int64_t> PlanEntry::stated(const std::string& name) const {
  const PlanNumber* said = planner_ ? planner_->stated(line_, name) : nullptr;
  return said ? std::optional(said->value) : std::nullopt;
}

int64_t PlanEntry::number(const std::string& name, const std::function<int64_t()>& model, KnobValues values) const {
  if (!planner_) return model();
  return planner_->number({line_, name, 0, std::move(values)}, model);
}

int64_t PlanEntry::kind(const std::string& name, const std::function<int64_t()>& model, KnobValues values) const {
  if (!planner_) return model();
  return planner_->number({line_, name, 0, std::move(values), true}, model);
}

int64_t PlanEntry::in_range(const std::string& name, const std::function<int64_t()>& model, int64_t least, int64_t most,
                            int64_t step) const {
  return number(name, model, KnobValues::range(least, most, step));
}

int64_t PlanEntry::packing(const std::string& name, const std::function<int64_t()>& model, KnobValues values) const {
  if (!planner_) return model();
  return planner_->number({line_, name, 0, std::move(values), false, true}, model);
}

bool PlanEntry::flag(const std::string& name, bool model, bool possible, const std::string& why) const {
  return number(
             name, [&] { return model && possible; }, KnobValues::flag(possible, why)) == 1;
}

void PlanEntry::refuse(const std::string& message) const {
  if (planner_ && planner_->applies()) planner_->refuse_at(line_, message);
}

namespace {

void take(Schedule& s, const PlanLine& line, bool gpu) try {
  apply_step(s, line, gpu);
} catch (const ScheduleError& e) {
  const std::string text = e.what();
  const size_t end = std::min(text.find('\n'), text.size());
  const bool at_argument = e.argument && *e.argument < line.args.size();
  throw PlanRefused{at_argument ? line.args[*e.argument].at : line.at, text.substr(0, end),
                    text.substr(std::min(end + 1, text.size()))};
}

// The loops behind each of the steps that were taken.
void show(const Planner& planner, Schedule s, const std::vector<PlanLine>& steps, bool gpu) {
  for (const PlanLine& line : steps) {
    apply_step(s, line, gpu);
    planner.shown(language::print(line), s.body());
  }
}

}  // namespace

void PlanEntry::steps(Schedule& s, const std::function<void(Schedule&)>& model, bool gpu) const {
  if (!planner_) return model(s);
  const auto names = s.tell_apart();
  if (planner_->shown) planner_->shown("", s.body());
  if (const std::optional<std::vector<PlanLine>> stated = planner_->stated_steps()) {
    for (const PlanLine& line : *stated) {
      take(s, line, gpu);
      if (planner_->shown) planner_->shown(language::print(line), s.body());
    }
    planner_->add_steps(*stated);
  } else {
    const Schedule before = s;
    model(s);
    planner_->add_steps(s.lines());
    if (planner_->shown) show(*planner_, before, s.lines(), gpu);
  }
  s.call_again(names);
}

}  // namespace tc
