// Types of nodes with bodies: If, Loop, Scan.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Sets the types of the bodies' inputs from the node's operands, infers the bodies, and sets the node's output types
/// from theirs. Sizes that are known only when the model runs are symbolic or unknown. Throws Error naming the node.
/// What a Loop stacks takes the size that the model declares where the number of iterations depends on data, or has room for as
/// many as its attribute `capacity` says, which counted_loops.cc adds (no model has it).
void infer_region_types(Graph& g, Node& n);

/// The node, its operands and its bodies fit each other in number, and no operand is missing that a body reads. What
/// walks a body beside its node asks this first. Throws Error naming the node.
void require_regions(const Node& n);

/// How often a Loop runs, as far as that is known while compiling.
struct LoopFacts {
  int64_t limit = -1;       // not more often; -1: unknown
  bool asks_limit = false;  // the trip count is known when the model runs
  bool asks_start = false;  // so is whether it starts at all
  bool asks_end = false;    // so is, behind every iteration, whether it goes on
  bool exact() const { return limit >= 0 && !asks_limit && !asks_start && !asks_end; }
  bool ends() const { return limit >= 0 || asks_limit || asks_end; }
};
LoopFacts loop_facts(const Node& n);

/// How many operands are the node's own; those behind them are captured for its bodies.
inline size_t own_inputs(const Node& n) { return n.inputs.size() - size_t(n.captures); }

/// The axis of scanned input k (scan_input_axes) or stacked output k (scan_output_axes) of a Scan, counted from the
/// front of `rank` axes. Throws Error naming the node where there is no such axis.
int64_t scan_axis(const Node& n, const std::string& attr, size_t k, size_t rank);

/// Throws Error naming the node unless the directions of a Scan are one for each tensor, 0 or 1.
void require_directions(const Node& n);

/// The value at the start of a chain of Identity nodes.
const Value* behind_identities(const Value* v);

}  // namespace tc
