// Rewrites what only training needs. A batch normalisation with fixed statistics is one multiplication and one addition
// per channel; the small operators that make its two constants are folded by the next pass.
//   y = BatchNormalization(x, scale, b, mean, var)   ->   s = scale / sqrt(var + epsilon)
//                                                         y = x * reshape(s) + reshape(b - mean * s)
//   y = Dropout(x)                                   ->   y = x
// Instance, layer and group normalisation compute their statistics and stay.
//
// Needs: types. Leaves: BatchNormalization only in training mode or with statistics of another type than its input.
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

bool has_fixed_statistics(const Node& n) {
  if (!n.is("BatchNormalization") || n.attr_int("training_mode", 0) != 0 || n.inputs.size() != 5) return false;
  const ValueType& t = n.inputs[0]->type;
  for (const Value* v : n.inputs)
    if (!v || !v->type.is_static_tensor() || v->type.dtype != t.dtype) return false;
  return t.shape.size() >= 2;
}

void batch_normalization(Graph& g, Node* n) {
  Value *x = n->inputs[0], *scale = n->inputs[1], *b = n->inputs[2], *mean = n->inputs[3], *var = n->inputs[4];
  const ModelText base = n->outputs[0]->name;
  const DType t = x->type.dtype;
  auto name = [&](std::string_view suffix) { return derived(base, suffix); };
  auto op = [&](const char* op_name, std::vector<Value*> in, std::string_view suffix) {
    return add_op(g, n, op_name, std::move(in), name(suffix));
  };

  Value* epsilon = g.add_constant(name("_epsilon"), scalar_constant(t, double(n->attr_float("epsilon", 1e-5f))));
  Value* deviation = op("Sqrt", {op("Add", {var, epsilon}, "_variance")}, "_deviation");
  Value* s = op("Div", {scale, deviation}, "_channel_scale");
  Value* shift = op("Sub", {b, op("Mul", {mean, s}, "_mean")}, "_channel_shift");
  // One value per channel, broadcast over the axes after it.
  std::vector<int64_t> shape(size_t(rank_of(x)) - 1, 1);
  shape[0] = dims_of(scale).at(0);
  Value* shape_value = g.add_constant(name("_shape"), int64_constant(shape));
  Value* scaled = op("Mul", {x, op("Reshape", {s, shape_value}, "_scale")}, "_scaled");
  replace_node(g, n, op("Add", {scaled, op("Reshape", {shift, shape_value}, "_shift")}, ""));
}

bool is_inactive_dropout(const Node& n) {
  if (!n.is("Dropout") || is_random(n)) return false;
  return n.outputs.size() < 2 || !n.outputs[1] || !n.outputs[1]->is_used();
}

}  // namespace

void simplify_inference(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) simplify_inference(*r, cx);
    if (has_fixed_statistics(*n))
      batch_normalization(g, n);
    else if (is_inactive_dropout(*n))
      replace_node(g, n, n->inputs[0]);
  }
}

}  // namespace tc
