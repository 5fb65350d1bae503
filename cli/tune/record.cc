#include "cli/tune/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/new_file.h"
#include "cli/tune/shipped_records.h"
#include "ir/language/graph_text.h"
#include "support/json_text.h"
#include "support/read_file.h"

namespace tc {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr std::string_view kStates[] = {"ok", "wrong", "timeout", "crash", "build"};

/// What a line that is no record is refused with.
struct NoRecord {
  std::string reason;
};

// The lines of a schedule as the language reads them.
std::vector<PlanLine> plan_of(const ordered_json& lines) {
  std::string text = "schedule \"*\"";
  for (const auto& l : lines) text += "\n" + l.get<std::string>();
  language::Problems problems;
  std::vector<FunctionPlan> plans = language::read_schedules(text, problems);
  if (!problems.empty()) throw NoRecord{"its plan is no schedule: " + problems[0].message};
  if (plans.size() != 1 || plans[0].lines.empty()) throw NoRecord{"its plan is no schedule of one function"};
  for (PlanLine& l : plans[0].lines) l.at = {};
  return std::move(plans[0].lines);
}

bool is_hash(const std::string& s) { return s.size() == 16 && s.find_first_not_of("0123456789abcdef") == s.npos; }

void check_record(const TuneRecord& r) {
  if (!is_hash(r.function)) throw NoRecord{"its function is no hash of 16 digits"};
  if (r.setting.threads < 1) throw NoRecord{"it has no threads"};
  if (r.setting.target != "c" && r.setting.target != "cuda") throw NoRecord{"its target is neither c nor cuda"};
  if (std::find(std::begin(kStates), std::end(kStates), r.state) == std::end(kStates))
    throw NoRecord{"its state is none that a trial ends in"};
  const auto time = [](double v) { return std::isfinite(v) && v > 0; };
  if (r.state == "ok" && !(time(r.ns) && time(r.of_model))) throw NoRecord{"its times are none"};
}

// What is not of the right type throws nlohmann's exception.
TuneRecord record_of(const ordered_json& j) {
  TuneRecord r;
  r.function = j.at("function").get<std::string>();
  r.signature = j.at("signature").get<std::string>();
  r.setting = {j.at("cpu").get<std::string>(),      j.at("fp").get<std::string>(), j.at("processor").get<std::string>(),
               j.at("compiler").get<std::string>(), j.at("threads").get<int>(),    j.at("target").get<std::string>()};
  r.plan = plan_of(j.at("plan"));
  if (j.contains("sketch")) r.sketch = plan_of(j.at("sketch"));
  r.baseline = j.at("model").get<std::string>();
  r.state = j.at("state").get<std::string>();
  r.reason = j.value("reason", "");
  if (r.state == "ok") {
    r.ns = j.at("ns").get<double>();
    r.of_model = j.at("of_model").get<double>();
    r.confirmed = j.at("confirmed").get<bool>();
  }
  check_record(r);
  return r;
}

void take_definition(const ordered_json& j, RecordFile& file) {
  FunctionDefinition d{j.at("definition").get<std::string>(), j.at("known").get<std::string>()};
  const std::string hash = d.hash();
  if (j.at("function") != hash) throw NoRecord{"its function is not what it defines, whose hash is " + hash};
  file.definitions.emplace(hash, std::move(d));
}

// Puts a line where it belongs. Throws NoRecord where it belongs nowhere.
void take_line(std::string_view line, RecordFile& file) {
  const ordered_json j = ordered_json::parse(line, nullptr, false);
  if (!j.is_object()) throw NoRecord{"it is no object of JSON: torn, or of something else"};
  try {
    if (const int format = j.at("tc-emit"); format != kFormat)
      throw NoRecord{"it is of version " + to_text(int64_t(format)) + " of the format, not of " +
                     to_text(int64_t(kFormat))};
    if (const int version = j.at("language"); version != language::kLanguageVersion)
      throw NoRecord{"it is of version " + to_text(int64_t(version)) + " of the language, not of " +
                     to_text(int64_t(language::kLanguageVersion))};
    if (j.contains("definition"))
      take_definition(j, file);
    else
      file.records.push_back(record_of(j));
  } catch (const nlohmann::json::exception&) {
    throw NoRecord{"a field is missing, or of another type"};
  }
}

// A file, or those of a folder.
void add_paths(const std::string& given, std::vector<std::string>& paths) {
  std::error_code ignored;
  if (!fs::is_directory(given, ignored)) {
    paths.push_back(given);
    return;
  }
  std::vector<std::string> inside;
  fs::directory_iterator entries(given, ignored);
  if (ignored)
    throw Error("TC0601", ExitCode::Io, "cannot read the folder " + printable(given) + ": " + ignored.message());
  for (const fs::directory_entry& e : entries)
    if (e.path().extension() == ".jsonl") inside.push_back(e.path().string());
  std::sort(inside.begin(), inside.end());
  paths.insert(paths.end(), inside.begin(), inside.end());
}

}  // namespace

