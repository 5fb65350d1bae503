// doctor: what this machine has of what the commands need.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/version.h"
#include "support/json_text.h"
#include "templates/cpu/cpu_model.h"

namespace tc {
namespace {

/// Packages can be built and compared: all that C needs but threads and CMake.
bool is_ready(const std::vector<Finding>& list) {
  return std::all_of(list.begin(), list.end(),
                     [](const Finding& f) { return !f.found.empty() || (f.name != "C compiler" && f.name != "make"); });
}

std::string as_text(const std::vector<Finding>& list) {
  std::string s =
      "this is tc-emit " + std::string(version()) + "; --cpu native is " + std::string(native_cpu().name) + "\n";
  std::string_view group;
  for (const Finding& f : list) {
    if (f.group != group) s += "\n" + std::string(group = f.group) + "\n";
    std::string name(f.name);
    name.resize(std::max<size_t>(name.size(), 14), ' ');
    s += (f.found.empty() ? "  missing  " : "  found    ") + name + "  ";
    s += f.found.empty() ? "(" + std::string(f.serves) + ") " + std::string(f.way_out) : printable(f.found);
    s += "\n";
  }
  return s + (is_ready(list) ? "\nPackages of C can be built and verified here.\n"
                             : "\nemit works; to build what it writes, a C compiler and make are needed.\n");
}

std::string as_json(const std::vector<Finding>& list) {
  nlohmann::ordered_json j = {{"version", version()}, {"native", native_cpu().name}, {"ready", is_ready(list)}};
  for (const Finding& f : list)
    j["tools"].push_back({{"group", f.group},
                          {"name", f.name},
                          {"found", f.found},
                          {"serves", f.serves},
                          {"way_out", f.found.empty() ? f.way_out : ""}});
  return json_text(j, 1);
}

}  // namespace

ExitCode doctor_command(const CommandLine& c) {
  const std::vector<Finding> list = examine_machine();
  print_out(c.json ? as_json(list) : as_text(list));
  return is_ready(list) ? ExitCode::Ok : ExitCode::Tool;
}

}  // namespace tc
