// Evaluates what depends on constants only, with the interpreter, so that it is the same on every host.
//   s = Sqrt(var)  t = Div(scale, s)  y = Mul(x, t)   ->   t = const   y = Mul(x, t)
// A result may take options.fold_limit_bytes, or twice the bytes of the constants that it reads: a table that a formula
// makes from nothing stays a formula, weights are always prepared. Random operators are left alone, and so are weights of
// few bits that products of floats read as they are in C (read_few_bits).
//
// Preconditions: every operand that the meaning reads is a constant, one of them at least; sizes are known; no bodies,
// nothing random; the result and the work keep within their budgets.
//
// Needs: types. Leaves: no node whose operands are all constant, but those over the budget.
#include <algorithm>

#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

int64_t constant_bytes(const Node& n) {
  int64_t bytes = 0;
  for (const Value* v : n.inputs)
    if (v && v->constant) bytes = checked_add(bytes, int64_t(v->constant->num_bytes));
  return bytes;
}

bool any_constant(const Node& n) {
  return std::any_of(n.inputs.begin(), n.inputs.end(), [](const Value* v) { return v && v->constant; });
}

/// tc.unpack_weights for products of floats, which loops of C do as they multiply.
bool stays_packed(const Node& n, const PassContext& cx) {
  if (n.domain != "tc" || n.op != "unpack_weights" || cx.target.picks_precision || cx.options.strict_fp) return false;
  if (n.inputs.size() > 3 && n.inputs[3]) return false;  // blocks whose k are not neighbours
  const Value* w = n.outputs[0];
  const auto multiplies = [&](const Node* user) { return user->is("MatMul") && user->inputs[1] == w; };
  return w->type.dtype == DType::F32 && w->output_uses == 0 &&
         std::all_of(w->users.begin(), w->users.end(), multiplies);
}

/// Weights that stayed packed for a product which turns out to be constant, too.
void unpack_for_constant(Graph& g, const Node& n, const PassContext& cx) {
  if (!n.is("MatMul") || !n.inputs[0]->constant) return;
  Node* w = n.inputs[1]->producer;
  if (w && stays_packed(*w, cx)) fold_node(g, w, std::max(cx.options.fold_limit_bytes, 2 * constant_bytes(*w)));
}

}  // namespace

void fold_constant(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) fold_constant(*r, cx);
    unpack_for_constant(g, *n, cx);
    if (!any_constant(*n) || stays_packed(*n, cx)) continue;
    fold_node(g, n, std::max(cx.options.fold_limit_bytes, 2 * constant_bytes(*n)));
  }
  g.drop_unused_constants();
}

}  // namespace tc
