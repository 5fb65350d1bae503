// records: what tune has measured, printed, filtered, merged and pruned.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/option_table.h"
#include "cli/option_values.h"
#include "cli/tune/display.h"
#include "cli/tune/replay.h"
#include "cli/tune/tasks.h"
#include "support/json_text.h"

namespace tc {
namespace {

/// The trials of one function in one setting.
struct Trials {
  std::vector<const TuneRecord*> all;
  const TuneRecord* best = nullptr;  // null: nothing was confirmed
  size_t failed = 0;
  bool is_model() const { return plan_text(best->plan) == best->baseline; }
  bool has_gain() const { return best && !is_model() && best->of_model < 1; }
};

/// Whether the options of the command line ask for it.
bool is_wanted(const CommandLine& c, const TuneRecord& r) {
  const bool row = c.was_given("--cpu") || c.was_given("--arch");
  if (c.was_given("--target") || row)
    if (r.setting.target != (c.request.target.is_cuda() ? "cuda" : "c")) return false;
  if (row && r.setting.cpu != processor_row(c)) return false;
  if (c.threads > 0 && r.setting.threads != c.threads) return false;
  const std::vector<std::string_view> words = parts_of(c.tasks, ',');
  return words.empty() ||
         std::any_of(words.begin(), words.end(), [&](auto word) { return is_named(word, r.signature, r.function); });
}

/// Groups in the order in which they first occur.
std::vector<Trials> trials_of(const std::vector<const TuneRecord*>& records) {
  std::vector<Trials> groups;
  std::map<std::string, std::vector<size_t>> of_function;
  for (const TuneRecord* r : records) {
    std::vector<size_t>& places = of_function[r->function];
    auto at =
        std::find_if(places.begin(), places.end(), [&](size_t k) { return groups[k].all[0]->setting == r->setting; });
    if (at == places.end()) {
      places.push_back(groups.size());
      groups.emplace_back();
      at = places.end() - 1;
    }
    groups[*at].all.push_back(r);
    groups[*at].failed += r->state != "ok";
  }
  for (Trials& t : groups) t.best = best_of(t.all);
  return groups;
}

/// What replaying takes, and the time of the model's plan that its share refers to.
std::vector<const TuneRecord*> pruned(const std::vector<Trials>& groups) {
  std::vector<const TuneRecord*> kept;
  for (const Trials& t : groups) {
    if (!t.best) continue;
    const TuneRecord* model = nullptr;
    for (const TuneRecord* r : t.all)
      if (r->state == "ok" && r->confirmed && r->baseline == t.best->baseline && plan_text(r->plan) == r->baseline)
        model = r;
    if (model && model != t.best) kept.push_back(model);
    kept.push_back(t.best);
  }
  return kept;
}

std::string file_text(const RecordFile& file, const std::vector<const TuneRecord*>& records) {
  std::string s;
  std::set<std::string> defined;
  for (const TuneRecord* r : records) {
    const auto d = file.definitions.find(r->function);
    if (d != file.definitions.end() && defined.insert(r->function).second) s += definition_line(d->second);
    s += record_line(*r);
  }
  return s;
}

std::string setting_text(const TuneSetting& s) {
  return (s.target == "cuda" ? "--target cuda --arch " : "--cpu ") + printable(s.cpu) + " --fp " + printable(s.fp) +
         ", " + to_text(int64_t(s.threads)) + (s.threads == 1 ? " thread; " : " threads; ") + printable(s.processor) +
         "; " + printable(s.compiler);
}

std::string table_of(const std::vector<Trials>& groups) {
  std::vector<TuneSetting> settings;
  for (const Trials& t : groups)
    if (std::find(settings.begin(), settings.end(), t.all[0]->setting) == settings.end())
      settings.push_back(t.all[0]->setting);
  std::string s;
  for (const TuneSetting& setting : settings) {
    s += setting_text(setting) + "\n";
    char line[160];
    std::snprintf(line, sizeof line, "  %-16s  %-48s %6s %6s %9s %8s  %s\n", "of", "function", "trials", "failed",
                  "best", "of model", "plan");
    s += line;
    for (const Trials& t : groups) {
      if (t.all[0]->setting != setting) continue;
      std::snprintf(line, sizeof line, "  %-16s  %-48s %6zu %6zu %9s ", t.all[0]->function.c_str(),
                    printable(t.all[0]->signature, 48).c_str(), t.all.size(), t.failed,
                    t.best ? time_text(t.best->ns).c_str() : "-");
      s += line;
      std::snprintf(line, sizeof line, "%8.3f  ", t.best ? t.best->of_model : 1.0);
      s += t.best ? line + (t.is_model() ? "the model's" : printable(plan_text(t.best->plan), 200))
                  : std::string("       -  nothing was confirmed");
      s += "\n";
    }
  }
  return s;
}

std::string json_of(const RecordFile& file, const std::vector<Trials>& groups) {
  auto list = nlohmann::ordered_json::array();
  for (const Trials& t : groups) {
    const TuneRecord& r = *t.all[0];
    nlohmann::ordered_json j{{"function", r.function},
                             {"signature", r.signature},
                             {"target", r.setting.target},
                             {"cpu", r.setting.cpu},
                             {"fp", r.setting.fp},
                             {"processor", r.setting.processor},
                             {"compiler", r.setting.compiler},
                             {"threads", r.setting.threads},
                             {"trials", t.all.size()},
                             {"failed", t.failed}};
    if (const auto d = file.definitions.find(r.function); d != file.definitions.end()) j["definition"] = d->second.text;
    if (t.best) {
      j["ns"] = t.best->ns;
      j["of_model"] = t.best->of_model;
      for (const PlanLine& l : t.best->plan) j["plan"].push_back(language::print(l));
    }
    list.push_back(std::move(j));
  }
  return json_text(list, 2) + "\n";
}

}  // namespace

ExitCode records_command(const CommandLine& c) {
  if (c.records.empty()) usage("no file of records given", "usage: tc-emit records [OPTIONS] FILE...");
  const RecordFile file = read_record_files(c.records);
  warn_of_lines(c, file);
  if (file.records.empty()) no_records(c);
  std::vector<const TuneRecord*> wanted;
  std::set<std::string> lines;  // files that were merged have lines in common
  for (const TuneRecord& r : file.records)
    if (is_wanted(c, r) && lines.insert(record_line(r)).second) wanted.push_back(&r);
  std::vector<Trials> groups = trials_of(wanted);
  if (c.gains) {
    std::erase_if(groups, [](const Trials& t) { return !t.has_gain(); });
    wanted.clear();
    for (const Trials& t : groups) wanted.insert(wanted.end(), t.all.begin(), t.all.end());
  }
  if (c.prune) {
    wanted = pruned(groups);
    groups = trials_of(wanted);
  }
  if (c.out.empty()) {
    print_out(c.json ? json_of(file, groups) : table_of(groups));
    return ExitCode::Ok;
  }
  const NewFile out(c.out, file_text(file, wanted));
  out.put_in_place();
  if (!c.quiet)
    print_out("records   " + printable(c.out) + ": " + to_text(int64_t(wanted.size())) + " of " +
              to_text(int64_t(file.records.size())) + " records, of " + to_text(int64_t(groups.size())) +
              (groups.size() == 1 ? " function\n" : " functions\n"));
  return ExitCode::Ok;
}

}  // namespace tc
