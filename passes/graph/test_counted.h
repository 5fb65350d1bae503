// Helpers of the tests of counted tensors.
#pragma once

#include "ir/ops/evaluate.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/passes.h"
#include "passes/graph/test_graph.h"

namespace tc::counted_testing {

/// A graph of NonZero(x: f32[6]), transposed to [n, 1] and given to `then`, which returns the output.
template <class F>
Graph counted(const F& then) {
  TestGraph t;
  auto node = [&](const std::string& name, const std::string& op, std::vector<Value*> in, Attrs attrs = {}) {
    return t.g.append(op, std::move(in), {ModelText(name)}, std::move(attrs))->outputs[0];
  };
  Value* x = t.in("x", {6});
  Value* where = node("where", "NonZero", {x});
  Value* rows = node("rows", "Transpose", {where});
  return t.out({then(t, node, x, rows)});
}

/// A size that the caller chooses.
inline Dim bounded(const std::string& name, int64_t least, int64_t most) {
  Dim d = Dim::symbolic(name, most);
  d.least = least;
  return d;
}

inline Diagnostics run(Graph& g) {
  Diagnostics d;
  PassContext cx;
  cx.diagnostics = &d;
  dynamic_to_static(g, cx);
  return d;
}

inline std::vector<Constant> results(const Graph& g, const std::vector<float>& x) {
  return evaluate_model(g, {make_constant(DType::F32, {int64_t(x.size())}, x.data())});
}

inline std::vector<int64_t> whole(const Constant& c) { return c->as_ints(); }

}  // namespace tc::counted_testing
