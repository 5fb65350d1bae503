// What of its parameters a kernel touches, as intervals tell.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/loop/linear.h"
#include "ir/program.h"

namespace tc {

inline constexpr int64_t kUnknownReach = INT64_MAX;

struct KernelReach {
  std::map<const BufferDef*, int64_t> ends;  // bytes from the begin of a parameter, or kUnknownReach; looked up only
  std::set<const BufferDef*> tested;         // looked up only
  int64_t longest = 0;                       // of the device: of a loop that runs so often whatever the sizes are
  bool tests_own = false;                    // what the kernel has computed itself

  int64_t of(const Buffer& b) const {
    const auto it = ends.find(b.get());
    return it == ends.end() ? 0 : it->second;
  }
  /// May it tell an index of that tensor to be out of range?
  bool tests(const Buffer& b) const { return tests_own || tested.contains(b.get()); }
};

/// `elements`: of each parameter what its elements can be, where that is known: a size, a table of positions.
KernelReach reach_of(const Kernel& k, const std::vector<std::optional<Range>>& elements);
/// What the only number of 64 bits can be that a kernel computes of such elements; nothing for other kernels.
std::optional<Range> number_of(const Kernel& k, const std::vector<std::optional<Range>>& elements);

}  // namespace tc
