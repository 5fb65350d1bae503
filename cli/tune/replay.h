// --records FILE: the best that was measured, as schedules.
#pragma once
#include <set>

#include "cli/options.h"
#include "cli/tune/record.h"

namespace tc {

/// The best plan of each function among records of the row `cpu` and of `fp`. Of a function that was measured in several
/// settings, those of the first record count, with `threads` > 0 of the first of so many: times of different machines are not
/// compared. Only what was confirmed, and measured against the same plan of the model as the last record of the setting. In the
/// order in which functions first occur.
/// The row of --cpu, or of --arch for CUDA.
std::string processor_row(const CommandLine& c);

std::vector<FunctionPlan> best_plans(const std::vector<TuneRecord>& records, const std::string& cpu,
                                     const std::string& fp, int threads);

/// Reads c.records and puts the best plans behind those of c.request.schedules. Warns on stderr where the file has nothing
/// for this row. Throws Error TC0601 (Io), TC0608 where it has no record at all.
void load_records(CommandLine& c);

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
