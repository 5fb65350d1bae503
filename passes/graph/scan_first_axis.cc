// Scans run along the first axis only: the part that an iteration reads or writes then lies in one piece.
//   y = Scan(x) {scan_input_axes = [1]}   ->   t = Transpose(x) {perm = [1, 0, 2]}   y = Scan(t)
// and likewise behind the scan, for what it stacks along another axis. Directions stay: iterations count down there.
//
// Preconditions: none; axes may be negative, and count from the end of the whole tensor.
//
// Needs: types. Leaves: Scan nodes without scan_input_axes and scan_output_axes.
#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

void scan_inputs(Graph& g, Node* n, size_t first, size_t count) {
  for (size_t k = 0; k < count; ++k) {
    Value* x = n->inputs[first + k];
    const int64_t rank = rank_of(x), axis = scan_axis(*n, "scan_input_axes", k, size_t(rank));
    if (axis == 0) continue;
    const ModelText name = derived(x->name, "_scan" + to_text(axis));
    g.set_input(n, first + k, add_op(g, n, "Transpose", {x}, name, {{"perm", moved_axis(rank, axis, 0)}}));
  }
  n->attrs.erase("scan_input_axes");
}

void scan_outputs(Graph& g, Node* n, size_t first) {
  Node* next = std::next(n->self) == g.nodes().end() ? nullptr : std::next(n->self)->get();
  for (size_t k = first; k < n->outputs.size(); ++k) {
    Value* y = n->outputs[k];
    if (!y) continue;
    const int64_t rank = rank_of(y), axis = scan_axis(*n, "scan_output_axes", k - first, size_t(rank));
    if (axis == 0) continue;
    Shape shape = y->type.shape;
    const Dim length = shape[size_t(axis)];
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin(), length);
    g.set_type(y, ValueType::tensor(y->type.dtype, shape));
    const ModelText name = y->name;
    y->name = derived(name, "_scan" + to_text(axis));
    Node* t = insert_for(g, *n, next, "Transpose", {y}, {name}, {{"perm", moved_axis(rank, 0, axis)}});
    infer_types(g, *t);
    Value* moved = t->outputs[0];
    g.replace_uses(y, moved);
    g.set_input(t, 0, y);
  }
  n->attrs.erase("scan_output_axes");
}

}  // namespace

void scan_first_axis(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) scan_first_axis(*r, cx);
    if (!n->is("Scan")) continue;
    const size_t scanned = size_t(n->attr_int("num_scan_inputs", 0));
    const size_t states = own_inputs(*n) - scanned;
    scan_inputs(g, n, states, scanned);
    scan_outputs(g, n, states);
  }
}

}  // namespace tc
