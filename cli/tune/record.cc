#include "cli/tune/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/new_file.h"
#include "ir/language/graph_text.h"
#include "support/json_text.h"

namespace tc {
namespace {

using nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::string_view kStates[] = {"ok", "wrong", "timeout", "crash", "build"};

// The lines of a schedule as the language reads them; empty where there is a mistake.
std::vector<PlanLine> plan_of(const ordered_json& lines) {
  std::string text = "schedule \"*\"";
  for (const auto& l : lines) text += "\n" + l.get<std::string>();
  language::Problems problems;
  std::vector<FunctionPlan> plans = language::read_schedules(text, problems);
  if (!problems.empty() || plans.size() != 1) return {};
  for (PlanLine& l : plans[0].lines) l.at = {};
  return std::move(plans[0].lines);
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
  if (r.state != "ok") return r;
  r.ns = j.at("ns").get<double>();
  r.of_model = j.at("of_model").get<double>();
  r.confirmed = j.at("confirmed").get<bool>();
  return r;
}

bool is_sound(const TuneRecord& r) {
  if (r.plan.empty() || r.function.empty() || r.setting.threads < 1) return false;
  if (r.setting.target != "c" && r.setting.target != "cuda") return false;
  if (std::find(std::begin(kStates), std::end(kStates), r.state) == std::end(kStates)) return false;
  const auto time = [](double v) { return std::isfinite(v) && v > 0; };
  return r.state != "ok" || (time(r.ns) && time(r.of_model));
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

RecordFile read_records(std::string_view text) {
  RecordFile file;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const ordered_json j = ordered_json::parse(line, nullptr, false);
    try {
      if (j.is_object() && j.at("tc-emit") == kFormat && j.at("language") == language::kLanguageVersion)
        if (TuneRecord r = record_of(j); is_sound(r)) {
          file.records.push_back(std::move(r));
          continue;
        }
    } catch (const nlohmann::json::exception&) {
    }
    file.left_out++;
  }
  return file;
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

void RecordWriter::add(const TuneRecord& r) {
  const std::string line = record_line(r);
  if (::write(file_, line.data(), line.size()) != ssize_t(line.size())) cannot_write(path_);
}

}  // namespace tc
