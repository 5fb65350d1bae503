// A package as data: its manifest, its kernels' text, its files. What `diff` compares and `report` shows.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ir/types.h"
#include "support/output_dir.h"

namespace tc {

/// All texts are as they stand in the manifest: any characters, to be escaped where they are shown.
struct PackageFacts {
  struct Tensor {
    std::string name, dtype;  // dtype: ONNX's name, "float"
    std::string field;        // what steps call it; of inputs and outputs another than the name where that is no C
    Dims shape;
    int64_t at = -1;  // bytes, in the workspace or in the blob; -1: nowhere
  };
  struct Kernel {
    std::string name, schedule;
    std::vector<std::string> steps;  // of the schedule
    int64_t macs = -1, bytes = -1;   // of one call; -1: the manifest does not tell
    std::string text;                // its functions with the comments above them; empty: not found
    double floor_ns = 0;             // of one call on one thread; 0: not known
  };
  struct Step {
    std::string kind;                               // "kernel", "copy", "if", "loop" or "continue"
    std::string kernel;                             // its name
    std::vector<std::string> reads, writes, nodes;  // "in.x", "at.relu", "w.bias", "out.y"; the model's nodes
    int64_t inside = -1;                            // the If or Loop that it is in, an index into steps
    std::string branch, note;                       // "then" or "else"
  };
  std::string name, target, cpu, version;  // version: of the tool; empty: the manifest does not tell
  std::vector<std::string> options;
  std::vector<std::pair<std::string, int64_t>> memory;  // in the manifest's order: "workspace_bytes", ...
  int64_t macs = 0;
  std::vector<Tensor> inputs, outputs, tensors, weights;
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  std::vector<OutputFile> files;

  /// Null if there is none of that name.
  const OutputFile* file(const std::string& path) const;
};

/// Throws Error TC0604 (Io) if the files have no manifest, or one that is damaged. `where`: how messages call them.
PackageFacts facts_of(std::vector<OutputFile> files, const std::string& where);

/// Bytes of one tensor; 0 if its type is none of ours.
int64_t byte_size(const PackageFacts::Tensor& t);
/// DType::Undefined if ONNX has none of that name.
DType dtype_of(const std::string& onnx_name);

}  // namespace tc
