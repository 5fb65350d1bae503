// Running other programs, and folders that last as long as an object.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/error.h"

namespace tc {

struct ProcessResult {
  int status = -1;     // exit code, 128 + signal, -1: could not be started; see run_limited()
  std::string output;  // stdout, and stderr when it was asked for
};

/// Runs a program found on PATH with exactly these arguments; no shell is involved, and there is nothing to read from stdin.
/// `waiting` is called some ten times a second. Where a signal ends tc-emit, the program ends, and whatever it has started,
/// and Interrupted is thrown.
ProcessResult run_process(const std::vector<std::string>& argv, bool with_stderr,
                          const std::function<void()>& waiting = {});

/// The same, for at most so many seconds, with stderr; then it is ended, and the status is kTimedOut.
ProcessResult run_limited(const std::vector<std::string>& argv, double seconds);
constexpr int kTimedOut = -2;

/// A program that lines are said to, and that answers with lines. It is ended with this object.
class Conversation {
 public:
  explicit Conversation(const std::vector<std::string>& argv);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  /// False where it is gone.
  bool say(const std::string& text);
  /// Waits for the next line, without its end, for at most so many seconds; null where none comes. Throws Interrupted.
  std::optional<std::string> hear(double seconds);

 private:
  struct Ends;
  std::unique_ptr<Ends> ends_;
};

/// A fresh private folder that is removed with everything in it.
class TemporaryDir {
 public:
  TemporaryDir();
  /// A fresh folder whose path begins so; throws `otherwise` where there can be none.
  TemporaryDir(const std::string& stem, const Error& otherwise);
  ~TemporaryDir();
  TemporaryDir(const TemporaryDir&) = delete;
  TemporaryDir& operator=(const TemporaryDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tc
