#include "cli/tune/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/commands.h"
#include "support/json_text.h"

namespace tc {
namespace {

template <class... T>
std::string format(const char* form, T... values) {
  char text[256];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

std::string name_of(const TuneTask& t) { return printable(t.signature, 52); }

// Those that were measured, by their share of a run, the heaviest first.
std::vector<const TuneState*> by_weight(const TuneSession& session) {
  std::vector<const TuneState*> list;
  for (const TuneState& s : session.states()) list.push_back(&s);
  std::stable_sort(list.begin(), list.end(), [](const TuneState* a, const TuneState* b) {
    return a->task.calls * a->model_ns > b->task.calls * b->model_ns;
  });
  return list;
}

std::string header() {
  return format("%-52s %6s %10s %10s %8s %6s %7s\n", "function", "calls", "model", "best", "of model", "floor",
                "trials");
}

std::string row(const TuneState& s, int threads) {
  const double floor = s.share_of_floor(threads);
  return format("%-52s %6.0f %10s %10s ", name_of(s.task).c_str(), s.task.calls, time_text(s.model_ns).c_str(),
                time_text(s.best_ns()).c_str()) +
         (s.model_ns > 0 ? format("%8.3f ", s.best_share) : format("%8s ", "-")) +
         (floor > 0 ? format("%4.0f %% ", 100 * floor) : format("%6s ", "-")) + format("%7lld", (long long)s.trials) +
         (s.failed.empty() ? s.ended.empty() ? "" : "  " + s.ended : "  cannot be measured");
}

size_t terminal_rows() {
  winsize size{};
  return ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_row > 6 ? size.ws_row : 24;
}

}  // namespace

std::string time_text(double ns) {
  if (ns <= 0) return "-";
  constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  for (; ns >= 999.5 && unit < 3; unit++) ns /= 1000;
  return format("%.3g %s", ns, kUnits[unit]);
}

TuneDisplay::~TuneDisplay() { clear(); }

void TuneDisplay::clear() {
  if (lines_ > 0) print_err("\x1b[" + std::to_string(lines_) + "A\x1b[J");
  lines_ = 0;
}

void TuneDisplay::show(const TuneSession& session, const TuneState* now) {
  if (plain_ && now && now->best_share < told_.try_emplace(now, 1).first->second) {
    told_[now] = now->best_share;
    print_err(format("tune: %s %.3f of the model's time, %s, after %lld trials\n", name_of(now->task).c_str(),
                     now->best_share, time_text(now->best_ns()).c_str(), (long long)session.trials()));
  }
  const auto t = std::chrono::steady_clock::now();
  if (!live_ || t < next_) return;
  next_ = t + std::chrono::milliseconds(200);
  clear();
  std::string s = header();
  size_t n = 1;
  for (const TuneState* state : by_weight(session)) {
    if (state->ended == "no choice") continue;
    if (++n > terminal_rows() - 2) break;
    s += (state == now ? "\x1b[1m" : "") + row(*state, session.limits().threads) + (state == now ? "\x1b[0m" : "") +
         "\n";
  }
  const TuneLimits& l = session.limits();
  s += format("%lld of %lld trials", (long long)session.trials(), (long long)l.trials);
  if (l.seconds > 0) s += format(", %.0f s left", std::max(0.0, l.seconds - session.seconds()));
  if (session.model_run_ns() > 0)
    s += format("; a run takes %.3f of the model's time", session.best_run_ns() / session.model_run_ns());
  s += "\n";
  print_err(s);
  lines_ = size_t(std::count(s.begin(), s.end(), '\n'));
}

std::string tune_table(const TuneSession& session) {
  std::string s = header();
  size_t fixed = 0;
  for (const TuneState* state : by_weight(session)) {
    if (state->ended == "no choice") {
      fixed++;
      continue;
    }
    s += row(*state, session.limits().threads) + "\n";
    if (!state->failed.empty()) s += "  " + printable(state->failed, 300) + "\n";
  }
  if (fixed > 0)
    s += format(fixed == 1 ? "%zu function has nothing to choose\n" : "%zu functions have nothing to choose\n", fixed);
  if (session.model_run_ns() > 0)
    s += "these calls take " + time_text(session.model_run_ns()) + " of a run by the model's schedules, " +
         time_text(session.best_run_ns()) +
         format(" by the best ones: %.3f of it\n", session.best_run_ns() / session.model_run_ns());
  return s;
}

std::string task_list(const TuneTasks& tasks, const std::vector<bool>& has_choice, bool json) {
  if (json) {
    auto list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < tasks.list.size(); i++) {
      const TuneTask& t = tasks.list[i];
      list.push_back({{"function", t.function},
                      {"signature", t.signature},
                      {"calls", t.calls},
                      {"macs", t.macs},
                      {"floor_ns", std::round(t.floor_ns * 10) / 10},
                      {"choice", bool(has_choice[i])}});
    }
    return json_text(list, 2) + "\n";
  }
  std::string s = format("%-16s %-52s %6s %10s\n", "of", "function", "calls", "floor");
  for (size_t i = 0; i < tasks.list.size(); i++) {
    const TuneTask& t = tasks.list[i];
    s += format("%-16s %-52s %6.0f %10s", t.function.c_str(), name_of(t).c_str(), t.calls,
                time_text(t.floor_ns).c_str()) +
         (has_choice[i] ? "\n" : "  nothing to choose\n");
  }
  return s;
}

}  // namespace tc
