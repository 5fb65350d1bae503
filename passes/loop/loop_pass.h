// Loop passes: what brings a scheduled function into printable form. The lists are in lower_kernel.cc; each pass needs
// what those before it left, so none can be left out.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "passes/loop/trim_grids.h"
#include "passes/pass.h"

namespace tc {

/// A function on its way: the loops, and what the passes find out beside them.
struct Lowering {
  Stmt body;
  std::vector<Buffer> visible;  // parameters and views of them: free in the body
  BufferMap flat = {};          // of buffers that were not flat
  Buffer scratch = nullptr;     // scratch memory; null: none
  int64_t scratch_bytes = 0;
  KernelInterface* io = nullptr;
  DeviceFunction* device = nullptr;  // CUDA, behind split_host_device: the function that the body is of
  GridSizes grids = {};              // CUDA: of launches that a run may need a part of, and the parameters at that time
  std::vector<Buffer> grid_params = {};
  std::vector<Var> host_loops = {};  // its variables that the host counts
  Kernel* kernel = nullptr;          // a finished one, in last_loop_passes()
};

struct LoopPass {
  std::string_view name;
  void (*run)(Lowering&);
  std::string_view summary;  // one line for `tc-emit passes`
};

/// Of kernels of C; of CUDA functions as a whole; of one function of the device; of finished kernels, whose name and whose
/// identity are known: what printers would have to find out.
const std::vector<LoopPass>& c_loop_passes();
const std::vector<LoopPass>& cuda_loop_passes();
const std::vector<LoopPass>& device_loop_passes();
const std::vector<LoopPass>& last_loop_passes();
/// Of all of them, each once.
std::vector<std::string_view> loop_pass_names();

/// Runs lists over all functions of a program: prints and times as asked by the options, and verifies the loops after
/// every pass under verify_each. A defect is rethrown with the name of the pass.
class LoopPassRunner {
 public:
  explicit LoopPassRunner(const Options& options) : options_(options) {}

  /// `title`: what a dump calls the function.
  void run(const std::vector<LoopPass>& list, Lowering& l, const std::string& title);
  /// What a template made, before the first pass.
  void verify_schedule(const Scheduled& s) const;

  /// Dumps in order, then the times of all functions together, if these were asked for.
  std::string log() const;

 private:
  struct Time {
    std::string_view pass;
    std::chrono::steady_clock::duration spent;
  };
  const Options& options_;
  std::string dumps_;
  std::vector<Time> times_;  // in order of the lists
};

}  // namespace tc
