// Positions along a counted axis are tested against the count, not against the room there is, and count from the end there is.
//   y = Gather(x, [-1])   x counted along 0 by n   ->   i = tc.positions([-1], n)   y = Gather(x, i)
//
// GatherElements gives as many as there are positions, along all axes.
//
// Preconditions: the axis is the counted one. Positions that are counted themselves stay where they are known not to be negative:
// most are a range of what there is.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {

// Positions from the front, whatever the data: sizes, numbers in order, sums and products of such. In a loop's body its counter, too.
bool BoundedSizes::from_front(const Value* v, int& budget) {
  if (!v || --budget < 0) return false;
  if (v == iteration_) return true;
  if (v->constant) {
    for (int64_t k = 0; k < v->constant->size(); k++)
      if (v->constant->as_int(k) < 0) return false;
    return true;
  }
  if (v->type.is_static_tensor() && has_one_element(dims_of(v)))
    if (const auto size = element(v, 0)) return counts_.least(*size) >= 0;
  const Node* n = v->producer;
  if (!n) return false;
  const auto of_all = [&] {
    return std::all_of(n->inputs.begin(), n->inputs.end(), [&](const Value* part) { return from_front(part, budget); });
  };
  for (const char* op : {"NonZero", "NonMaxSuppression", "ArgMax", "ArgMin", "Shape"})
    if (n->is(op)) return true;
  if ((n->is("TopK") && v->index == 1) || (n->is("Unique") && v->index > 0)) return true;
  for (const char* op : {"Gather", "GatherND", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Identity",
                         "Cast", "Split", "Expand"})
    if (n->is(op)) return from_front(n->inputs[0], budget);
  if (n->is("Range")) return is_scalar(n->inputs[0], 0) && n->inputs.size() > 2 && is_scalar(n->inputs[2], 1);
  if (is_regroup(n)) return from_front(n->inputs[0], budget);
  return (n->is("Concat") || n->is("Add") || n->is("Mul")) && of_all();
}

// Constants from the front, which every size is larger than.
bool BoundedSizes::lie_below(const Value* at, const std::vector<SizeForm>& lengths) const {
  if (!at->constant) return false;
  for (int64_t k = 0; k < at->constant->size(); k++) {
    const int64_t position = at->constant->as_int(k);
    if (position < 0 || position >= counts_.least(lengths[size_t(k) % lengths.size()])) return false;
  }
  return true;
}

void BoundedSizes::count_positions(Graph& g, Node* n) {
  const bool tuples = n->is("GatherND"), elements = n->is("GatherElements");
  if (!n->is("Gather") && !tuples && !elements) return;
  Value *x = n->inputs.at(0), *at = n->inputs.at(1);
  if (!x || !at || !x->type.is_static_tensor() || !at->type.is_static_tensor() || !is_int(at->type.dtype)) return;
  const int64_t axis = axis_from_front(n->attr_int("axis", 0), x);
  if (!tuples && (axis < 0 || axis >= rank_of(x))) return;
  const int64_t first = tuples ? n->attr_int("batch_dims", 0) : axis;  // of the axes that positions lead along
  const int64_t numbers = tuples ? (rank_of(at) > 0 ? dims_of(at).back() : 0) : 1;
  if (tuples && (numbers < 1 || first < 0 || numbers > rank_of(x) - first)) return;
  bool counted = false;
  for (int64_t d = first; d < first + numbers; d++) counted = counted || find(x, int(d));
  int budget = 200;
  const ModelText& name = n->outputs.at(0)->name;
  const bool stays = (is_counted(at) || in_body_) && from_front(at, budget);
  if (counted && !stays) {
    const std::vector<SizeForm> all = forms(x);
    const auto begin = all.begin() + std::ptrdiff_t(first);
    const std::vector<SizeForm> lengths(begin, begin + std::ptrdiff_t(numbers));
    if (!lie_below(at, lengths)) g.set_input(n, 1, positions_from_front(g, n, at, lengths, name));
  }
  // As many as there are positions, whatever the table has along other axes.
  if (elements && (is_counted(x) || is_counted(at)) && rank_of(at) == rank_of(x)) note_sized(g, n, at, forms(at));
}

}  // namespace tc
