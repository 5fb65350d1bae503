// Reshape and Flatten of a tensor with counted axes. Sizes are forms (counts.h): the operand's sizes multiply to the same
// product as the result's, which tells how the result's own counted axes are counted.
//   y = Reshape(x, [-1, 4])      x counted along 0 by n, [n, 91, 4]    ->   y counted along 0 by 91 n
//   y = Reshape(x, [-1, 91, 4])  x counted along 0 by 91 n, [91 n, 4]  ->   y counted along 0 by n
// Where the axes in front of the counted one stay what they are, the elements stay where they are: a view. Otherwise
// what lies between the counted elements moves:
//   y = Reshape(x, [-1])         x counted along 1 by n, [2, n]        ->   y = tc.regroup(x, n, 2 n), counted by 2 n
//   y = Reshape(x, [-1, 768])    x: [n, m, 768]                        ->   y = tc.regroup(x, n, m, n m)
//   y = Reshape(tc.regroup(x, ...), x's sizes)                         ->   y = x
//
// Shapes are cut into parts of equal products, each with one counted axis at most: [n, m, 768] and [n, m, 12, 64] have
// three.
//
// Preconditions: both shapes have the same product, as a polynomial of the counts, so that no element is lost or made.
#include <algorithm>
#include <set>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

using Forms = std::vector<SizeForm>;

SizeForm product_of(const Forms& sizes, size_t first, size_t last) {
  SizeForm p = fixed_size(1);
  for (size_t k = first; k < last; k++) p = p * sizes[k];
  return p;
}

SizeForm product_of(const Forms& sizes) { return product_of(sizes, 0, sizes.size()); }

/// The operand of a Reshape: 0 copies a size, one -1 takes what is left.
std::optional<Forms> resolved(Forms target, const Forms& from, bool copy_zeros) {
  size_t open = target.size();
  for (size_t k = 0; k < target.size(); k++) {
    if (copy_zeros && target[k] == fixed_size(0)) {
      if (k >= from.size()) return std::nullopt;
      target[k] = from[k];
    }
    if (target[k] == fixed_size(-1)) {
      if (open < target.size()) return std::nullopt;
      open = k;
    }
  }
  if (open == target.size()) return target;
  target[open] = fixed_size(1);
  const auto rest = exact_quotient(product_of(from), product_of(target));
  if (!rest) return std::nullopt;
  target[open] = *rest;
  return target;
}

std::optional<Forms> flattened(const Forms& from, int64_t axis) {
  const auto rank = int64_t(from.size());
  const auto cut = size_t(axis < 0 ? axis + rank : axis);
  if (cut > from.size()) return std::nullopt;
  return Forms{product_of(from, 0, cut), product_of(from, cut, from.size())};
}

/// Sizes [first, last) of the operand that hold the same elements as [to_first, to_last) of the result.
struct ViewPart {
  size_t first = 0, last = 0, to_first = 0, to_last = 0;
  /// The counted one among them; -1: none. Both have the same elements in front, so that nothing moves.
  int axis = -1, to_axis = -1;
};

std::vector<int64_t> counted_in(const Forms& sizes, size_t first, size_t last) {
  std::vector<int64_t> axes;
  for (size_t k = first; k < last; k++)
    if (!sizes[k].fixed()) axes.push_back(int64_t(k));
  return axes;
}

