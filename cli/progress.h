// One line on a terminal that says what is being done, rewritten in place and gone at the end.
#pragma once
#include <chrono>
#include <string>

namespace tc {

class ProgressLine {
 public:
  /// `name` stands in front: "resnet50: kernels 12/57". Shows nothing unless `on`.
  ProgressLine(std::string name, bool on);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows `what`; "" clears the line. Nothing is shown in the first half second, nor more than ten times a second.
  void show(const std::string& what);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string name_;
  bool on_, shown_ = false;
  Clock::time_point next_;
};

/// Is stderr a terminal that understands "clear to the end of the line"?
bool stderr_is_terminal();

}  // namespace tc
