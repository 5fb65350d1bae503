// Parts of NAME.cu: where an instance has inputs, outputs and captured graphs.
#pragma once
#include <string>
#include <vector>

#include "emit_c/names.h"

namespace tc {

/// A number that the caller chooses: no memory of the device holds it.
bool is_host_size(const Program& p, const Operand& o);
/// May one of these sizes be 0?
bool may_be_empty(const Program& p, const std::vector<SizeSum>& sizes);

/// Where inputs and outputs live on the device and in pinned memory, and the copies between.
struct Staging {
  std::string upload, download, sizes, stage_in, stage_out, fields_in, fields_out;
  std::string upload_counted;  // of inputs as long as states: in no graph
  std::string bytes;           // of all, 256 at least
};
Staging staging(const Program& p, const ProgramNames& n);

/// Where an instance keeps its graphs. Those of a program with sizes that the caller chooses are of one choice each.
struct Graphs {
  std::string comment, member, clear,
      graph = "k", count = "segment_count", take, use,
      capture_all = "  for (int k = 0; captures && k < segment_count; k++) TRY(capture(d, k));\n";
};
/// `sets`: of how many choices.
Graphs graphs_of(const Program& p, const ProgramNames& n, int64_t sets);

}  // namespace tc
