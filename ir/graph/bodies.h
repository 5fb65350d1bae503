// A graph with the bodies of its nodes.
#pragma once
#include <vector>

#include "ir/graph/graph.h"

namespace tc {

/// The graph, the bodies of its nodes (If, Loop, Scan), and so on, however deep.
inline std::vector<const Graph*> with_bodies(const Graph& g) {
  std::vector<const Graph*> all = {&g};
  for (size_t k = 0; k < all.size(); k++)
    for (const auto& n : all[k]->nodes())
      for (const auto& r : n->regions) all.push_back(r.get());
  return all;
}

}  // namespace tc
