// Invariants of graphs and loops; those of a TensorFn are in tensor_fn.h. Under --verify-each a graph is checked after
// every graph pass (passes/run.cc), and loops after every loop pass (passes/loop/loop_pass.cc); tests set the option or
// call these functions. A default run checks none. They throw InternalError.
#pragma once
#include "ir/graph/graph.h"
#include "ir/loop/ir.h"
#include "ir/tensor_fn.h"

namespace tc {

/// Free variables and buffers of `s` are among those given; ranks and types agree, vectors stand where vectors may; and
/// what verify_accesses.h says.
void verify(const Stmt& s, const std::vector<Buffer>& buffers, const std::vector<Var>& vars = {});
/// Producers and users are right, the order is topological, types and names are there; regions too. As a model is imported
/// (`typed` false) some types are not known yet.
void verify(const Graph& g, bool typed = true);

}  // namespace tc