/// Cuts both shapes into the smallest parts of equal products, from the front; nothing where they have none, or where what is
/// counted would move.
std::optional<std::vector<ViewPart>> view_parts(const Forms& from, const Forms& to, const Counts& counts) {
  std::vector<ViewPart> parts;
  ViewPart p;
  while (p.last < from.size() || p.to_last < to.size()) {
    auto a = product_of(from, p.first, p.last), b = product_of(to, p.to_first, p.to_last);
    while (p.last == p.first || p.to_last == p.to_first || a != b) {
      const bool more = p.last < from.size(), more_to = p.to_last < to.size();
      if (!more && !more_to) break;
      if (more && (p.last == p.first || !more_to || counts.bound(a) <= counts.bound(b)) &&
          !(p.to_last == p.to_first && p.last > p.first && more_to))
        a = product_of(from, p.first, ++p.last);
      else
        b = product_of(to, p.to_first, ++p.to_last);
    }
    const auto axes = counted_in(from, p.first, p.last), to_axes = counted_in(to, p.to_first, p.to_last);
    if (a != b || axes.size() != to_axes.size() || axes.size() > 1) return std::nullopt;
    p.axis = axes.empty() ? -1 : int(axes[0]);
    p.to_axis = axes.empty() ? -1 : int(to_axes[0]);
    parts.push_back(p);
    p = {p.last, p.last, p.to_last, p.to_last};
  }
  for (const ViewPart& q : parts)
    if (q.axis >= 0 && product_of(from, q.first, size_t(q.axis)) != product_of(to, q.to_first, size_t(q.to_axis)))
      return std::nullopt;
  return parts;
}

/// Behind Unsqueeze or Squeeze of known axes.
std::optional<Forms> reshaped_by_axes(const Node& n, const Forms& from) {
  const bool listed = n.inputs.size() > 1 && n.inputs[1];
  const auto given = listed ? ints_of(n.inputs[1]) : std::optional(n.attr_ints("axes"));
  if (!given || given->empty()) return std::nullopt;
  const bool more = n.is("Unsqueeze");
  const auto rank = int64_t(from.size() + (more ? given->size() : 0));
  std::set<int64_t> axes;
  for (const int64_t a : *given) axes.insert(a < 0 ? a + rank : a);
  Forms to;
  size_t next = 0;
  for (int64_t k = 0; k < rank; k++) {
    const bool named = axes.contains(k);
    if (more && named)
      to.push_back(fixed_size(1));
    else if (const SizeForm& size = from[next++]; !named)
      to.push_back(size);
    else if (size != fixed_size(1))
      return std::nullopt;
  }
  return to;
}

}  // namespace

std::vector<SizeForm> BoundedSizes::forms(const Value* v) const {
  Forms all;
  for (int64_t d : dims_of(v)) all.push_back(fixed_size(d));
  for (const BoundedSize& s : sizes(v)) all[size_t(s.axis)] = *counts_.find(s.count);
  return all;
}

// y = Reshape(x, [96, 64])   x: [8, 12, 64], counted along 0 by n   ->   [12 n, 64]
std::optional<std::vector<SizeForm>> BoundedSizes::forms_behind(const Value* x, const Dims& to) const {
  const Dims from = dims_of(x);
  Forms all;
  for (int64_t d : to) all.push_back(fixed_size(d));
  const auto elements = [](const Dims& dims, size_t first) {
    int64_t n = 1;
    for (size_t k = first; k < dims.size(); k++) n = checked_mul(n, dims[k]);
    return n;
  };
  for (const BoundedSize& s : sizes(x)) {
    // The axis of the result that has the same elements in front.
    const int64_t ahead = elements(from, size_t(s.axis)), behind = elements(from, size_t(s.axis) + 1);
    size_t at = 0;
    while (at < to.size() && (elements(to, at) != ahead || to[at] == 1)) at++;
    if (at == to.size() || behind == 0 || elements(to, at + 1) == 0) return std::nullopt;
    const auto size = exact_quotient(*counts_.find(s.count) * behind, fixed_size(elements(to, at + 1)));
    if (!size || !all[at].fixed()) return std::nullopt;
    all[at] = *size;
  }
  return all;
}

