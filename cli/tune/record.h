// What `tc-emit tune` has measured: a file of JSON lines that only grows. Files are merged by concatenation.
#pragma once
#include <string>
#include <vector>

#include "ir/language/schedule_text.h"

namespace tc {

/// Where, and how, something was measured. Times are compared within one setting only.
struct TuneSetting {
  std::string cpu;        // the row of --cpu or --arch
  std::string fp;         // "fast" or "strict"
  std::string processor;  // what the machine calls it
  std::string compiler;   // its first line of --version, and the user's flags
  int threads = 1;
  std::string target = "c";  // or "cuda"
  bool operator==(const TuneSetting&) const = default;
};

/// One trial: a schedule of a function, and what came of it.
struct TuneRecord {
  std::string function, signature;  // function_hash(); of the kernel's name what does not depend on its loops
  TuneSetting setting;
  std::vector<PlanLine> plan;
  std::vector<PlanLine> sketch = {};  // whose steps stand in the plan; empty: none
  std::string baseline = {};          // plan_text() of the cost model's own plan, to which `of_model` refers
  std::string state = {};             // "ok", "wrong", "timeout", "crash" or "build"
  std::string reason = {};            // of all but "ok"
  double ns = 0;                      // of a call, the median
  double of_model = 0;                // its time as a share of that of the model's plan, measured in turns
  bool confirmed = false;  // measured once more since it was best; what is not may have been luck, and is not replayed
};

/// "contraction(); tile(rows = 4, columns = 16)".
std::string plan_text(const std::vector<PlanLine>& lines);

/// One line, which ends with '\n'.
std::string record_line(const TuneRecord& r);

struct RecordFile {
  std::vector<TuneRecord> records;
  size_t left_out = 0;  // lines that are no records: torn ones, since whoever wrote them was killed, and others
};

/// All records of a text; lines of other versions of the format or of the language are left out.
RecordFile read_records(std::string_view text);

/// A file of records that grows. Each is one write(2), so that who is killed loses at most the one in flight.
class RecordWriter {
 public:
  /// Begins a new line behind a torn one. Throws Error TC0601 (Io).
  explicit RecordWriter(const std::string& path);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  void add(const TuneRecord& r);

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace tc
