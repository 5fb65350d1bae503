#include "passes/graph/pointwise.h"

#include <algorithm>

#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// QuantizeLinear or DequantizeLinear, whose axis means nothing where there is one scale.
bool is_quantizer(const Node& n) {
  return (n.is("QuantizeLinear") || n.is("DequantizeLinear")) && has_one_element(dims_of(n.inputs[1]));
}

bool is_pointwise(const TensorFn& fn) {
  if (pattern_of(fn) > Pattern::Broadcast) return false;
  bool ok = true;
  for (const Stage& s : fn.stages)
    for (const Expr& value : s.values)
      walk(value, [&](const Expr& e) {
        if (as<Load>(e)) return false;  // indices are the pattern's business
        if (as<VarRef>(e)) ok = false;  // Trilu: the value depends on the index itself
        return ok;
      });
  return ok;
}

/// Axes of size 1 hide where an operator looks: Einsum's "ncij->ncji" takes every element from its own place if i and j have one
/// value, and says something else once channels stand last. So what the operator means is asked for where all axes are longer.
bool is_pointwise_with_longer_axes(const Node& n) {
  const Dims& dims = dims_of(n.outputs[0]);
  Dims longer = dims;
  int64_t next = 2;
  for (int64_t& d : longer)
    if (d == 1) d = next++;
  Graph g;
  std::vector<Value*> in;
  for (size_t k = 0; k < n.inputs.size(); k++) {
    const Value* v = n.inputs[k];
    if (!v)
      in.push_back(nullptr);
    else if (dims_of(v) == dims)
      in.push_back(g.add_input(v->name, ValueType::tensor(v->type.dtype, to_shape(longer))));
    else if (v->constant)
      in.push_back(g.add_constant(v->name, v->constant));
    else
      in.push_back(g.add_input(v->name, v->type));
  }
  Node* other = g.append(n.op, std::move(in), {n.outputs[0]->name}, n.attrs, n.domain);
  other->row = n.row;
  try {
    const TensorFn& fn = tensor_fn(*other);
    return fn.outputs.at(0)->shape == to_shape(longer) && is_pointwise(fn);
  } catch (const Error&) {  // what is fixed by attributes and constants does not fit other sizes
    return false;
  }
}

}  // namespace

bool is_pointwise(Node& n) {
  if (n.is("Transpose") || n.attrs.contains("axes")) return false;
  if (is_random(n) || (n.attrs.contains("axis") && !is_quantizer(n))) return false;
  const Dims& dims = dims_of(n.outputs[0]);
  return is_pointwise(tensor_fn(n)) &&
         (std::count(dims.begin(), dims.end(), 1) == 0 || is_pointwise_with_longer_axes(n));
}

}  // namespace tc
