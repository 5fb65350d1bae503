// What the primitives share that move computations into other loops (compute_at.cc, reverse.cc, cache.cc).
#pragma once
#include <functional>
#include <vector>

#include "passes/analysis/region.h"
#include "passes/schedule/step.h"

namespace tc {

/// Refuses unless the nest's own loops and memory may stand in the loop of `site`.
void require_fits(const StepCheck& step, const LoopSite& site, const Stmt& nest);
bool contains(const Stmt& s, const StmtNode* what);
/// Loops over the region around what `point` makes of the nest's point there, in the nest's own order; an `if` where
/// the region may leave the buffer.
Stmt compute_region(const PlainNest& n, const Buffer& b, const Region& r,
                    const std::function<Stmt(const Stmt&)>& point);
std::vector<Var> without(std::vector<Var> list, const Var& v);
/// What is known inside the loop.
Ranges inside_of(const LoopSite& site);

}  // namespace tc
