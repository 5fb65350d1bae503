// Invariants of the IRs; run after every pass in tests and under --verify-each. Throw InternalError.
#pragma once
#include "ir/graph/graph.h"
#include "ir/loop/ir.h"
#include "ir/tensor_fn.h"

namespace tc {

/// Free variables and buffers of `s` must be among those given; ranks, dtypes and vector-ness agree.
void verify(const Stmt& s, const std::vector<Buffer>& buffers, const std::vector<Var>& vars = {});
void verify(const Graph& g);

}  // namespace tc
