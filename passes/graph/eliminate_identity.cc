// Removes nodes whose result is their operand: Identity, Cast to the same type, Reshape to the same shape, Transpose
// that moves nothing, Dropout, Slice of everything, Pad by nothing, Concat or Sum of one tensor, Tile by ones ...
//   a = Transpose(x) {perm = [0, 1]}   y = Relu(a)   ->   y = Relu(x)
// Which they are is read off their meaning: one stage that copies element i to element i.
//
// Preconditions: the result has the type and shape of the operand, whatever axes and sizes the node names; no other
// result is read; nothing random; a meaning of one stage that loads element i for element i, or an operator that only
// names a shape.
//
// Needs: types. Leaves: an Identity only where an output of the model must keep a name of its own.
#include "ir/ops/op.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

bool copies(const Stage& s, const Buffer& from) {
  if (s.kind != Stage::Kind::Compute || s.scan >= 0 || s.values.size() != 1) return false;
  const Load* l = as<Load>(s.values[0]);
  if (!l || l->buffer != from || l->index.size() != s.axes.size()) return false;
  for (size_t d = 0; d < s.axes.size(); ++d) {
    const VarRef* v = as<VarRef>(l->index[d]);
    if (!v || v->var != s.axes[d].var) return false;
  }
  return true;
}

bool may_copy(const Node& n) {
  if (n.outputs.empty() || !n.outputs[0] || n.inputs.empty() || !n.inputs[0]) return false;
  for (size_t k = 1; k < n.outputs.size(); ++k)
    if (n.outputs[k] && n.outputs[k]->is_used()) return false;
  const ValueType& t = n.outputs[0]->type;
  return t.is_static_tensor() && n.inputs[0]->type == t && n.regions.empty();
}

bool is_reshape(const Node& n) { return n.is("Reshape") || n.is("Flatten") || n.is("Squeeze") || n.is("Unsqueeze"); }

bool is_identity(Node& n) {
  if (!may_copy(n)) return false;
  if (n.is("Identity") || is_reshape(n)) return true;
  if (n.is("Dropout")) return n.inputs.size() < 3 || !n.inputs[2] || is_scalar(n.inputs[2], 0);
  if (is_random(n)) return false;
  const TensorFn& fn = tensor_fn(n);
  if (fn.inputs.size() != 1 || fn_operands(n)[0] != 0) return false;
  if (fn.outputs.at(0) == fn.inputs[0]) return true;
  return fn.stages.size() == 1 && copies(fn.stages[0], fn.inputs[0]);
}

}  // namespace

void eliminate_identity(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) eliminate_identity(*r, cx);
    if (is_identity(*n) && forward(g, n->outputs[0], n->inputs[0])) g.erase(n);
  }
}

}  // namespace tc
