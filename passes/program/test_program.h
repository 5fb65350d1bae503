// Programs of models as text. For tests only.
#pragma once
#include <gtest/gtest.h>

#include "importer/test_import.h"
#include "passes/program/build_program.h"
#include "passes/test_target.h"

namespace tc::testing {

/// Of a graph in ONNX's text syntax, without the header; its problems are failures.
inline Program program_of(const std::string& graph, bool cuda, const ImportOptions& options = {}) {
  const auto imported = importer_testing::import_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph, options);
  EXPECT_EQ(imported.problems, "");
  TestTarget target(test_target("x86-64-v3", cuda));
  Graph g = imported.graph.clone();
  std::string log;
  run_passes(graph_passes(), g, target.cx, log);
  return build_program(g, "m", target.cx, log);
}

}  // namespace tc::testing
