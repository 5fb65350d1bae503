// tune: finds schedules by measuring them, and keeps what it has measured.
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/option_table.h"
#include "cli/tune/display.h"
#include "cli/tune/replay.h"
#include "support/read_file.h"

namespace tc {
namespace {

constexpr std::string_view kEmulated = "emulated";  // --runner, for CUDA

TuneLimits limits_of(const CommandLine& c) {
  TuneLimits l;
  if (c.trials > 0) l.trials = c.trials;
  if (c.was_given("--seconds")) l.seconds = c.seconds;
  l.early_stopping = c.early_stopping;
  if (c.repeat > 0) l.repeat = int(c.repeat);
  if (c.request.target.is_cuda()) l.timeout = 300;  // nvcc, or the emulation, has to be built
  if (c.timeout > 0) l.timeout = c.timeout;
  l.threads = std::max(1, c.threads);
  l.jobs = c.jobs > 0 ? int(c.jobs) : int(std::max(1u, std::thread::hardware_concurrency()));
  return l;
}

void need_what_tune_needs(const CommandLine& c) {
  need_model(c);
  if (c.json && c.tasks != "list")
    usage("--json is for --tasks list: what is measured is JSON anyway, in the file of records");
  if (c.records.empty() && c.tasks != "list")
    usage("no file of records given", "add --records FILE.jsonl; what it has stays, and is not measured again");
  if (c.records.size() > 1)
    usage("tune keeps what it measures in one file of --records, not in " + to_text(int64_t(c.records.size())),
          "tc-emit records A B -o FILE makes one file of several");
  if (!c.records.empty() && c.records[0] == kShippedRecords && c.tasks != "list")
    usage("--records default are those that tc-emit brings along, which do not grow", "name a file, or say ./default");
  if (c.request.target.is_cuda() && c.tasks != "list" && c.runner.empty() && !has_gpu())
    tool_missing("GPU with nvcc",
                 "--runner COMMAND measures somewhere else; --runner emulated runs candidates on this CPU, which "
                 "shows that they are right, not how fast they are");
}

ExitCode list_tasks(const CommandLine& c, const TuneTasks& tasks) {
  const std::unique_ptr<const Backend> backend = make_backend(c.request.target);
  std::vector<bool> choice;
  for (const TuneTask& t : tasks.list) choice.push_back(PlanSearch(plans_of(c, *backend, t)).has_choice());
  print_out(task_list(tasks, choice, c.json));
  return ExitCode::Ok;
}

/// How the command is said that replays the records.
std::string next_command(const CommandLine& c) {
  const std::string row = processor_row(c);
  return "tc-emit " + (c.request.target.is_cuda() ? "--target cuda --arch " + row : "--cpu " + row) + " --records " +
         printable(c.records[0]) + " " + printable(c.model) + " -o DIR";
}

}  // namespace

ExitCode tune_command(const CommandLine& c) {
  need_what_tune_needs(c);
  Diagnostics problems;
  TuneTasks tasks = tasks_of(c, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  tasks.list = named_tasks(std::move(tasks.list), c.tasks);
  if (c.tasks == "list") return list_tasks(c, tasks);
  RecordFile known;
  read_records(try_read_file(c.records[0]).value_or(""), c.records[0], known);
  warn_of_lines(c, known);
  RecordWriter records(c.records[0]);
  const bool emulated = c.request.target.is_cuda() && c.runner == kEmulated;
  if (emulated && !c.quiet)
    print_err("note: candidates run on the CPU, through cuda_on_cpu: their times say nothing about a GPU\n");
  const std::unique_ptr<Runner> runner =
      c.runner.empty() || emulated ? local_runner(limits_of(c).jobs) : command_runner(c.runner);
  TuneSetting setting = setting_of(c);
  runner->describe(setting);
  const bool live = ::isatty(2) == 1 && !c.quiet && c.progress == ProgressMode::Auto;
  int64_t done = 0;
  {
    TuneDisplay display(live, c.progress == ProgressMode::Plain);
    TuneSession session(c, std::move(tasks), limits_of(c), setting, known, records, *runner,
                        [&](const TuneSession& s, const TuneState* now) { display.show(s, now); });
    session.run();
    display.clear();
    done = session.trials();
    if (!c.quiet) print_out(tune_table(session));
  }
  if (c.quiet) return ExitCode::Ok;
  print_out("records   " + printable(c.records[0]) + ": " + to_text(int64_t(known.records.size())) + " were there, " +
            to_text(done) + " trials added" +
            (known.left_out.empty() ? "" : ", " + to_text(int64_t(known.left_out.size())) + " lines are no records") +
            "\nnext      " + next_command(c) + "\n");
  return ExitCode::Ok;
}

}  // namespace tc
