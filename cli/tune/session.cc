#include "cli/tune/session.h"

#include <algorithm>
#include <filesystem>

#include "support/interrupt.h"

namespace tc {
namespace {

constexpr double kGain = 0.99;                       // what is a gain, as a share of the best
constexpr double kTurn = 0.06;                       // seconds of a turn
constexpr int64_t kMostEvicted = int64_t(64) << 20;  // larger than what caches keep
constexpr double kPatience = 0.1;                    // how much a trial without a gain makes a task less urgent
constexpr double kReferenceTime = 12;                // times --timeout that plain loops may take

/// What the search calls a record's plan: the sketch, if its steps are the plan's.
const std::vector<PlanLine>& asked(const TuneRecord& r, const PlanSpace& space) {
  if (r.sketch.empty()) return r.plan;
  const std::optional<PlanPoint> p = space.point(r.sketch);
  return p && plan_text(p->written) == plan_text(r.plan) ? r.sketch : r.plan;
}

}  // namespace

double TuneState::share_of_floor(int threads) const {
  return best_ns() > 0 ? task.floor_ns / std::max(1, threads) / best_ns() : 0;
}

void TuneState::hear(double ns, double share) {
  if (ns <= 0 || share <= 0) return;
  model_ns = model_ns > 0 ? std::min(model_ns, ns / share) : ns / share;
}

PlanSpace plans_of(const CommandLine& c, const Backend& backend, const TuneTask& t) {
  const Options& o = c.request.options;
  return {
      t.fn, t.constant_input(), backend, {.strict_fp = o.strict_fp, .precision = o.precision}, std::max(1, c.threads)};
}

TuneSession::TuneSession(const CommandLine& c, TuneTasks tasks, const TuneLimits& limits, TuneSetting setting,
                         const RecordFile& known, RecordWriter& records, Runner& runner, Listener tell)
    : c_(c),
      limits_(limits),
      setting_(std::move(setting)),
      records_(records),
      runner_(runner),
      tell_(std::move(tell)),
      backend_(make_backend(c.request.target)),
      run_bytes_(tasks.run_bytes) {
  for (const auto& [hash, definition] : known.definitions) defined_.insert(hash);
  for (TuneTask& t : tasks.list) {
    stop_if_interrupted();
    c.request.listener.tell("tasks", to_text(int64_t(states_.size() + 1)) + "/" + to_text(int64_t(tasks.list.size())));
    PlanSearch search(plans_of(c, *backend_, t));
    PlanPoint model = search.model();
    states_.push_back({std::move(t), std::move(search), std::move(model), 0, 1, 0, 0, ""});
    TuneState& s = states_.back();
    if (!s.search.has_choice()) s.ended = "no choice";
    take_over(s, known.records);
  }
  c.request.listener.tell("");
}

// What was measured before: against the model's plan as it is now, or else only as something to begin with.
void TuneSession::take_over(TuneState& s, const std::vector<TuneRecord>& known) {
  const std::string own = plan_text(s.search.model().lines);
  for (const TuneRecord& r : known) {
    if (r.function != s.task.function || r.setting.cpu != setting_.cpu || r.setting.fp != setting_.fp) continue;
    if (r.setting != setting_ || r.baseline != own) {
      if (r.state == "ok" && r.confirmed && r.of_model < kGain && s.ended.empty())
        s.search.suggest(asked(r, s.search.space()));
      continue;
    }
    const std::vector<PlanLine>& plan = asked(r, s.search.space());
    if (!s.search.recall(plan, r.state == "ok" ? r.of_model : 0)) continue;
    if (r.state != "ok") continue;
    s.hear(r.ns, r.of_model);
    if (!r.confirmed) continue;
    if (r.of_model < s.best_share) {
      s.best_share = r.of_model;
      s.best = *s.search.space().point(plan);
    }
  }
}

double TuneSession::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

double TuneSession::model_run_ns() const {
  double sum = 0;
  for (const TuneState& s : states_) sum += s.task.calls * s.model_ns;
  return sum;
}

double TuneSession::best_run_ns() const {
  double sum = 0;
  for (const TuneState& s : states_) sum += s.task.calls * s.best_ns();
  return sum;
}

bool TuneSession::is_over() const {
  return trials_ >= limits_.trials || (limits_.seconds > 0 && seconds() >= limits_.seconds);
}

// First the model's plan of each, the heaviest one first; then the one where most is still to be gained: what a run spends above the
// floor, less the longer nothing was found.
TuneState* TuneSession::choose() {
  TuneState* best = nullptr;
  double most = -1;
  const auto consider = [&](TuneState& s, double urgency) {
    if (!s.ended.empty() || urgency <= most) return;
    most = urgency;
    best = &s;
  };
  for (TuneState& s : states_)
    if (s.model_ns == 0) consider(s, s.task.calls * s.task.floor_ns);
  if (best) return best;
  for (TuneState& s : states_) {
    const double above = std::max(0.05, 1 - s.share_of_floor(limits_.threads));
    consider(s, s.task.calls * s.best_ns() * above / (1 + kPatience * double(s.since_gain)));
  }
  return best;
}

void TuneSession::run() {
  while (!is_over()) {
    TuneState* s = choose();
    if (!s) return;
    tell_(*this, s);
    if (begin(*s)) serve(*s);
    tell_(*this, s);
  }
}

std::string TuneSession::write(const TuneState& s, const PlanPoint& p) {
  const std::string dir = folder_.path() + "/" + to_text(packages_++);
  write_candidate(c_, candidate_program(c_, s.task, p.written), dir, true);
  return dir;
}

TuneTrial TuneSession::trial(const TuneState& s, const std::string& package, const std::string& against,
                             int repeat) const {
  return {package, against,         s.reference, limits_.threads,
          repeat,  limits_.timeout, kTurn,       std::min(run_bytes_, kMostEvicted)};
}

void TuneSession::record(const TuneState& s, const PlanPoint& p, const TuneResult& r, double share, bool confirmed) {
  if (defined_.insert(s.task.function).second)
    if (const FunctionDefinition d = definition_of(s.task.fn, s.task.constant_input()); !d.text.empty())
      records_.add(d);
  const bool sketched = plan_text(p.written) != plan_text(p.lines);
  records_.add({s.task.function, s.task.signature, setting_, p.written, sketched ? p.lines : std::vector<PlanLine>(),
                plan_text(s.search.model().lines), r.state, r.reason, r.time(), share, confirmed});
}

// Reference, package and time of the model's plan; false where the task has ended.
bool TuneSession::begin(TuneState& s) {
  if (s.model_package.empty()) try {
      const std::string dir = folder_.path() + "/reference" + to_text(packages_++);
      s.reference = make_reference(c_, s.task, dir, kReferenceTime * limits_.timeout);
      s.model_package = write(s, s.search.model());
      const bool is_model = plan_text(s.best.lines) == plan_text(s.search.model().lines);
      s.best_package = is_model ? s.model_package : write(s, s.best);
    } catch (const Error& e) {
      s.failed = s.ended =
          e.diagnostic().message + (e.diagnostic().notes.empty() ? "" : ": " + e.diagnostic().notes[0]);
      return false;
    }
  if (s.model_ns > 0) return true;
  runner_.run({trial(s, s.model_package, "", limits_.repeat)}, [&](size_t, const TuneResult& r) {
    record(s, s.search.model(), r, 1, true);
    s.search.tell(s.search.model(), r.state == "ok" ? 1 : 0);
    s.trials++;
    trials_++;
    if (r.state == "ok")
      s.hear(r.time(), 1);
    else
      s.failed = s.ended = r.reason;
  });
  return false;
}

void TuneSession::serve(TuneState& s) {
  const int64_t left = limits_.trials - trials_;
  std::vector<PlanPoint> points = s.search.next(size_t(std::min<int64_t>(limits_.jobs, left)));
  if (points.empty()) s.ended = "all tried";
  std::vector<TuneTrial> trials;
  // Steps may lead to loops that nobody can print: that is a defect, and the end of this candidate, not of the search.
  std::erase_if(points, [&](const PlanPoint& p) {
    try {
      trials.push_back(trial(s, write(s, p), s.best_package, limits_.repeat));
      return false;
    } catch (const InternalError& e) {
      record(s, p, {"build", e.what(), {}, {}}, 0, false);
      s.search.tell(p, 0);
      s.trials++, s.since_gain++, trials_++;
      return true;
    }
  });
  size_t promising = points.size();
  double least = kGain;
  runner_.run(trials, [&](size_t i, const TuneResult& r) {
    const double share = r.share() * s.best_share;
    record(s, points[i], r, share, false);
    s.search.tell(points[i], r.state == "ok" ? share : 0);
    if (r.state == "ok") s.hear(r.time(), share);
    s.trials++;
    s.since_gain++;
    trials_++;
    if (r.state == "ok" && r.share() < least) {
      least = r.share();
      promising = i;
    }
    tell_(*this, &s);
  });
  if (promising < points.size()) confirm(s, points[promising], trials[promising].package);
  for (const TuneTrial& t : trials)
    if (t.package != s.best_package) std::filesystem::remove_all(t.package);
  if (limits_.early_stopping > 0 && s.since_gain >= limits_.early_stopping && s.ended.empty()) s.ended = "no gain";
}

// Of many that are equally fast one is always the luckiest: it is measured again, twice as long.
void TuneSession::confirm(TuneState& s, const PlanPoint& p, const std::string& package) {
  runner_.run({trial(s, package, s.best_package, 2 * limits_.repeat)}, [&](size_t, const TuneResult& r) {
    const double share = r.share() * s.best_share;
    record(s, p, r, share, r.share() < kGain);
    s.search.tell(p, r.state == "ok" ? share : 0);
    if (r.state != "ok" || r.share() >= kGain) return;
    if (s.best_package != s.model_package) std::filesystem::remove_all(s.best_package);
    s.best = p;
    s.best_share = share;
    s.best_package = package;
    s.since_gain = 0;
  });
}

}  // namespace tc
