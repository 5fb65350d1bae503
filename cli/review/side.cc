#include "cli/review/side.h"

#include <filesystem>

#include "cli/commands.h"
#include "cli/option_table.h"

namespace tc {
namespace fs = std::filesystem;

bool is_package(const std::string& path) {
  std::error_code ec;
  return fs::is_directory(path, ec) || fs::path(path).filename() == "manifest.json";
}

PackageFacts read_package_facts(const std::string& path) {
  std::error_code ec;
  const bool folder = fs::is_directory(path, ec);
  const fs::path parent = fs::path(path).parent_path();
  return facts_of(read_package(folder ? path : parent.empty() ? "." : parent.string()), path);
}

void refuse_options_of_models(const CommandLine& c, const std::string& why) {
  for (const Option& o : options())
    if (c.was_given(o.flag) && (o.commands & kEmit) && o.flag != "--quiet" && o.flag != "--diagnostics" &&
        o.flag != "-o")
      usage(std::string(o.flag) + " is for models, and " + why);
}

std::optional<EmittedModel> emit_in_memory(const CommandLine& c, decltype(CompileRequest::watch) watch,
                                           ExitCode& exit) {
  Diagnostics problems;
  CompileRequest request = c.request;
  request.model = c.model;
  request.watch = std::move(watch);
  EmittedModel m;
  m.compilation = compile(request, problems);
  exit = report(problems, c);
  if (exit != ExitCode::Ok) return std::nullopt;
  m.facts = facts_of(package_of(m.compilation.program, c), c.model);
  return m;
}

}  // namespace tc
