#include "cli/tune/replay.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/process.h"
#include "support/read_file.h"

namespace tc {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// "model name", family and model of /proc/cpuinfo, which together name a microarchitecture.
std::string processor_name() {
  const std::string text = try_read_file("/proc/cpuinfo").value_or("");
  const auto field = [&](const std::string& name) {
    for (size_t at = 0; at < text.size();) {
      const std::string line = first_line(text.substr(at));
      at += line.size() + 1;
      const size_t colon = line.find(':');
      if (colon == line.npos || line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != name) continue;
      return line.substr(std::min(colon + 2, line.size()));
    }
    return std::string();
  };
  const std::string name = field("model name"), family = field("cpu family"), model = field("model");
  if (name.empty()) return "unknown";
  return name + (family.empty() ? "" : " (family " + family + ", model " + model + ")");
}

/// The first line of the compiler's --version, and the user's flags. Throws Error TC0705 where there is none.
std::string compiler_name() {
  const ProcessResult r = run_process({"sh", "-c", "${CC:-cc} --version"}, true);
  if (r.status != 0) tool_missing("C compiler", "install one (Debian: apt install build-essential), or set CC to one");
  std::string s = first_line(r.output);
  for (const char* flags : {"CFLAGS", "CPPFLAGS", "LDFLAGS", "TC_ARCH", "TC_FP", "TC_THREADS"})
    if (const char* value = std::getenv(flags)) s += "; " + std::string(flags) + "=" + value;
  return s;
}

/// The GPU's name, or that there is none and the CPU does its work.
std::string device_name() {
  if (!has_gpu()) return "cuda_on_cpu, " + processor_name();
  const ProcessResult r = run_process({"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"}, true);
  return r.status == 0 ? first_line(r.output) : "unknown GPU";
}

/// The first line of the version of what compiles for the GPU, or for the CPU in its place.
std::string device_compiler_name() {
  const std::string command = has_gpu() ? "${CUDACXX:-nvcc} --version | grep release" : "${CXX:-c++} --version";
  const ProcessResult r = run_process({"sh", "-c", command}, true);
  if (r.status != 0)
    tool_missing("C++ compiler", "install one (Debian: apt install build-essential), or set CXX to one");
  return first_line(r.output);
}

std::string fp_of(const CommandLine& c) { return c.request.options.strict_fp ? "strict" : "fast"; }

std::string names_of(const CommandLine& c) {
  std::vector<std::string> names;
  for (const std::string& given : c.records)
    names.push_back(given == kShippedRecords ? "tc-emit itself" : printable(given));
  return join(names, ", ");
}

// That there are records, and of what, but none for this row.
void warn_of_rows(const CommandLine& c, const RecordFile& file) {
  if (c.json_diagnostics) return;
  const std::string row_option = c.request.target.is_cuda() ? "--arch" : "--cpu";
  std::set<std::string> rows;
  for (const TuneRecord& r : file.records)
    rows.insert((r.setting.target == "cuda" ? "--arch " : "--cpu ") + printable(r.setting.cpu) + ", --fp " +
                printable(r.setting.fp));
  print_err("warning: " + names_of(c) + " has nothing for " + row_option + " " + processor_row(c) + ", --fp " +
            fp_of(c) + (c.threads > 0 ? ", " + to_text(int64_t(c.threads)) + " threads" : "") +
            "; its records are for " + join({rows.begin(), rows.end()}, "; ") + "\n");
}

}  // namespace

std::string processor_row(const CommandLine& c) {
  return std::string(c.request.target.is_cuda() ? c.request.target.gpu.name : c.request.target.cpu.name);
}

const TuneRecord* best_of(const std::vector<const TuneRecord*>& trials) {
  const std::string& baseline = trials.back()->baseline;
  const TuneRecord* best = nullptr;
  for (const TuneRecord* r : trials)
    if (r->state == "ok" && r->confirmed && r->baseline == baseline && (!best || r->of_model < best->of_model))
      best = r;
  return best;
}

std::vector<FunctionPlan> best_plans(const std::vector<TuneRecord>& records, const std::string& cpu,
                                     const std::string& fp, int threads) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<const TuneRecord*>> trials;  // by function; all of one setting
  for (const TuneRecord& r : records) {
    if (r.setting.cpu != cpu || r.setting.fp != fp || (threads > 0 && r.setting.threads != threads)) continue;
    std::vector<const TuneRecord*>& list = trials[r.function];
    if (list.empty()) order.push_back(r.function);
    if (list.empty() || list[0]->setting == r.setting) list.push_back(&r);
  }
  std::vector<FunctionPlan> plans;
  for (const std::string& function : order)
    if (const TuneRecord* r = best_of(trials.at(function))) {
      FunctionPlan p{"*", cpu, function, r->plan};
      p.recorded = true;
      plans.push_back(std::move(p));
    }
  return plans;
}

void no_records(const CommandLine& c) {
  throw Error(Diagnostic{"TC0608",
                         ExitCode::Rejected,
                         {},
                         names_of(c) + " has no record of tc-emit tune that this version reads",
                         {"tc-emit tune MODEL --records FILE measures some"},
                         false});
}

void warn_of_lines(const CommandLine& c, const RecordFile& file) {
  constexpr size_t kShown = 5;
  if (c.json_diagnostics) return;
  for (size_t i = 0; i < std::min(kShown, file.left_out.size()); i++) {
    const LineLeftOut& l = file.left_out[i];
    print_err("warning: " + printable(l.file) + ":" + to_text(int64_t(l.line)) +
              ": no record: " + printable(l.reason, 200) + "\n");
  }
  if (file.left_out.size() > kShown)
    print_err("warning: " + to_text(int64_t(file.left_out.size() - kShown)) + " more lines are no records\n");
}

void load_records(CommandLine& c) {
  if (c.records.empty()) return;
  const RecordFile file = read_record_files(c.records);
  warn_of_lines(c, file);
  if (file.records.empty()) no_records(c);
  std::vector<FunctionPlan> plans =
      best_plans(file.records, processor_row(c), fp_of(c), c.request.target.is_cuda() ? 0 : c.threads);
  if (plans.empty()) warn_of_rows(c, file);
  auto all = c.request.schedules ? std::make_shared<StatedSchedules>(*c.request.schedules)
                                 : std::make_shared<StatedSchedules>();
  for (FunctionPlan& p : plans) all->plans.push_back(std::move(p));
  c.request.schedules = std::move(all);
}

RecordsUsed::RecordsUsed(const CommandLine& c, CompileRequest& request) : c_(c) {
  request.scheduled = [this, other = request.scheduled](const ScheduledFunction& f) {
    functions_.insert(f.plan.function);
    if (f.plan.recorded) recorded_.insert(f.plan.function);
    if (other) other(f);
  };
}

std::string RecordsUsed::text() const {
  return "records   " + to_text(int64_t(recorded_.size())) + " of " + to_text(int64_t(functions_.size())) +
         " functions as " + names_of(c_) + (c_.records.size() == 1 ? " has" : " have") + " them\n";
}

TuneSetting setting_of(const CommandLine& c) {
  if (c.request.target.is_cuda()) return {processor_row(c), fp_of(c), device_name(), device_compiler_name(), 1, "cuda"};
  return {processor_row(c), fp_of(c), processor_name(), compiler_name(), std::max(1, c.threads)};
}

}  // namespace tc
