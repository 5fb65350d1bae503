// Rewrites what only training needs. A batch normalisation with fixed statistics is one multiplication and one addition
// per channel; the small operators that make its two constants are folded by the next pass.
//   y = BatchNormalization(x, scale, b, mean, var)   ->   s = scale / sqrt(var + epsilon)
//                                                         y = x * reshape(s) + reshape(b - mean * s)
//   y = Dropout(x)                                   ->   y = x
// Narrow floats (halves) are multiplied and added in single precision, between two Casts: their s and b - mean * s would
// keep too few digits, and x * s could overflow.
// Instance, layer and group normalisation compute their statistics and stay.
//
// Preconditions: not in training mode, no other result; sizes are known, the input has two axes at least, the statistics
// one, of floats as wide as the input's at least or narrow like it. Dropout: not in training mode, the mask is not read.
//
// Needs: types. Leaves: BatchNormalization only in training mode or with statistics that are wider than what it computes
// in.
#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

bool has_fixed_statistics(const Node& n) {
  if (!n.is("BatchNormalization") || n.attr_int("training_mode", 0) != 0 || n.inputs.size() != 5) return false;
  for (size_t k = 1; k < n.outputs.size(); ++k)
    if (n.outputs[k]) return false;
  for (const Value* v : n.inputs)
    if (!v || !v->type.is_static_tensor()) return false;
  const ValueType& t = n.inputs[0]->type;
  for (const Value* v : n.inputs)
    if (v->type.dtype != t.dtype && (is_wide(t.dtype) || v->type.dtype == DType::F64)) return false;
  return t.shape.size() >= 2 && is_float(t.dtype);
}

void batch_normalization(Graph& g, Node* n) {
  const ModelText base = n->outputs[0]->name;
  const DType own = n->inputs[0]->type.dtype, t = is_wide(own) ? own : DType::F32;
  auto name = [&](std::string_view suffix) { return derived(base, suffix); };
  auto op = [&](const char* op_name, std::vector<Value*> in, std::string_view suffix) {
    return add_op(g, n, op_name, std::move(in), name(suffix));
  };
  auto as = [&](DType to, Value* v, std::string_view suffix) {
    return v->type.dtype == to ? v : add_op(g, n, "Cast", {v}, name(suffix), {{"to", int64_t(to)}});
  };
  Value *x = as(t, n->inputs[0], "_wide"), *scale = as(t, n->inputs[1], "_given_scale"),
        *b = as(t, n->inputs[2], "_given_bias"), *mean = as(t, n->inputs[3], "_given_mean"),
        *var = as(t, n->inputs[4], "_given_variance");
  Value* epsilon = g.add_constant(name("_epsilon"), scalar_constant(t, double(n->attr_float("epsilon", 1e-5f))));
  Value* deviation = op("Sqrt", {op("Add", {var, epsilon}, "_variance")}, "_deviation");
  Value* s = op("Div", {scale, deviation}, "_channel_scale");
  Value* shift = op("Sub", {b, op("Mul", {mean, s}, "_mean")}, "_channel_shift");
  // One value per channel, broadcast over the axes after it.
  std::vector<int64_t> shape(size_t(rank_of(x)) - 1, 1);
  shape[0] = dims_of(scale).at(0);
  Value* shape_value = g.add_constant(name("_shape"), int64_constant(shape));
  Value* scaled = op("Mul", {x, op("Reshape", {s, shape_value}, "_scale")}, "_scaled");
  Value* y = op("Add", {scaled, op("Reshape", {shift, shape_value}, "_shift")}, own == t ? "" : "_sum");
  replace_node(g, n, as(own, y, ""));
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
