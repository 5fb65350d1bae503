// Builds candidates beside each other, and times each alone, in turns with another one.
#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/build_model.h"
#include "cli/tune/runner.h"
#include "support/text.h"

namespace tc {
namespace {

constexpr double kHopeless = 1.5;  // times slower in the first turn: no further turns

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return (v[(v.size() - 1) / 2] + v[v.size() / 2]) / 2;
}

/// What a run of the program says: its median, or why there is none.
struct Timed {
  double ns = 0;
  std::string state = "ok", reason;
};

Timed judge(const ProcessResult& r) {
  const std::string told = printable(r.output, 500);
  if (r.status == kTimedOut) return {0, "timeout", "the program took too long"};
  if (r.status == 1 && r.output.find("  FAIL") != std::string::npos) return {0, "wrong", told};
  if (r.status != 0) return {0, "crash", "the program ended with " + to_text(int64_t(r.status)) + ": " + told};
  const size_t at = r.output.rfind("{\"calls\"");
  const auto j = nlohmann::json::parse(at == std::string::npos ? "" : r.output.substr(at), nullptr, false);
  if (!j.is_object() || !j.contains("median_ns") || !j["median_ns"].is_number())
    return {0, "crash", "the program did not say how long it took: " + told};
  return {std::max(0.1, j["median_ns"].get<double>()), "ok", ""};
}

Timed time_once(const TuneTrial& t, const std::string& package) {
  const TaskReference& ref = t.reference;
  return judge(run_limited(
      {package + "/candidate", "--inputs", ref.folder, "--expect", ref.folder, "--rtol", ref.rtol, "--atol", ref.atol,
       "--threads", to_text(int64_t(t.threads)), "--measure", to_text(t.seconds), "--evict", to_text(t.evict_bytes)},
      t.timeout));
}

TuneResult time_in_turns(const TuneTrial& t) {
  TuneResult r;
  const auto take = [&](const std::string& package, std::vector<double>& list) {
    const Timed once = time_once(t, package);
    if (once.state == "ok")
      list.push_back(once.ns);
    else if (&list == &r.ns)
      r.state = once.state, r.reason = once.reason;
    else
      r.state = "crash", r.reason = "what it is compared with fails: " + once.reason;
    return r.state == "ok";
  };
  for (int turn = 0; turn < t.repeat; turn++) {
    const bool first = turn % 2 == 0;
    if (first && !take(t.package, r.ns)) break;
    if (!t.against.empty() && !take(t.against, r.against_ns)) break;
    if (!first && !take(t.package, r.ns)) break;
    if (turn == 0 && !t.against.empty() && r.ns[0] > kHopeless * r.against_ns[0]) break;
  }
  return r;
}

class LocalRunner : public Runner {
 public:
  explicit LocalRunner(int jobs) : jobs_(size_t(std::max(1, jobs))) {}

  void run(const std::vector<TuneTrial>& trials, const std::function<void(size_t, const TuneResult&)>& done) override {
    std::map<std::string, double> packages;  // that are not built yet, and the time that each has
    for (const TuneTrial& t : trials)
      for (const std::string& p : {t.package, t.against})
        if (!p.empty() && built_.count(p) == 0) packages.emplace(p, t.timeout);
    build({packages.begin(), packages.end()});
    for (size_t i = 0; i < trials.size(); i++) {
      const ProcessResult& b = built_.at(trials[i].package);
      if (b.status == -1) tool_missing("make", "install make and a C compiler (Debian: apt install build-essential)");
      if (b.status == 0)
        done(i, time_in_turns(trials[i]));
      else if (b.status == kTimedOut)
        done(i, {"timeout", "the compiler took too long", {}, {}});
      else
        done(i, {"build", printable(b.output, 500), {}, {}});
    }
  }

 private:
  void build(const std::vector<std::pair<std::string, double>>& packages) {
    for (size_t at = 0; at < packages.size(); at += jobs_) {
      std::vector<std::pair<std::string, std::future<ProcessResult>>> running;
      for (size_t i = at; i < std::min(at + jobs_, packages.size()); i++)
        running.emplace_back(packages[i].first, std::async(std::launch::async, [p = packages[i]] {
                               return run_limited({"make", "-s", "-C", p.first, "candidate"}, p.second);
                             }));
      for (auto& [package, result] : running) built_[package] = result.get();
    }
  }

  size_t jobs_;
  std::map<std::string, ProcessResult> built_;
};

}  // namespace

double TuneResult::time() const { return median(ns); }

double TuneResult::share() const {
  if (against_ns.empty()) return 1;
  std::vector<double> shares;
  for (size_t i = 0; i < std::min(ns.size(), against_ns.size()); i++) shares.push_back(ns[i] / against_ns[i]);
  return median(shares);
}

std::unique_ptr<Runner> local_runner(int jobs) { return std::make_unique<LocalRunner>(jobs); }

}  // namespace tc