Node* BoundedSizes::view(Graph& g, Node* n) {
  Value *x = n->inputs.at(0), *y = n->outputs.at(0);
  if (!x || !y || !is_counted(x)) return n;
  const Forms from = forms(x);
  std::optional<Forms> to;
  if (n->is("Flatten")) {
    to = flattened(from, n->attr_int("axis", 1));
  } else if (n->is("Unsqueeze") || n->is("Squeeze")) {
    to = reshaped_by_axes(*n, from);
  } else if (const Value* shape = n->inputs.at(1); shape && shape->type.is_static_tensor() && rank_of(shape) == 1) {
    Forms target;
    for (int64_t k = 0; k < dims_of(shape)[0]; k++) {
      const auto e = element(shape, k);
      if (!e) return n;
      target.push_back(*e);
    }
    const bool copies = n->attr_int("allowzero", 0) == 0;
    if (copies && !promise_zeros(target, from)) return n;
    to = resolved(std::move(target), from, copies);
  }
  if (!to) return n;
  // What has been moved may be a view of what it was before.
  const Node* moved = x->producer;
  if (is_regroup(moved) && view_parts(forms(moved->inputs[0]), *to, counts_)) {
    g.set_input(n, 0, moved->inputs[0]);
    if (Node* done = view_as(g, n, *to); done != n) return done;
    g.set_input(n, 0, x);
  }
  return view_as(g, n, *to);
}

// What lies between the counted elements moves.
Node* BoundedSizes::regroup(Graph& g, Node* n, const std::vector<SizeForm>& to, std::vector<int64_t> bounds) {
  Value *x = n->inputs.at(0), *y = n->outputs.at(0);
  const std::vector<int64_t> axes = counted_in(to, 0, to.size());
  if (axes.size() == 1) {  // as much room as there is
    const auto at = size_t(axes[0]);
    Dims others = bounds;
    others.erase(others.begin() + axes[0]);
    const auto [all, rest] = elements_in_proportion(dims_of(x), others);
    bounds[at] = std::max(bounds[at], all / rest);
  }
  std::vector<Value*> operands = {x};
  std::vector<int64_t> counted;
  for (const BoundedSize& s : sizes(x)) {
    counted.push_back(s.axis);
    operands.push_back(s.count);
  }
  std::vector<BoundedSize> list;
  for (const int64_t axis : axes) {
    const std::string suffix = axes.size() == 1 ? "_count" : "_count" + to_text(axis);
    list.push_back(
        {int(axis), counts_.value_of(g, n, to[size_t(axis)], derived(y->name, suffix)), bounds[size_t(axis)]});
    operands.push_back(list.back().count);
  }
  Node* moved =
      insert_for(g, *n, n, "regroup", operands, {y->name}, {{"axes", counted}, {"shape", bounds}, {"to", axes}}, "tc");
  g.replace_uses(y, moved->outputs[0]);
  g.erase(n);
  infer_types(g, *moved);
  for (const BoundedSize& s : list) note(moved->outputs[0], s);
  return moved;
}

Node* BoundedSizes::view_as(Graph& g, Node* n, const std::vector<SizeForm>& to) {
  Value *x = n->inputs.at(0), *y = n->outputs.at(0);
  const Forms from = forms(x);
  const Dims dims = dims_of(x);
  std::vector<int64_t> bounds;
  for (const SizeForm& f : to) bounds.push_back(f.fixed() ? f.addend : counts_.bound(f));
  const bool empty = has_no_elements(dims) && has_no_elements(bounds);  // a view, whatever moves
  if (!empty && std::any_of(bounds.begin(), bounds.end(), [](int64_t b) { return b <= 0; })) return n;
  const auto parts = empty ? std::vector<ViewPart>() : view_parts(from, to, counts_);
  if (!parts) return product_of(from) == product_of(to) ? regroup(g, n, to, bounds) : n;
  std::vector<BoundedSize> counted;
  if (empty)
    for (const int64_t axis : counted_in(to, 0, to.size()))
      counted.push_back({int(axis), nullptr, bounds[size_t(axis)]});
  for (const ViewPart& p : *parts) {
    if (p.axis < 0) continue;
    int64_t elements = 1, others = 1;
    for (size_t k = p.first; k < p.last; k++) elements = checked_mul(elements, dims[k]);
    for (size_t k = p.to_first; k < p.to_last; k++)
      if (int(k) != p.to_axis) others = checked_mul(others, bounds[k]);
    if (elements % others != 0) return n;  // more capacity than counted
    bounds[size_t(p.to_axis)] = elements / others;
    counted.push_back({p.to_axis, nullptr, elements / others});
  }
  for (BoundedSize& s : counted) s.count = counts_.value_of(g, n, to[size_t(s.axis)], derived(y->name, "_count"));
  Node* moved = insert_for(g, *n, n, "Reshape", {x, g.add_constant(derived(y->name, "_sizes"), int64_constant(bounds))},
                           {y->name}, {{"allowzero", int64_t(1)}});
  g.replace_uses(y, moved->outputs[0]);
  g.erase(n);
  infer_types(g, *moved);
  for (const BoundedSize& s : counted) note(moved->outputs[0], s);
  return moved;
}

