#include <unistd.h>

#include "importer/test_import.h"

namespace tc::importer_testing {

TestFolder::TestFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "tc_importer_XXXXXX").string();
  check(mkdtemp(name.data()) != nullptr, "no temporary folder");
  folder_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string TestFolder::write(const std::string& name, const std::string& bytes) const {
  std::filesystem::create_directories((folder_ / name).parent_path());
  std::ofstream(folder_ / name, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
  return path(name);
}

Imported import_file(const std::string& path, ImportOptions options) {
  if (!options.has_row) options.has_row = [](std::string_view domain, std::string_view) { return domain.empty(); };
  Imported out;
  Diagnostics problems;
  out.graph = import_model(path, options, problems);
  for (const Diagnostic& d : problems.list()) out.problems += d.render() + "\n";
  out.exit = problems.exit_code();
  out.text = to_text(out.graph);
  return out;
}

Imported import_text(const std::string& model, ImportOptions options) {
  const TestFolder folder;
  return import_file(folder.write("m.onnxtxt", model), std::move(options));
}

}  // namespace tc::importer_testing