std::string plan_text(const std::vector<PlanLine>& lines) {
  std::vector<std::string> texts;
  for (const PlanLine& l : lines) texts.push_back(language::print(l));
  return join(texts, "; ");
}

std::string record_line(const TuneRecord& r) {
  ordered_json j{{"tc-emit", kFormat},
                 {"language", language::kLanguageVersion},
                 {"target", r.setting.target},
                 {"function", r.function},
                 {"signature", r.signature},
                 {"cpu", r.setting.cpu},
                 {"fp", r.setting.fp},
                 {"processor", r.setting.processor},
                 {"compiler", r.setting.compiler},
                 {"threads", r.setting.threads}};
  for (const PlanLine& l : r.plan) j["plan"].push_back(language::print(l));
  for (const PlanLine& l : r.sketch) j["sketch"].push_back(language::print(l));
  j["model"] = r.baseline;
  j["state"] = r.state;
  if (r.state != "ok") {
    j["reason"] = r.reason;
    return json_text(j) + "\n";
  }
  j["ns"] = std::round(r.ns * 10) / 10;
  j["of_model"] = std::round(r.of_model * 1e4) / 1e4;
  j["confirmed"] = r.confirmed;
  return json_text(j) + "\n";
}

std::string definition_line(const FunctionDefinition& d) {
  return json_text(ordered_json{{"tc-emit", kFormat},
                                {"language", language::kLanguageVersion},
                                {"function", d.hash()},
                                {"known", d.known},
                                {"definition", d.text}}) +
         "\n";
}

void read_records(std::string_view text, const std::string& name, RecordFile& file) {
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    number++;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      take_line(line, file);
    } catch (const NoRecord& no) {
      file.left_out.push_back({name, number, no.reason});
    }
  }
}

RecordFile read_records(std::string_view text) {
  RecordFile file;
  read_records(text, "", file);
  return file;
}

std::vector<std::string> record_paths(const std::vector<std::string>& files) {
  std::vector<std::string> paths;
  for (const std::string& given : files)
    if (given != kShippedRecords) add_paths(given, paths);
  return paths;
}

RecordFile read_record_files(const std::vector<std::string>& files) {
  RecordFile all;
  for (const std::string& given : files) {
    if (given == kShippedRecords)
      for (const SupportFile& f : shipped_records()) read_records(f.text, "tune/records/" + std::string(f.name), all);
    for (const std::string& path : record_paths({given})) read_records(read_file(path), path, all);
  }
  return all;
}

RecordWriter::RecordWriter(const std::string& path) : path_(path) {
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) cannot_write(path);
  char last = '\n';
  if (const off_t end = ::lseek(file_, 0, SEEK_END); end > 0 && ::pread(file_, &last, 1, end - 1) != 1)
    cannot_write(path);
  if (last != '\n' && ::write(file_, "\n", 1) != 1) cannot_write(path);
}

RecordWriter::~RecordWriter() {
  if (file_ >= 0) ::close(file_);
}

void RecordWriter::write(const std::string& line) {
  if (::write(file_, line.data(), line.size()) != ssize_t(line.size())) cannot_write(path_);
}

}  // namespace tc
