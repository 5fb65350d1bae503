#include "passes/schedule/planner.h"

#include <algorithm>

#include "support/text.h"

namespace tc {

void Planner::refuse(const std::string& message) const {
  const size_t next = lines_.size();
  throw PlanRefused{next < stated_.lines.size() ? stated_.lines[next].at : stated_.at, message};
}

bool Planner::wants(std::string_view name) const {
  return !applies_ || (lines_.size() < stated_.lines.size() && stated_.lines[lines_.size()].name == name);
}

size_t Planner::open(std::string_view name) {
  if (!wants(name)) refuse("here the template decides on " + std::string(name));
  PlanLine line{std::string(name), {}, applies_ ? stated_.lines[lines_.size()].at : language::Place{}};
  lines_.push_back(std::move(line));
  return lines_.size() - 1;
}

int64_t Planner::number(size_t line, const std::string& name, const std::function<int64_t()>& model,
                        const std::function<std::string(int64_t)>& legal) {
  int64_t value = 0;
  if (applies_) {
    const PlanLine& said = stated_.lines.at(line);
    const auto it =
        std::find_if(said.numbers.begin(), said.numbers.end(), [&](const auto& n) { return n.first == name; });
    if (it == said.numbers.end()) throw PlanRefused{said.at, said.name + " needs " + name};
    value = it->second;
    const std::string wrong = legal(value);
    if (!wrong.empty()) throw PlanRefused{said.at, name + " = " + to_text(value) + ": " + wrong};
  } else {
    value = model();
  }
  lines_.at(line).numbers.push_back({name, value});
  return value;
}

void Planner::forget_from(size_t line) { lines_.resize(line); }

void Planner::finish() const {
  if (!applies_) return;
  for (size_t i = 0; i < lines_.size(); i++)
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
  return planner_->number(line_, name, model, [&](int64_t n) -> std::string {
    if (n >= least && n <= most && n % step == 0) return "";
    if (least == most) return "here it is " + to_text(least);
    return "it is " + std::string(step > 1 ? "a multiple of " + to_text(step) + " " : "") + "from " + to_text(least) +
           " to " + to_text(most);
  });
}

}  // namespace tc
