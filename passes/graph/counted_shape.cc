// The meaning of the node is asked for other sizes: its formulas have to be the same, and the axes grow with the operand's.
#include "passes/graph/counted_shape.h"

#include <algorithm>

#include "ir/graph/origin.h"
#include "ir/loop/print.h"
#include "ir/ops/op.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

TensorFn with_size(const Node& n, const std::vector<OperandAxis>& operands, int64_t size) {
  Graph g;
  std::vector<Value*> inputs;
  for (const Value* v : n.inputs) {
    const bool is_constant = v && v->constant;
    inputs.push_back(!v ? nullptr : is_constant ? g.add_constant(v->name, v->constant) : g.add_input(v->name, v->type));
  }
  for (const OperandAxis& o : operands) {
    ValueType t = inputs[o.operand]->type;
    t.shape.at(size_t(o.axis)) = Dim(size);
    g.set_type(inputs[o.operand], t);
  }
  std::vector<ModelText> names = output_names(n);
  if (names[0].empty()) names[0] = n.name;
  Node* same = g.append(n.op, inputs, names, n.attrs, n.domain);
  same->row = n.row;
  if (!n.outputs[0]) g.drop_output(same, 0);
  return tensor_fn(*same);
}

bool same_text(const Exprs& a, const Exprs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Expr& x, const Expr& y) { return to_text(x) == to_text(y); });
}

bool same_extents(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Axis& x, const Axis& y) { return x.extent == y.extent; });
}

bool same_formulas(const TensorFn& a, const TensorFn& b) {
  return std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
                    [](const Stage& x, const Stage& y) {
                      return x.kind == y.kind && !x.nest && !y.nest && same_text(x.values, y.values) &&
                             same_text(x.init, y.init) && same_extents(x.raxes, y.raxes);
                    });
}

/// The function where these axes have `size` elements; nothing if the operator does not take that, or means something else then.
std::optional<TensorFn> same_with_size(const Node& n, const TensorFn& fn, const std::vector<OperandAxis>& operands,
                                       int64_t size) {
  try {
    TensorFn other = with_size(n, operands, size);
    const bool same = other.outputs.size() == fn.outputs.size() && same_formulas(fn, other);
    return same ? std::optional(std::move(other)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Adds the axes that are `size` where they were `capacity`. False if one is another size.
bool compare(const Dims& was, const Dims& is, int64_t capacity, int64_t size, std::set<int>& axes) {
  if (was.size() != is.size()) return false;
  for (size_t d = 0; d < was.size(); d++) {
    if (was[d] == is[d]) continue;
    if (was[d] != capacity || is[d] != size) return false;
    axes.insert(int(d));
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::set<int>>> axes_by_shape(const Node& n, const TensorFn& fn,
                                                        const std::vector<OperandAxis>& operands, int64_t capacity) {
  for (const OperandAxis& o : operands)
    if (n.inputs[o.operand]->constant || dims_of(n.inputs[o.operand]).at(size_t(o.axis)) != capacity)
      return std::nullopt;
  std::vector<std::set<int>> axes(fn.outputs.size());
  for (const int64_t size : {capacity - 1, capacity / 2}) {
    const auto other = same_with_size(n, fn, operands, size);
    if (!other) return std::nullopt;
    for (size_t k = 0; k < axes.size(); k++) {
      std::set<int> grown;
      if (!compare(static_dims(fn.outputs[k]->shape), static_dims(other->outputs[k]->shape), capacity, size, grown))
        return std::nullopt;
      if (size != capacity - 1 && grown != axes[k]) return std::nullopt;
      axes[k] = grown;
    }
  }
  return axes;
}

std::optional<std::vector<std::set<int>>> growing_axes(const Node& n, const TensorFn& fn,
                                                       const std::vector<OperandAxis>& operands, int64_t capacity) {
  std::vector<std::set<int>> axes(fn.outputs.size());
  // By one the number that a formula has may be the same in its type.
  for (const int64_t size : {capacity > 1 ? capacity - 1 : capacity + 1, capacity > 3 ? capacity / 2 : capacity + 2}) {
    const auto other = same_with_size(n, fn, operands, size);
    if (!other) return std::nullopt;
    for (size_t k = 0; k < axes.size(); k++) {
      const Dims was = static_dims(fn.outputs[k]->shape), is = static_dims(other->outputs[k]->shape);
      for (size_t d = 0; d < was.size(); d++)
        if (was[d] != is[d]) axes[k].insert(int(d));
    }
  }
  return axes;
}

}  // namespace tc