void BoundedSizes::follow_copies(Graph& g, NodeIterator next) {
  while (next != g.nodes().begin() && (*--next)->is("Identity"))
    if ((*next)->inputs[0] && (*next)->outputs[0]) follow(g, next->get());
}

/// Of loops that go through all of the first operand: what is counted there is counted in the result.
void BoundedSizes::follow_loops(Graph& g, Node* n) {
  const Value* x = n->inputs[0];
  const int last = has_trait(*n, OpTrait::EachRow) ? int(rank_of(x)) - 1 : -1;
  const std::vector<BoundedSize> all = sizes(x);
  const bool none = std::any_of(all.begin(), all.end(), [&](const BoundedSize& s) {
    const auto count = counts_.find(s.count);
    return !count || counts_.least(*count) < 1;
  });
  if (find(x, last) || (none && n->attr_int("none_is_one", 0) != 0)) return follow(g, n);
  note_others(n->outputs[0], x, last);
}

void BoundedSizes::follow_expanded(Graph& g, NodeIterator first, NodeIterator last) {
  while (first != last) {
    Node* n = (first++)->get();
    if (n->inputs.empty() || !n->inputs[0] || !n->outputs[0]) {
      follow(g, n);
    } else if (n->domain == "tc" && n->op == "steps") {
      if (!n->inputs[0]->constant) note(n->outputs[0], {1, n->inputs[0], dims_of(n->outputs[0])[1]});
    } else if (n->domain == "tc" && n->op == "append") {
      follow_append(n);
    } else if (n->domain == "tc" && n->op == "attention") {
      follow_attention(n);
    } else if (n->domain == "tc" && (n->op == "linear_attention" || n->op == "causal_conv" || n->op == "last_steps")) {
      follow_steps(n);
    } else if (has_trait(*n, OpTrait::EachElement) || has_trait(*n, OpTrait::EachRow)) {
      follow_loops(g, n);
    } else if (n->is("Softmax") || n->is("LogSoftmax") || n->is("MatMul")) {
      Node* seen = look_along(g, n);
      infer_types(g, *seen);
      follow(g, seen);
    } else if (n->is("LSTM")) {  // of DynamicQuantizeLSTM
      Node* seen = look_across(g, n);
      infer_types(g, *seen);
      if (!says_sizes(*seen)) follow(g, seen);
    } else if (n->is("Attention") || n->is("Conv") || n->is("QLinearConv") || n->is("MaxPool") || n->is("ReduceSum") ||
               n->is("TopK")) {
      Node* seen = look_across(g, n);
      infer_types(g, *seen);
      follow(g, seen);
    } else if (n->is("Reshape") && is_counted(n->inputs[0])) {
      const auto to = forms_behind(n->inputs[0], dims_of(n->outputs[0]));
      Node* seen = to ? view_as(g, n, *to) : n;
      follow(g, seen);
    } else {
      follow(g, n);
    }
  }
}

}  // namespace tc
