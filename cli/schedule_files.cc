#include "cli/schedule_files.h"

#include "cli/commands.h"
#include "cli/new_file.h"
#include "passes/program/kernel_name.h"
#include "support/read_file.h"

namespace tc {

bool load_schedules(CommandLine& c) {
  if (c.schedules.empty()) return true;
  auto read = std::make_shared<StatedSchedules>();
  read->source = {c.schedules, read_file(c.schedules)};
  language::Problems problems;
  read->plans = language::read_schedules(read->source.text, problems);
  for (const language::Problem& p : problems) print_err(language::render(read->source, p));
  c.request.schedules = std::move(read);
  return problems.empty();
}

ScheduleWriter::ScheduleWriter(const CommandLine& c, CompileRequest& request) : c_(c) {
  request.scheduled = [this](const ScheduledFunction& f) {
    const FunctionPlan& plan = f.plan;
    // Functions that differ in which operands die behind them are scheduled alike.
    if (!met_.insert({plan.signature, plan.function}).second) return;
    texts_.push_back("# for " + language::print(selector_of(f.fn, stage_names(f.fn))) + "\n" + language::print(plan));
  };
}

std::string ScheduleWriter::write() const {
  std::string s;
  for (const std::string& text : texts_) s += (s.empty() ? "" : "\n") + text;
  NewFile(c_.write_schedules, s).put_in_place();
  return "wrote     " + printable(c_.write_schedules) + ": schedules of " + to_text(int64_t(texts_.size())) +
         " functions\n";
}

}  // namespace tc
