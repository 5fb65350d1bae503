// What is being done, and how long it takes: one line on a terminal that is rewritten in place and gone at the end, or a line
// for every phase that has ended.
#pragma once
#include <chrono>
#include <string>

namespace tc {

enum class ProgressMode { Auto, Plain, None };  // --progress; Auto: the line, where stderr is a terminal

class Progress {
 public:
  /// `name` stands in front: "resnet50.onnx: kernels 12/57".
  Progress(std::string name, ProgressMode mode);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `phase` goes on, or begins and ends the one before; "" only ends it. `part`: what of it is being done. The line is not shown
  /// in the first half second, nor more than ten times a second; from the third second of a phase on it counts them.
  void show(const std::string& phase, const std::string& part);
  /// Takes the line away, so that something else can be printed; the phase goes on.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void end_phase();

  std::string name_, phase_;
  bool line_, plain_, shown_ = false;
  Clock::time_point next_, begun_;
};

}  // namespace tc
