// What `tc-emit tune` has measured: a file of JSON lines that only grows. Files are merged by concatenation.
#pragma once
#include <map>
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

/// A line that says what a function is, for people and for later versions: records name it by its hash.
std::string definition_line(const FunctionDefinition& d);

/// A line that is no record: torn, since whoever wrote it was killed, of another version, or not what tune writes.
struct LineLeftOut {
  std::string file;  // as it was given; empty: a text
  size_t line = 1;
  std::string reason;
};

struct RecordFile {
  std::vector<TuneRecord> records;
  std::map<std::string, FunctionDefinition> definitions;  // by hash, which is theirs
  std::vector<LineLeftOut> left_out;
};

/// All records of a text, added to `file`; `name`: of what holds the text.
void read_records(std::string_view text, const std::string& name, RecordFile& file);
RecordFile read_records(std::string_view text);

/// The word in place of a file for the records that this program brings along.
inline constexpr std::string_view kShippedRecords = "default";

/// All records of files, one behind the other: each is a file, a folder, whose files *.jsonl are taken in the order of their
/// names, or kShippedRecords. Throws Error TC0601 (Io).
RecordFile read_record_files(const std::vector<std::string>& files);

/// The files that read_record_files() reads.
std::vector<std::string> record_paths(const std::vector<std::string>& files);

/// A file of records that grows. Each is one write(2), so that who is killed loses at most the one in flight.
class RecordWriter {
 public:
  /// Begins a new line behind a torn one. Throws Error TC0601 (Io).
  explicit RecordWriter(const std::string& path);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  void add(const TuneRecord& r) { write(record_line(r)); }
  void add(const FunctionDefinition& d) { write(definition_line(d)); }

 private:
  void write(const std::string& line);

  std::string path_;
  int file_ = -1;
};

}  // namespace tc
