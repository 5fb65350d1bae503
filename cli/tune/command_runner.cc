// --runner CMD: a command that is given packages and answers with times, both as lines of JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/tune/runner.h"
#include "support/json_text.h"
#include "support/text.h"

namespace tc {
namespace {

using nlohmann::ordered_json;

class CommandRunner : public Runner {
 public:
  explicit CommandRunner(const std::string& command) : command_(command), talk_({"sh", "-c", command}) {}

  void describe(TuneSetting& setting) override {
    if (!talk_.say(json_text({{"id", 0}, {"ask", "setting"}}) + "\n")) fail("has ended");
    const ordered_json j = answer(kPatience);
    setting.processor = text(j, "processor");
    setting.compiler = text(j, "compiler");
    if (j["id"] != 0 || setting.processor.empty() || setting.compiler.empty())
      fail("did not say its processor and compiler");
  }

  void run(const std::vector<TuneTrial>& trials, const std::function<void(size_t, const TuneResult&)>& done) override {
    const int64_t first = next_;
    double patience = kPatience;
    for (const TuneTrial& t : trials) {
      say(t);
      patience += (2 + 2 * t.repeat) * t.timeout;  // two are built, and each is run in every turn
    }
    std::vector<bool> answered(trials.size());
    for (size_t left = trials.size(); left > 0; left--) {
      const ordered_json j = answer(patience);
      const int64_t id = j["id"].get<int64_t>() - first;
      if (id < 0 || id >= int64_t(trials.size()) || answered[size_t(id)])
        fail("answered a question that is not open: '" + printable(json_text(j), 200) + "'");
      answered[size_t(id)] = true;
      done(size_t(id), result_of(j, trials[size_t(id)]));
    }
  }

 private:
  static constexpr double kPatience = 60;  // seconds, beside what a runner needs

  ordered_json answer(double patience) {
    const std::optional<std::string> line = talk_.hear(patience);
    if (!line) fail("ended before it had answered, or has not said anything for too long");
    ordered_json j = ordered_json::parse(*line, nullptr, false);
    if (!j.is_object() || !j.contains("id") || !j["id"].is_number_integer())
      fail("said '" + printable(*line, 200) + "'");
    return j;
  }

  static std::string text(const ordered_json& j, const char* name) {
    return j.contains(name) && j[name].is_string() ? j[name].get<std::string>() : "";
  }

  void say(const TuneTrial& t) {
    const ordered_json j{{"id", next_++},
                         {"package", t.package},
                         {"against", t.against},
                         {"io", t.reference.folder},
                         {"rtol", t.reference.rtol},
                         {"atol", t.reference.atol},
                         {"threads", t.threads},
                         {"repeat", t.repeat},
                         {"timeout", t.timeout},
                         {"seconds", t.seconds},
                         {"evict_bytes", t.evict_bytes}};
    if (!talk_.say(json_text(j) + "\n")) fail("has ended");
  }

  static bool is_times(const ordered_json& j, const char* name) {
    if (!j.contains(name) || !j[name].is_array() || j[name].empty()) return false;
    for (const auto& v : j[name])
      if (!v.is_number() || !std::isfinite(v.get<double>()) || v.get<double>() <= 0) return false;
    return true;
  }

  TuneResult result_of(const ordered_json& j, const TuneTrial& t) const {
    TuneResult r;
    if (const std::string state = text(j, "state"); !state.empty() && state != "ok") {
      if (state != "wrong" && state != "timeout" && state != "crash" && state != "build")
        fail("said a state that there is none of: '" + printable(state, 100) + "'");
      return {state, printable(text(j, "reason"), 500), {}, {}};
    }
    if (!is_times(j, "ns") || (!t.against.empty() && !is_times(j, "against_ns"))) fail("said no times");
    r.ns = j["ns"].get<std::vector<double>>();
    if (!t.against.empty()) r.against_ns = j["against_ns"].get<std::vector<double>>();
    return r;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Diagnostic{"TC0704",
                           ExitCode::Tool,
                           {},
                           "the runner " + printable(command_) + " " + what,
                           {"docs/tuning.md says what a runner reads and writes"},
                           false});
  }

  std::string command_;
  Conversation talk_;
  int64_t next_ = 1;
};

}  // namespace

std::unique_ptr<Runner> command_runner(const std::string& command) { return std::make_unique<CommandRunner>(command); }

}  // namespace tc
