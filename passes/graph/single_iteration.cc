// Preconditions. Loop: its limit is 1 and its first condition true, both constants, and so nothing is asked at run time; what
// the body says of going on does not matter. Scan: each scanned operand has one element along its axis, which may be counted
// from the end; in which direction it would go does not matter.
#include "passes/graph/single_iteration.h"

#include "ir/ops/regions.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

int64_t entry(const Node& n, const std::string& attr, size_t k) {
  const std::vector<int64_t> list = n.attr_ints(attr);
  return k < list.size() ? list[k] : 0;
}

bool has_length_one(const Node& n, size_t k, size_t first) {
  const ValueType& t = n.inputs[k]->type;
  const int64_t rank = int64_t(t.shape.size()), a = entry(n, "scan_input_axes", k - first);
  return t.is_static_tensor() && a >= -rank && a < rank && t.shape[size_t(a < 0 ? a + rank : a)] == Dim(1);
}

Value* reshape(Graph& g, Node* n, const char* op, Value* x, int64_t axis, ModelText name) {
  Value* axes = g.add_constant(derived(name, "_axes"), int64_constant({axis}));
  return insert_for(g, *n, n, op, {x, axes}, {std::move(name)})->outputs[0];
}

}  // namespace

bool runs_once(const Node& n) {
  if (n.regions.size() != 1) return false;
  const Graph& body = *n.regions[0];
  if (body.inputs().size() != n.inputs.size()) return false;
  if (n.is("Loop")) {
    if (own_inputs(n) < 2 || body.outputs().size() != n.outputs.size() + 1) return false;
    const LoopFacts f = loop_facts(n);
    return f.limit == 1 && !f.asks_limit && !f.asks_start;
  }
  const size_t scanned = size_t(n.attr_int("num_scan_inputs", 0));
  if (!n.is("Scan") || scanned == 0 || scanned > own_inputs(n) || body.outputs().size() != n.outputs.size())
    return false;
  for (size_t k = own_inputs(n) - scanned; k < own_inputs(n); ++k)
    if (!n.inputs[k] || !has_length_one(n, k, own_inputs(n) - scanned)) return false;
  return true;
}

NodeIterator inline_iteration(Graph& g, Node* n) {
  const InsertionPoint point(g, *n);
  const bool loop = n->is("Loop");
  const size_t scanned = loop ? 0 : size_t(n->attr_int("num_scan_inputs", 0));
  const size_t states = own_inputs(*n) - (loop ? 2 : scanned), skip = loop ? 1 : 0;
  const Graph& body = *n->regions[0];
  std::vector<Value*> args = n->inputs;
  if (loop) {
    args[0] = g.add_constant(body.inputs()[0]->name, scalar_constant(DType::I64, 0));
    args[1] = g.add_constant(body.inputs()[1]->name, scalar_constant(DType::Bool, 1));
  }
  for (size_t k = 0; k < scanned; ++k)
    args[states + k] =
        reshape(g, n, "Squeeze", args[states + k], entry(*n, "scan_input_axes", k), body.inputs()[states + k]->name);
  const std::vector<Value*> results = inline_graph(g, n, body, args);
  for (size_t k = 0; k < n->outputs.size(); ++k) {
    if (!n->outputs[k]) continue;
    Value* result = results.at(skip + k);
    if (k >= states)
      result =
          reshape(g, n, "Unsqueeze", result, loop ? 0 : entry(*n, "scan_output_axes", k - states), n->outputs[k]->name);
    replace_value(g, n, n->outputs[k], result);
  }
  g.erase(n);
  return point.next();
}

}  // namespace tc
