#include "cli/tune/tasks.h"

#include <algorithm>
#include <map>

#include "cli/build_model.h"
#include "cli/option_table.h"
#include "cli/option_values.h"

namespace tc {
namespace {

/// How often a run calls each kernel; loops count as often as is known, once at least, and both branches of an If.
void count_calls(const std::vector<Step>& steps, double times, std::vector<double>& calls) {
  for (const Step& s : steps) {
    if (const Call* c = std::get_if<Call>(&s.kind)) calls.at(size_t(c->kernel)) += times;
    if (const IfStep* i = std::get_if<IfStep>(&s.kind)) {
      count_calls(i->then, times, calls);
      count_calls(i->otherwise, times, calls);
    }
    if (const LoopStep* l = std::get_if<LoopStep>(&s.kind))
      count_calls(l->body, times * double(std::max({l->trips, l->declared, int64_t(1)})), calls);
  }
}

}  // namespace

std::vector<bool> TuneTask::constant_input() const {
  std::vector<bool> known;
  for (const Constant& c : constants) known.push_back(c != nullptr);
  return known;
}

TuneTasks tasks_of(const CommandLine& given, Diagnostics& problems) {
  CommandLine c = given;
  TuneTasks tasks;
  std::map<std::string, size_t> place;                 // by function
  std::map<std::pair<std::string, int>, double> uses;  // calls in the text, by function and kernel
  c.request.scheduled = [&](const ScheduledFunction& f) {
    if (!place.try_emplace(f.plan.function, tasks.list.size()).second) return;
    tasks.list.push_back({f.plan.function, f.plan.signature, f.fn, f.constants});
  };
  c.request.called = [&](const std::string& function, int kernel) { uses[{function, kernel}] += 1; };
  const Compilation compiled = compile_for_here(c, problems);
  if (problems.has_errors()) return {};
  const Program& p = compiled.program;
  std::vector<double> calls(p.kernels.size()), in_text(p.kernels.size());
  count_calls(p.steps, 1, calls);
  for (const auto& [use, n] : uses) in_text[size_t(use.second)] += n;
  for (const auto& [use, n] : uses) {
    const auto kernel = size_t(use.second);
    TuneTask& t = tasks.list[place.at(use.first)];
    t.calls += calls[kernel] * n / in_text[kernel];
    t.floor_ns = p.kernels[kernel].work.floor_ns;
    t.macs = p.kernels[kernel].work.macs;
  }
  std::erase_if(tasks.list, [](const TuneTask& t) { return t.calls == 0; });  // what counts a loop
  tasks.run_bytes = p.arena_bytes + p.weights_bytes;
  return tasks;
}

bool is_named(std::string_view word, const std::string& signature, const std::string& function) {
  return !word.empty() && (signature.starts_with(word) || function.starts_with(word));
}

std::vector<TuneTask> named_tasks(std::vector<TuneTask> all, const std::string& words) {
  if (words.empty() || words == "list") return all;
  std::vector<bool> wanted(all.size());
  for (const std::string_view word : parts_of(words, ',')) {
    bool found = false;
    for (size_t i = 0; i < all.size(); i++)
      if (is_named(word, all[i].signature, all[i].function)) found = wanted[i] = true;
    if (!found) {
      std::vector<std::string_view> names;
      for (const TuneTask& t : all) names.push_back(t.signature);
      usage("no task begins with '" + printable(word) + "'" + printable(did_you_mean(word, names)),
            "tc-emit tune MODEL --tasks list names them");
    }
  }
  std::vector<TuneTask> some;
  for (size_t i = 0; i < all.size(); i++)
    if (wanted[i]) some.push_back(std::move(all[i]));
  return some;
}

}  // namespace tc
