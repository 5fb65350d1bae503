#include "cli/reference.h"

#include <nlohmann/json.hpp>

#include "cli/process.h"
#include "support/error.h"
#include "support/json_text.h"
#include "templates/text.h"

namespace tc {

/// Written into the build folder by CMake: the files of cli/references/.
const std::vector<SupportFile>& reference_scripts();

namespace {

std::vector<std::string> python(std::string_view script, const std::vector<std::string>& words) {
  for (const SupportFile& f : reference_scripts()) {
    if (f.name != script) continue;
    std::vector<std::string> command{"python3", "-c", std::string(f.text)};
    command.insert(command.end(), words.begin(), words.end());
    return command;
  }
  throw InternalError("no such script of a reference");
}

}  // namespace

std::vector<std::string> onnxruntime_command(const std::string& model, const std::string& folder,
                                             const ImportOptions& import) {
  const std::string fixed = json_text(import.input_values);
  return python("onnxruntime.py", {model, folder, fixed, import.number_labels ? "1" : "0"});
}

std::optional<std::map<std::string, std::string>> python_modules(const std::vector<std::string>& names) {
  const ProcessResult r = run_process(python("modules.py", names), false);
  // The line stands last, behind what modules print when they are imported.
  const size_t line = r.output.rfind('{');
  const auto j = nlohmann::json::parse(line == std::string::npos ? "" : r.output.substr(line), nullptr, false);
  if (r.status != 0 || !j.is_object()) return std::nullopt;
  std::map<std::string, std::string> versions;
  for (const std::string& name : names)
    if (const auto it = j.find(name); it != j.end() && it->is_string()) versions[name] = *it;
  return versions;
}

std::vector<std::string> reference_command(const std::string& file, const std::string& model, const std::string& folder,
                                           const std::vector<std::shared_ptr<const OpRow>>& rows) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const auto& row : rows) names.push_back({std::string(row->domain), std::string(row->name)});
  return python("own_operators.py", {file, model, folder, json_text(names)});
}

}  // namespace tc
