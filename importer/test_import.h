// Helpers of the importer's tests.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

#include "importer/import.h"

namespace tc::importer_testing {

/// A folder of its own for one test, removed at the end.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path folder_;
};

struct Imported {
  Graph graph;
  std::string text;      // to_text(graph)
  std::string problems;  // rendered, one after the other
  ExitCode exit = ExitCode::Ok;
};

/// Every operator of ONNX counts as having a row, unless `options` says otherwise.
Imported import_file(const std::string& path, ImportOptions options = {});
Imported import_text(const std::string& model, ImportOptions options = {});

}  // namespace tc::importer_testing
