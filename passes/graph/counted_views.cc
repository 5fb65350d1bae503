// Reshape and Flatten of a tensor with a counted axis. Sizes are sums of counts (counts.h): the operand's sizes multiply
// to the same product as the result's, which tells how the result's own counted axis is counted.
//   y = Reshape(x, [-1, 4])      x counted along 0 by n, [n, 91, 4]    ->   y counted along 0 by 91 n
//   y = Reshape(x, [-1, 91, 4])  x counted along 0 by 91 n, [91 n, 4]  ->   y counted along 0 by n
// Where the axes in front of the counted one stay what they are, the elements stay where they are: a view. Otherwise
// what lies between the counted elements moves:
//   y = Reshape(x, [-1])         x counted along 1 by n, [2, n]        ->   y = tc.regroup(x, n, 2 n), counted by 2 n
//
// Preconditions: the operand has one counted axis, and the result, too; both shapes have the same product, as a multiple of
// the count, so that no element is lost or made.
#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"

namespace tc {
namespace {

using Forms = std::vector<SizeForm>;

/// The product of some fixed sizes; nullopt if one of them is counted.
std::optional<int64_t> fixed_product(const Forms& sizes, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t k = first; k < last; k++) {
    if (!sizes[k].fixed()) return std::nullopt;
    n = checked_mul(n, sizes[k].addend);
  }
  return n;
}

std::optional<SizeForm> product_of(const Forms& sizes, size_t skip) {
  SizeForm p = fixed_size(1);
  for (size_t k = 0; k < sizes.size(); k++) {
    if (k == skip) continue;
    const auto q = product(p, sizes[k]);
    if (!q) return std::nullopt;
    p = *q;
  }
  return p;
}

/// total / part, if that is a size.
std::optional<SizeForm> rest_of(const SizeForm& total, const SizeForm& part) {
  if (part.fixed()) return quotient(total, part.addend);
  const auto& [id, factor] = *part.factors.begin();
  const auto it = total.factors.find(id);
  if (it == total.factors.end() || it->second % factor != 0) return std::nullopt;
  const int64_t times = it->second / factor;
  return part * times == total ? std::optional<SizeForm>(fixed_size(times)) : std::nullopt;
}

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
  const auto total = product_of(from, from.size()), known = product_of(target, open);
  if (!total || !known || *known == fixed_size(0)) return std::nullopt;
  if (open < target.size()) {
    const auto rest = rest_of(*total, *known);
    if (!rest) return std::nullopt;
    target[open] = *rest;
    return target;
  }
  return *known == *total ? std::optional<Forms>(target) : std::nullopt;
}

Forms flattened(const Forms& from, int64_t axis) {
  const auto rank = int64_t(from.size());
  Forms halves(2, fixed_size(1));
  for (int64_t k = 0; k < rank; k++) {
    SizeForm& half = halves[k < (axis < 0 ? axis + rank : axis) ? 0 : 1];
    half = *product(half, from[size_t(k)]);  // one size is counted
  }
  return halves;
}

}  // namespace

Node* BoundedSizes::view(Graph& g, Node* n) {
  Value *x = n->inputs.at(0), *y = n->outputs.at(0);
  const auto size = x ? find(x) : std::nullopt;
  if (!size || !y) return n;
  const Dims dims = dims_of(x);
  Forms from;
  for (int64_t d : dims) from.push_back(fixed_size(d));
  from[size_t(size->axis)] = *counts_.find(size->count);
  std::optional<Forms> to;
  if (n->is("Flatten")) {
    to = flattened(from, n->attr_int("axis", 1));
  } else if (const Value* shape = n->inputs.at(1); shape && shape->type.is_static_tensor() && rank_of(shape) == 1) {
    Forms target;
    for (int64_t k = 0; k < dims_of(shape)[0]; k++) {
      const auto e = element(shape, k);
      if (!e) return n;
      target.push_back(*e);
    }
    to = resolved(std::move(target), from, n->attr_int("allowzero", 0) == 0);
  }
  if (!to) return n;
  size_t axis = 0;
  while (axis < to->size() && (*to)[axis].fixed()) axis++;
  const auto before = fixed_product(*to, 0, axis),
             behind = fixed_product(*to, std::min(axis + 1, to->size()), to->size());
  if (axis == to->size() || !before || !behind || *before <= 0 || *behind <= 0) return n;
  const int64_t capacity = num_elements(dims) / (*before * *behind);
  const bool stays = fixed_product(from, 0, size_t(size->axis)) == before;
  if (stays && capacity * *before * *behind != num_elements(dims)) return n;  // more capacity than counted
  std::vector<int64_t> bounds;
  for (const SizeForm& f : *to) bounds.push_back(f.fixed() ? f.addend : capacity);
  Value* count = counts_.value_of(g, n, (*to)[axis], derived(y->name, "_count"));
  Node* moved = nullptr;
  if (stays)
    moved = insert_for(g, *n, n, "Reshape", {x, g.add_constant(derived(y->name, "_sizes"), int64_constant(bounds))},
                       {y->name}, {{"allowzero", int64_t(1)}});
  else
    moved = insert_for(g, *n, n, "regroup", {x, size->count, count}, {y->name},
                       {{"axis", int64_t(size->axis)}, {"shape", bounds}, {"to", int64_t(axis)}}, "tc");
  g.replace_uses(y, moved->outputs[0]);
  g.erase(n);
  infer_types(g, *moved);
  note(moved->outputs[0], {int(axis), count, capacity});
  return moved;
}

}  // namespace tc
