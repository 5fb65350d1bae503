// Why fuse_ops leaves a value between two kernels.
#pragma once
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "passes/target_traits.h"

namespace tc {

struct KeptEdge {
  ModelText value;   // what is read
  ModelText result;  // first result of the last node of the kernel that reads it
  std::string why;   // our own text
};

/// The edges between kernels that fuse_ops would make of `g`, a graph as that pass takes it, in the order of the readers;
/// those of bodies first.
std::vector<KeptEdge> edges_between_kernels(const Graph& g, const TargetTraits& target);

}  // namespace tc
