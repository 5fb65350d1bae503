// Positions that count from the end of a counted axis are positions from its front once the count is added.
//   y = Gather(x, [-1])   x counted along 0 by n   ->   i = Where([-1] < 0, [-1] + n, [-1])   y = Gather(x, i)
//
// GatherElements gives as many as there are positions, along all axes.
//
// Preconditions: the axis is the counted one; positions that are known not to be negative stay.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

/// Are these positions from the front, whatever the data? `iteration`: what is never negative, too.
bool from_front(const Value* v, const Value* iteration, int& budget) {
  if (!v || --budget < 0) return false;
  if (v == iteration) return true;
  if (v->constant) {
    for (int64_t k = 0; k < v->constant->size(); k++)
      if (v->constant->as_int(k) < 0) return false;
    return true;
  }
  const Node* n = v->producer;
  if (!n) return false;
  for (const char* op : {"NonZero", "NonMaxSuppression", "ArgMax", "ArgMin", "Shape"})
    if (n->is(op)) return true;
  if ((n->is("TopK") && v->index == 1) || (n->is("Unique") && v->index > 0)) return true;
  for (const char* op : {"Gather", "GatherND", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Identity",
                         "Cast", "Split", "Expand"})
    if (n->is(op)) return from_front(n->inputs[0], iteration, budget);
  if (n->is("Range")) return is_scalar(n->inputs[0], 0) && n->inputs.size() > 2 && is_scalar(n->inputs[2], 1);
  if (n->domain == "tc" && n->op == "regroup") return from_front(n->inputs[0], iteration, budget);
  if (!n->is("Concat")) return false;
  return std::all_of(n->inputs.begin(), n->inputs.end(),
                     [&](const Value* part) { return from_front(part, iteration, budget); });
}

}  // namespace

void BoundedSizes::count_positions(Graph& g, Node* n) {
  const bool tuples = n->is("GatherND"), elements = n->is("GatherElements");
  if (!n->is("Gather") && !tuples && !elements) return;
  Value *x = n->inputs.at(0), *at = n->inputs.at(1);
  if (!x || !at || !x->type.is_static_tensor() || !at->type.is_static_tensor() || !is_int(at->type.dtype)) return;
  const int64_t axis = axis_from_front(n->attr_int("axis", 0), x);
  if (!tuples && (axis < 0 || axis >= rank_of(x))) return;
  const int64_t numbers = tuples ? (rank_of(at) > 0 ? dims_of(at).back() : 0) : 1;
  if (tuples && (numbers < 1 || numbers > rank_of(x) || n->attr_int("batch_dims", 0) != 0)) return;
  bool counted = false;
  for (int d = 0; d < numbers; d++) counted = counted || find(x, tuples ? d : int(axis));
  int budget = 200;
  const ModelText& name = n->outputs.at(0)->name;
  if (counted && !from_front(at, iteration_, budget)) {
    std::vector<SizeForm> list = forms(x);
    list.resize(size_t(numbers));
    Value* lengths = tuples ? list_of(g, n, list, derived(name, "_lengths")) : find(x, int(axis))->count;
    g.set_input(n, 1, positions_from_front(g, n, at, lengths, name));
  }
  // As many as there are positions, whatever the table has along other axes.
  if (elements && (is_counted(x) || is_counted(at)) && rank_of(at) == rank_of(x)) note_sized(g, n, at, forms(at));
}

}  // namespace tc
