// Unique of a tensor with a counted axis: what lies behind the last row that counts is that row again, which is no other one.
//   y, first, like, many = Unique(x)   x counted by n   ->   f = tc.fill_behind(x, n) {fill = "edge"}
//                                                            y, first, like, all, count = Unique(f)
//                                                            many = the rows behind are taken off where the last one is counted
// y and first are counted by min(count, n), since no rows have nothing distinct; like by n.
//
// Preconditions: none. Without an axis the elements stand one behind the other first.
#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/counted_order.h"

namespace tc {

// `all`: how often each row is there, among them those behind the last of `n`.
Value* BoundedSizes::without_rows_behind(Graph& g, Node* before, Value* all, Value* like, const BoundedSize& rows,
                                         const ModelText& name) {
  const auto list = [&](const char* suffix, int64_t v) {
    return g.add_constant(derived(name, suffix), int64_constant({v}));
  };
  Value* capacity = list("_room", rows.capacity);
  Value* last = add_op(g, before, "Slice", {like, list("_from", rows.capacity - 1), capacity}, derived(name, "_last"));
  Value* order = numbers_in_steps(g, before, dims_of(all)[0], 1, derived(name, "_order"));
  Value* is_last = add_op(g, before, "Equal", {order, last}, derived(name, "_is_last"));
  Value* behind = add_op(g, before, "Sub", {capacity, rows.count}, derived(name, "_behind"));
  Value* fewer = add_op(g, before, "Sub", {all, behind}, derived(name, "_fewer"));
  return add_op(g, before, "Where", {is_last, fewer, all}, name);
}

Node* BoundedSizes::distinct(Graph& g, Node* n) {
  Value* x = operand(*n, 0);
  if (!n->is("Unique") || !x || !is_counted(x) || n->outputs.size() > 4) return n;
  std::vector<ModelText> names = output_names(*n);
  names.resize(4);
  const ModelText base = derived(names[0].empty() ? n->name : names[0], "_unique"), many = names[3];
  const bool by_axis = n->attrs.contains("axis");
  if (!by_axis && rank_of(x) != 1)
    x = made(g, n, "Reshape", {x, g.add_constant(derived(base, "_line"), int64_constant({-1}))},
             derived(base, "_elements"));
  const int axis = by_axis ? int(axis_from_front(n->attr_int("axis", 0), x)) : 0;
  const auto rows = find(x, axis);
  Value* whole = x;
  for (const BoundedSize& s : std::vector(sizes(x))) whole = filled(g, n, whole, s, s.axis == axis ? "edge" : "zero");
  const bool corrects = rows && !many.empty();
  if (corrects) names[3] = derived(base, "_all");
  if (corrects && names[2].empty()) names[2] = derived(base, "_like");

  Node* u = insert_for(g, *n, n, "Unique", {whole}, names, n->attrs);
  u->row = n->row;
  for (size_t k = 0; k < n->outputs.size(); k++)
    if (n->outputs[k]) g.set_type(u->outputs[k], n->outputs[k]->type);  // what the model declares
  u = count_results(g, u);
  infer_types(g, *u);
  Value* count = u->outputs.size() > 4 ? u->outputs[4] : nullptr;
  if (count && rows && counts_.least(*counts_.find(rows->count)) < 1)
    count = add_op(g, n, "Min", {count, rows->count}, derived(base, "_of_some"));
  Node* last = count ? count->producer : u;
  std::vector<Value*> results(u->outputs.begin(),
                              u->outputs.begin() + std::ptrdiff_t(std::min<size_t>(4, u->outputs.size())));
  results.resize(4);
  if (corrects) {
    results[3] = without_rows_behind(g, n, u->outputs[3], u->outputs[2], *rows, many);
    last = results[3]->producer;
  }
  for (size_t k = 0; k < 4; k++) {
    if (!results[k]) continue;
    const int along = k == 0 ? axis : 0;
    Value* of = k == 2 ? (rows ? rows->count : nullptr) : count;
    if (of) note(results[k], {along, of, dims_of(results[k])[size_t(along)]});
    if (k == 0) note_others(results[0], x, axis);
    if (k < n->outputs.size() && n->outputs[k]) g.replace_uses(n->outputs[k], results[k]);
  }
  g.erase(n);
  return last;
}

}  // namespace tc
