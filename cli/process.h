// Running other programs, and folders that last as long as an object.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "support/error.h"

namespace tc {

struct ProcessResult {
  int status = -1;     // exit code, 128 + signal, -1: could not be started
  std::string output;  // stdout, and stderr when it was asked for
};

/// Runs a program found on PATH with exactly these arguments; no shell is involved, and there is nothing to read from stdin.
/// `waiting` is called some ten times a second. Where a signal ends tc-emit, the program ends, and whatever it has started,
/// and Interrupted is thrown.
ProcessResult run_process(const std::vector<std::string>& argv, bool with_stderr,
                          const std::function<void()>& waiting = {});

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
