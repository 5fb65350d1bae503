// A whole package of C: every file of out/, rendered.
#pragma once
#include <functional>

#include "ir/program.h"
#include "support/output_dir.h"

namespace tc {

constexpr int64_t kCudaGraphs = 4;

struct PackageOptions {
  bool single_file = false;               // one NAME.c instead of kernels/*.c
  bool any_cpu = false;                   // C: the kernels may be compiled for several processors
  bool jit = false;                       // CUDA: NVRTC compiles the kernels when an instance is made
  int64_t cuda_graphs = kCudaGraphs;      // CUDA: of how many choices of sizes an instance keeps the captured graphs
  std::string version = {};               // of the tool, for the manifest
  std::vector<std::string> options = {};  // those that the manifest states: {"--fp", "strict"}
  std::function<void(const std::string&)> progress = {};  // told which weight is made
};

std::vector<OutputFile> c_package(const Program& p, const PackageOptions& o);

}  // namespace tc
