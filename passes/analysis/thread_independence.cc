// Threads are instances of one code: see passes/analysis/alias_query.h.
#include "passes/analysis/thread_independence.h"

#include <algorithm>

#include "ir/loop/visit.h"
#include "passes/analysis/alias_query.h"

namespace tc {
namespace {

Access access_of(const ThreadAccess& a, const ThreadNest& nest) {
  Access r{a.buffer, a.index, a.write, {}, nest.ranges};
  for (const auto& [v, range] : a.ranges) r.ranges[v] = range;
  return r;
}

}  // namespace

bool only_within_threads(const ThreadAccess& a, const ThreadAccess& b, const ThreadNest& nest) {
  if (nest.threads.empty()) return true;
  const Access x = access_of(a, nest), y = access_of(b, nest);
  AliasQuery m(x, y, nest.varying, nest.changing);
  for (const auto& [e, n] : a.fixed)
    for (const auto& [f, k] : b.fixed)
      if (n == k && structurally_equal(e, f)) m.assume_equal(e);
  return m.no_alias() ||
         std::all_of(nest.threads.begin(), nest.threads.end(), [&](const Var& t) { return m.implies_equal(t); });
}

}  // namespace tc
