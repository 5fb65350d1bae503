// Tensors have the sizes of their upper bounds; beside them goes a number, the count. A node may read such a tensor if what lies
// behind the counted elements stays behind them (counted_meaning.cc); counted_operands.cc rewrites those that can be, and others
// are refused.
//   s = NonMaxSuppression(boxes, scores, ...)   ->   s: i64[bound,3], s_count = NonMaxSuppression(boxes, scores, ...)
//   k = Gather(s, 2, axis = 1)                       k: i64[bound]                  counted by s_count
//   return k                                         return k: s_count along 0, s_count
#include "passes/graph/bounded_sizes.h"

#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/rewrite.h"

namespace tc {

int counting_output(const Node& n) {
  if (n.is("NonZero") || n.is("Compress") || n.is("NonMaxSuppression")) return 1;
  return n.is("Unique") ? 4 : -1;
}

bool counts_results(const Graph& g) {
  return std::any_of(g.nodes().begin(), g.nodes().end(), [](const auto& n) {
    return counting_output(*n) >= 0 ||
           std::any_of(n->regions.begin(), n->regions.end(), [](const auto& r) { return counts_results(*r); });
  });
}

namespace {

/// Is the size known without counting: from constants, or from the model's declaration?
bool size_is_known(const Node& n) {
  auto constant = [&](size_t k) { return k < n.inputs.size() && n.inputs[k] && n.inputs[k]->constant; };
  for (size_t k = 0; k < n.outputs.size() && k < 4; k++)
    if (n.outputs[k] && k != 2 && n.outputs[k]->type.is_static_tensor()) return true;
  if (!n.is("NonMaxSuppression")) return constant(n.is("Compress") ? 1 : 0);
  const Value* boxes = n.inputs.at(0);
  return n.inputs.size() < 3 || (boxes && boxes->type.is_static_tensor() && has_no_elements(dims_of(boxes)));
}

/// Along which axis the outputs of a counting operator are counted.
std::optional<int> counted_axis(const Node& n, size_t k) {
  const int rank = int(n.outputs[k]->type.shape.size());
  if (n.is("NonZero")) return 1;
  if (n.is("NonMaxSuppression")) return 0;
  if (n.is("Unique") && k == 2) return std::nullopt;  // one number for each element of the operand
  const int64_t axis = k == 0 ? n.attr_int("axis", 0) : 0;
  return int(axis < 0 ? axis + rank : axis);
}

}  // namespace

const std::vector<BoundedSize>& BoundedSizes::sizes(const Value* v) const {
  static const std::vector<BoundedSize> none;
  const auto it = sizes_.find(v->id);
  return it == sizes_.end() ? none : it->second;
}

std::optional<BoundedSize> BoundedSizes::find(const Value* v, int axis) const {
  for (const BoundedSize& s : sizes(v))
    if (s.axis == axis) return s;
  return std::nullopt;
}

std::optional<BoundedSize> BoundedSizes::only_size(const Value* v) const {
  return v && sizes(v).size() == 1 ? std::optional(sizes(v)[0]) : std::nullopt;
}

void BoundedSizes::note(const Value* v, const BoundedSize& size) {
  counts_.add(size.count, size.capacity);
  if (counts_.simplest(*counts_.find(size.count)) == fixed_size(size.capacity)) return;  // it can be no other
  std::vector<BoundedSize>& list = sizes_[v->id];
  const auto at = std::find_if(list.begin(), list.end(), [&](const BoundedSize& s) { return s.axis >= size.axis; });
  if (at != list.end() && at->axis == size.axis)
    *at = size;
  else
    list.insert(at, size);
}

void BoundedSizes::note_others(const Value* y, const Value* x, int axis) {
  const std::vector<BoundedSize> all = sizes(x);
  for (const BoundedSize& s : all)
    if (s.axis != axis) note(y, s);
}

bool BoundedSizes::counted_already(Graph& g, Node* n) const {
  const int at = counting_output(*n);
  if (at < 0 || int(n->outputs.size()) > at || !n->inputs.at(0)) return false;
  const auto is_twin = [&](const Node* u) {
    if (u->op != n->op || u->inputs != n->inputs || u->attrs != n->attrs || int(u->outputs.size()) <= at) return false;
    for (size_t k = 0; k < n->outputs.size(); k++)
      if (n->outputs[k] && !u->outputs[k]) return false;
    return true;
  };
  const std::vector<Node*>& users = n->inputs[0]->users;
  const auto twin = std::find_if(users.begin(), users.end(), is_twin);
  if (twin == users.end()) return false;
  Node* const counted = *twin;
  for (size_t k = 0; k < n->outputs.size(); k++)
    if (n->outputs[k]) replace_value(g, n, n->outputs[k], counted->outputs[k]);
  add_origins(counted->origins, n->origins);
  g.erase(n);
  return true;
}

Node* BoundedSizes::count_results(Graph& g, Node* n) {
  const int at = counting_output(*n);
  if (at < 0 || int(n->outputs.size()) > at || size_is_known(*n)) return n;
  std::vector<ModelText> names = output_names(*n);
  const ModelText base = names.at(0).empty() ? n->name : names.at(0);
  names.resize(size_t(at));
  names.push_back(derived(base, "_count"));
  Node* c = insert_for(g, *n, n, n->op, n->inputs, names, n->attrs, n->domain);
  c->row = n->row;
  for (size_t k = 0; k < n->outputs.size(); k++)
    if (n->outputs[k]) g.replace_uses(n->outputs[k], c->outputs[k]);
  g.erase(n);
  return c;
}

bool BoundedSizes::replace_shape(Graph& g, Node* n) {
  if (!n->is("Shape") || !n->inputs.at(0) || !is_counted(n->inputs[0])) return false;
  const Value* x = n->inputs[0];
  const Dims dims = dims_of(x);
  const auto rank = int64_t(dims.size());
  auto border = [&](int64_t p) { return std::clamp<int64_t>(p < 0 ? p + rank : p, 0, rank); };
  const int64_t first = border(n->attr_int("start", 0)), last = border(n->attr_int("end", rank));
  const auto& list = sizes(x);
  if (std::none_of(list.begin(), list.end(), [&](const BoundedSize& s) { return s.axis >= first && s.axis < last; }))
    return false;  // none of the sizes that it asks for
  const ModelText name = n->outputs.at(0)->name;
  std::vector<Value*> parts;
  for (int64_t d = first; d < last; d++) {
    const std::string part = "_" + to_text(d);
    if (const auto size = find(x, int(d)))
      parts.push_back(add_op(g, n, "Reshape",
                             {size->count, g.add_constant(derived(name, part + "_shape"), int64_constant({1}))},
                             derived(name, part)));
    else
      parts.push_back(g.add_constant(derived(name, part), int64_constant({dims[size_t(d)]})));
  }
  replace_node(g, n, add_op(g, n, "Concat", parts, derived(name, "_sizes"), {{"axis", int64_t(0)}}));
  return true;
}

void BoundedSizes::forbid(const Node& n) const {
  for (const Value* v : n.inputs)
    if (v && is_counted(v)) refuse_counted(n, v, "a tensor whose size is known only at run time cannot be used here");
}

void BoundedSizes::follow(Graph& g, Node* n) {
  if (says_sizes(*n)) return;
  const int counter = counting_output(*n);
  if (counter >= 0) forbid(*n);
  if (counter >= 0 && int(n->outputs.size()) > counter) {
    if (const auto repeated = n->is("NonZero") ? count_of_repeated(g, n) : std::nullopt) {
      Value* count = counts_.value_of(g, n, *repeated, derived(n->outputs[0]->name, "_repeated"));
      return note(n->outputs[0], {1, count, dims_of(n->outputs[0])[1]});
    }
    for (size_t k = 0; int(k) < counter; k++)
      if (n->outputs[k])
        if (const auto axis = counted_axis(*n, k)) {
          const int64_t capacity = dims_of(n->outputs[k])[size_t(*axis)];
          note(n->outputs[k], {*axis, n->outputs[size_t(counter)], capacity});
        }
    return;
  }
  if (!n->is("Shape")) follow_operands(g, n);
}

}  // namespace tc
