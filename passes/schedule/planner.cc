#include "passes/schedule/planner.h"

#include <algorithm>

#include "passes/schedule/apply_step.h"
#include "support/text.h"

namespace tc {

void Planner::refuse(const std::string& message) const {
  const size_t next = lines_.size();
  throw PlanRefused{next < stated_.lines.size() ? stated_.lines[next].at : stated_.at, message};
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

namespace {

// What a number that is stated has to be; "" if it is that.
std::string complaint(const Knob& k) {
  if (k.value >= k.least && k.value <= k.most && k.value % k.step == 0) return "";
  if (k.least == k.most) return "here it is " + to_text(k.least);
  return "it is " + std::string(k.step > 1 ? "a multiple of " + to_text(k.step) + " " : "") + "from " +
         to_text(k.least) + " to " + to_text(k.most);
}

}  // namespace

int64_t Planner::number(Knob knob, const std::function<int64_t()>& model) {
  const PlanLine none, &said = knob.line < stated_.lines.size() ? stated_.lines[knob.line] : none;
  const auto it =
      std::find_if(said.numbers.begin(), said.numbers.end(), [&](const auto& n) { return n.first == knob.name; });
  if (it != said.numbers.end()) {
    knob.value = it->second;
    const std::string wrong = complaint(knob);
    if (!wrong.empty()) throw PlanRefused{said.at, knob.name + " = " + to_text(knob.value) + ": " + wrong};
  } else if (applies_ && !completes_) {
    throw PlanRefused{said.at, said.name + " needs " + knob.name};
  } else {
    knob.value = model();
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

void Planner::forget_from(size_t line) {
  lines_.resize(line);
  std::erase_if(knobs_, [&](const Knob& k) { return k.line >= line; });
}

void Planner::finish() const {
  if (!applies_) return;
  for (size_t i = 0; i < std::min(lines_.size(), stated_.lines.size()); i++)
    for (const auto& said : stated_.lines[i].numbers) {
      const auto same = [&](const auto& n) { return n.first == said.first; };
      if (std::none_of(lines_[i].numbers.begin(), lines_[i].numbers.end(), same))
        throw PlanRefused{stated_.lines[i].at, lines_[i].name + " has no number " + said.first};
    }
  if (lines_.size() < stated_.lines.size()) refuse("nothing is left to decide");
}

int64_t PlanEntry::in_range(const std::string& name, const std::function<int64_t()>& model, int64_t least, int64_t most,
                            int64_t step) const {
  if (!planner_) return model();
  return planner_->number({line_, name, 0, least, most, step}, model);
}

namespace {

void take(Schedule& s, const PlanLine& line, bool gpu) try {
  apply_step(s, line, gpu);
} catch (const ScheduleError& e) {
  const std::string text = e.what();
  const size_t end = std::min(text.find('\n'), text.size());
  throw PlanRefused{line.at, text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
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
