// Measured times of a package's kernels, from what its program has written.
#pragma once
#include <string>
#include <vector>

#include "cli/review/package_facts.h"

namespace tc {

struct KernelTimes {
  struct Row {
    std::string kernel;
    double calls = 0, us = 0;  // of one run, all calls together
    double floor_share = 0;    // 0: not known
  };
  std::vector<Row> rows;
  double other_us = 0;  // of one run: copies, and what else is no kernel
  double runs = 1, run_us = 0;
  int threads = 0;  // 0: not known
};

/// Of a file that --profile --json or --trace of the program of `p` has written. Throws Error TC0601 (Io) if it cannot be read
/// and TC0609 (Io) if it is no such file, or one of other kernels: names end in digits of their text, so that the same name is
/// the same kernel.
KernelTimes read_times(const std::string& path, const PackageFacts& p);

}  // namespace tc
