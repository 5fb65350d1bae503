#include "cli/progress.h"

#include <unistd.h>

#include <cstdlib>

#include "cli/commands.h"

namespace tc {

ProgressLine::ProgressLine(std::string name, bool on)
    : name_(std::move(name)), on_(on), next_(Clock::now() + std::chrono::milliseconds(500)) {}

void ProgressLine::show(const std::string& what) {
  if (what.empty()) return clear();
  const auto now = Clock::now();
  if (!on_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  shown_ = true;
  print_err("\r\x1b[K" + name_ + ": " + what);
}

void ProgressLine::clear() {
  if (shown_) print_err("\r\x1b[K");
  shown_ = false;
}

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return ::isatty(2) == 1 && term && std::string_view(term) != "dumb";
}

}  // namespace tc
