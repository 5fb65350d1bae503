// What `tc-emit tune` shows: on a terminal a line for each of the heaviest tasks, redrawn in place; a table at the end.
#pragma once
#include <chrono>
#include <string>

#include "cli/tune/session.h"

namespace tc {

class TuneDisplay {
 public:
  /// `live`: stderr is a terminal, and nobody has asked for silence. `plain`: a line on stderr for every gain.
  TuneDisplay(bool live, bool plain) : live_(live), plain_(plain) {}
  ~TuneDisplay();
  TuneDisplay(const TuneDisplay&) = delete;
  TuneDisplay& operator=(const TuneDisplay&) = delete;
  void show(const TuneSession& session, const TuneState* now);
  /// Takes the lines away.
  void clear();

 private:
  bool live_, plain_;
  size_t lines_ = 0;
  std::chrono::steady_clock::time_point next_ = {};
  std::map<const TuneState*, double> told_;  // looked up only
};

/// "12.3 us"; "-" for no time.
std::string time_text(double ns);
/// A line for each task that was measured, and one for the network.
std::string tune_table(const TuneSession& session);
/// The tasks without measurements, as a table, or as an array of JSON.
std::string task_list(const TuneTasks& tasks, const std::vector<bool>& has_choice, bool json);

}  // namespace tc
