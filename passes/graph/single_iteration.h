// Loops that run once are no loops.
#pragma once
#include "ir/graph/origin.h"

namespace tc {

/// Does this Loop or Scan run exactly once, whatever the data? False for anything else and for what is malformed.
bool runs_once(const Node& n);

/// Puts the body of a node that runs once in its place: y, ys = Loop(1, , x) {...} becomes the body's nodes and
/// ys = Unsqueeze(part). Erases the node; returns the first node of what replaces it, or the one behind. The new nodes
/// have no types yet.
NodeIterator inline_iteration(Graph& g, Node* n);

}  // namespace tc
