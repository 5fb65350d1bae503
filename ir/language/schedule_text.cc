#include "ir/language/schedule_text.h"

#include <algorithm>

#include "ir/identity.h"
#include "ir/language/formula_parser.h"
#include "ir/language/function_text.h"
#include "support/text.h"
#include "support/xxh64.h"

namespace tc {
namespace {

// '*' stands for any characters. Greedy with one point to come back to, so that it takes no more than n * m steps.
bool fits_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resumed = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resumed = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      p++;
      t++;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resumed;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + std::ptrdiff_t(p), pattern.end(), [](char c) { return c == '*'; });
}

}  // namespace

bool FunctionPlan::fits(const std::string& of_signature, const std::string& of_function) const {
  return (function.empty() || function == of_function) && fits_pattern(signature, of_signature);
}

std::string FunctionPlan::shown() const {
  return selects ? "for " + language::print(*selects) : language::quoted(signature);
}

std::string FunctionDefinition::hash() const {
  const std::string key = text + known;
  return hex(xxh64(key.data(), key.size()), 16);
}

FunctionDefinition definition_of(const TensorFn& fn, const std::vector<bool>& constant_input) {
  FunctionDefinition d{language::function_text(fn).text, ""};
  for (const bool known : constant_input) d.known += known ? 'k' : '-';
  return d;
}

std::string function_hash(const TensorFn& fn, const std::vector<bool>& constant_input) {
  FunctionDefinition d = definition_of(fn, constant_input);
  if (d.text.empty()) d.text = identity_of(fn);
  return d.hash();
}

namespace language {
namespace {

class Reader {
 public:
  Reader(std::string_view text, Problems& problems) : r_(text, problems), problems_(problems) {}

  std::vector<FunctionPlan> run() {
    std::vector<FunctionPlan> all;
    constexpr size_t kMaxProblems = 50;
    while (!r_.at_end() && problems_.size() < kMaxProblems) try {
        all.push_back(plan());
      } catch (const Abandoned&) {
        while (!r_.at_end() && !begins_plan()) r_.take();
      }
    return all;
  }

 private:
  bool begins_plan() const { return r_.peek().begins_line && r_.is_word("schedule"); }

  FunctionPlan plan() {
    FunctionPlan p;
    p.at = r_.peek().at;
    if (!begins_plan()) r_.expected("'schedule' at the beginning of a line");
    r_.take();
    if (r_.is_word("for")) {
      r_.take();
      p.selects = read_selector(r_);
      p.signature = "*";
    } else {
      p.signature = r_.expect_text("the signature of a kernel, in quotes, or 'for' and what it computes");
    }
    if (r_.is_word("on")) {
      r_.take();
      p.processor = r_.expect_text("the name of a processor, in quotes");
    }
    if (r_.is_word("of")) {
      r_.take();
      p.function = r_.expect_text("the hash of a function, in quotes");
    }
    while (!r_.at_end() && !begins_plan()) p.lines.push_back(line());
    if (p.lines.empty()) r_.fail(p.at, "a schedule has one line at least: the name of a template, or a step");
    if (p.lines[0].is_step()) p.lines.insert(p.lines.begin(), PlanLine{"naive", {}, p.lines[0].at});
    return p;
  }

  PlanLine line() {
    PlanLine l;
    l.at = r_.peek().at;
    if (!r_.peek().begins_line) r_.expected("a new line");
    l.name = r_.expect_name("the name of a template, a decision or a step");
    r_.expect("(", "after the name");
    while (!r_.accept(")")) {
      const bool first = l.numbers.empty() && l.args.empty();
      if (!first) r_.expect(",", l.args.empty() ? "between numbers" : "between arguments");
      const bool number = r_.is_name() && r_.is_symbol("=", 1);
      if (!first && number != l.args.empty())
        r_.fail(r_.peek().at, "a decision has numbers with names, a step has arguments without; a line has either");
      if (number)
        add_number(l);
      else
        l.args.push_back(argument(0));
    }
    if (r_.is_word("as") && !r_.peek().begins_line) add_results(l);
    return l;
  }

  void add_number(PlanLine& l) {
    const Place at = r_.peek().at;
    std::string name = r_.expect_name("the name of a number");
    r_.expect("=", "after the name");
    const int64_t value = r_.expect_integer("a number");
    if (std::any_of(l.numbers.begin(), l.numbers.end(), [&](const PlanNumber& n) { return n.name == name; }))
      r_.tell(at, name + " is given twice");
    l.numbers.push_back({std::move(name), value, at});
  }

  StepArg argument(int depth) {
    const Place at = r_.peek().at;
    return {argument_value(depth), at};
  }

  decltype(StepArg::value) argument_value(int depth) {
    constexpr int kDeepest = 4;
    if (r_.is_symbol("[") && depth < kDeepest) {
      r_.take();
      StepArg::List list;
      while (!r_.accept("]")) {
        if (!list.empty()) r_.expect(",", "between arguments");
        list.push_back(argument(depth + 1));
      }
      return list;
    }
    if (r_.peek().kind == Token::Kind::Text) return StepArg::Text{r_.take().text};
    if (!r_.is_name()) return r_.expect_integer("the name of a loop or a buffer, a number, a list, or NUMBER = VALUE");
    std::string name = r_.take().text;
    while (r_.accept(".")) name += "." + r_.expect_name("the rest of the name");
    return name;
  }

  void add_results(PlanLine& l) {
    const Place at = r_.take().at;
    if (!l.is_step()) r_.fail(at, "a decision has no results that could have names");
    do {
      const Place here = r_.peek().at;
      std::string name = r_.expect_name("the name of what the step makes");
      if (name != "_" && std::find(l.results.begin(), l.results.end(), name) != l.results.end())
        r_.tell(here, name + " is given twice");
      l.results.push_back(std::move(name));
    } while (r_.accept(","));
  }

  TokenReader r_;
  Problems& problems_;
};

}  // namespace

std::vector<FunctionPlan> read_schedules(std::string_view text, Problems& problems) {
  return Reader(text, problems).run();
}

namespace {

std::string print(const std::vector<StepArg>& args) {
  std::vector<std::string> texts;
  for (const StepArg& a : args) {
    if (const auto* name = std::get_if<std::string>(&a.value)) texts.push_back(*name);
    if (const auto* number = std::get_if<int64_t>(&a.value)) texts.push_back(std::to_string(*number));
    if (const auto* text = std::get_if<StepArg::Text>(&a.value)) texts.push_back(quoted(text->text));
    if (const auto* list = std::get_if<StepArg::List>(&a.value)) texts.push_back("[" + print(*list) + "]");
  }
  return join(texts, ", ");
}

}  // namespace

std::string print(const PlanLine& line) {
  std::vector<std::string> numbers;
  for (const PlanNumber& n : line.numbers) numbers.push_back(n.name + " = " + std::to_string(n.value));
  return line.name + "(" + (line.is_step() ? print(line.args) : join(numbers, ", ")) + ")" +
         (line.results.empty() ? "" : " as " + join(line.results, ", "));
}

std::string print(const FunctionPlan& plan) {
  std::string s = "schedule " + plan.shown();
  if (!plan.processor.empty()) s += " on " + quoted(plan.processor);
  if (!plan.function.empty()) s += " of " + quoted(plan.function);
  for (const PlanLine& l : plan.lines) s += "\n  " + print(l);
  return s + "\n";
}

}  // namespace language
}  // namespace tc
