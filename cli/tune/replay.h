// --records FILE: the best that was measured, as schedules.
#pragma once
#include <set>

#include "cli/options.h"
#include "cli/tune/record.h"

namespace tc {

/// The row of --cpu, or of --arch for CUDA.
std::string processor_row(const CommandLine& c);

/// The best of trials of one function in one setting, which may be the model's own plan; null if nothing was confirmed.
const TuneRecord* best_of(const std::vector<const TuneRecord*>& trials);

/// The best plan of each function among records of the row `cpu` and of `fp`. Of a function that was measured in several
/// settings, those of the first record count, with `threads` > 0 of the first of so many: times of different machines are not
/// compared. Only what was confirmed, and measured against the same plan of the model as the last record of the setting. In the
/// order in which functions first occur.
std::vector<FunctionPlan> best_plans(const std::vector<TuneRecord>& records, const std::string& cpu,
                                     const std::string& fp, int threads);

/// Reads the files of c.records and puts the best plans behind those of c.request.schedules. Warns on stderr where they have nothing
/// for this row, and of lines that are no records. Throws Error TC0601 (Io), TC0608 where there is no record at all.
void load_records(CommandLine& c);

/// Throws Error TC0608: the files of c.records hold no record.
[[noreturn]] void no_records(const CommandLine& c);

/// Says on stderr which lines are no records, the first few of them.
void warn_of_lines(const CommandLine& c, const RecordFile& file);

/// Counts the functions of a compilation that records decide on.
class RecordsUsed {
 public:
  /// Watches `request`, beside whoever does already. It has to stay.
  RecordsUsed(const CommandLine& c, CompileRequest& request);
  /// "records   3 of 5 functions as FILE has them\n".
  std::string text() const;

 private:
  const CommandLine& c_;
  std::set<std::string> functions_, recorded_;
};

/// The setting of records that this command line asks for and this machine makes: of the compiler that make takes.
TuneSetting setting_of(const CommandLine& c);

}  // namespace tc
