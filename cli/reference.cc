#include "cli/reference.h"

#include <nlohmann/json.hpp>

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

std::vector<std::string> modules_command(const std::vector<std::string>& names) { return python("modules.py", names); }

std::vector<std::string> reference_command(const std::string& file, const std::string& model, const std::string& folder,
                                           const std::vector<std::shared_ptr<const OpRow>>& rows) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const auto& row : rows) names.push_back({std::string(row->domain), std::string(row->name)});
  return python("own_operators.py", {file, model, folder, json_text(names)});
}

}  // namespace tc
