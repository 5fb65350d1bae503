#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"

namespace tc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Is stderr a terminal that understands "clear to the end of the line"?
bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(2) == 1 && term && std::string_view(term) != "dumb";
}

}  // namespace

Progress::Progress(std::string name, ProgressMode mode)
    : name_(std::move(name)),
      line_(mode == ProgressMode::Auto && stderr_is_terminal()),
      plain_(mode == ProgressMode::Plain),
      next_(Clock::now() + milliseconds(500)) {}

// What an exception has ended is no phase that was done.
Progress::~Progress() { clear(); }

void Progress::show(const std::string& phase, const std::string& part) {
  if (!line_ && !plain_) return;
  const auto now = Clock::now();
  if (phase != phase_) {
    end_phase();
    phase_ = phase;
    begun_ = now;
  }
  if (phase.empty()) clear();
  if (phase.empty() || !line_ || now < next_) return;
  next_ = now + milliseconds(100);
  shown_ = true;
  const auto spent = std::chrono::duration_cast<seconds>(now - begun_).count();
  print_err("\r\x1b[K" + name_ + ": " + phase + (part.empty() ? "" : " " + part) +
            (spent < 3 ? "" : ", " + to_text(int64_t(spent)) + " s"));
}

void Progress::end_phase() {
  if (!plain_ || phase_.empty()) return;
  char took[32];
  std::snprintf(took, sizeof took, "%.3f s", std::chrono::duration<double>(Clock::now() - begun_).count());
  print_err(name_ + ": " + phase_ + " " + took + "\n");
}

void Progress::clear() {
  if (shown_) print_err("\r\x1b[K");
  shown_ = false;
}

}  // namespace tc
