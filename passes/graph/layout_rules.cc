// How single operators follow their operands into the channels-last layout.
#include <algorithm>

#include "ir/ops/counted_sizes.h"
#include "ir/ops/op.h"
#include "passes/graph/layout.h"
#include "passes/graph/pointwise.h"

namespace tc {

namespace {

/// Does the operator's row know this attribute?
bool knows(const Node& n, std::string_view attribute) {
  const OpRow* row = row_of(n);
  return row &&
         std::any_of(row->attrs.begin(), row->attrs.end(), [&](const AttrSpec& a) { return a.name == attribute; });
}

std::vector<ModelText> result_name(const Node* n) { return {Layouts::name_for(n)}; }

/// The node with other operands and attributes, before n; its result typed.
Value* remade(Layouts& l, Node* n, std::vector<Value*> in, Attrs attrs) {
  return add_op(l.graph(), n, n->op, std::move(in), result_name(n)[0], std::move(attrs));
}

bool pointwise(Layouts& l, Node* n) {
  const int rank = rank_of(n->outputs[0]);
  const Dims dims = dims_of(n->outputs[0]);
  if (n->outputs.size() != 1 || !is_pointwise(*n)) return false;
  for (const Value* v : n->inputs)
    if (v && dims_of(v) != dims && !has_one_element(dims_of(v)) && !has_trait(*n, OpTrait::Broadcasts)) return false;
  std::vector<Value*> in;
  for (Value* v : n->inputs) in.push_back(v ? l.broadcast_last(v, rank, n) : nullptr);
  l.replace(n, remade(l, n, std::move(in), n->attrs));
  return true;
}

/// Pooling, DepthToSpace: an operator of one tensor that knows both layouts.
bool spatial(Layouts& l, Node* n) {
  if (n->inputs.size() != 1 || !knows(*n, "data_layout")) return false;
  if (n->outputs.size() > 1 && n->outputs[1]) return false;  // positions of maxima count in [N, C, H, W]
  Attrs attrs = n->attrs;
  attrs["data_layout"] = std::string("NHWC");
  l.replace(n, remade(l, n, {l.last(n->inputs[0], n)}, std::move(attrs)));
  return true;
}

bool by_axis(Layouts& l, Node* n) {
  const int rank = rank_of(n->outputs[0]);
  const bool softmax = n->is("Softmax") || n->is("LogSoftmax");
  if (!softmax && !n->is("Concat")) return false;
  std::vector<Value*> in;
  for (Value* v : n->inputs) in.push_back(l.last(v, n));
  Attrs attrs = n->attrs;
  attrs["axis"] = axis_in_last(n->attr_int("axis", softmax ? -1 : 0), rank);
  l.replace(n, remade(l, n, std::move(in), std::move(attrs)));
  return true;
}

/// What stands behind the elements that a count counts.
bool fill(Layouts& l, Node* n) {
  if (n->domain != "tc" || n->op != "fill_behind") return false;
  std::vector<Value*> in = n->inputs;
  in[0] = l.last(in[0], n);
  Attrs attrs = n->attrs;
  attrs["axis"] = axis_in_last(n->attr_int("axis", 0), rank_of(n->outputs[0]));
  Node* filled = insert_for(l.graph(), *n, n, n->op, std::move(in), result_name(n), std::move(attrs), n->domain);
  infer_types(l.graph(), *filled);
  l.replace(n, filled->outputs[0]);
  return true;
}

Value* ints(Layouts& l, const Value* like, std::string_view suffix, const std::vector<int64_t>& v) {
  return l.graph().add_constant(derived(like->name, suffix), int64_constant(v));
}

/// The constant axes of operand k, each moved; all axes when the operand is absent. Nothing if they are not known.
std::optional<std::vector<int64_t>> moved_axes(const Node* n, size_t k, size_t count) {
  const int rank = rank_of(n->inputs[0]);
  std::vector<int64_t> axes;
  if (k >= n->inputs.size() || !n->inputs[k])
    for (size_t d = 0; d < count; ++d) axes.push_back(int64_t(d));
  else if (auto given = ints_of(n->inputs[k]))
    axes = *given;
  else
    return std::nullopt;
  for (int64_t& a : axes) a = axis_in_last(a, rank);
  return axes;
}

bool slice_or_pad(Layouts& l, Node* n) {
  const bool is_slice = n->is("Slice");
  if (!is_slice && !n->is("Pad")) return false;
  const Value* x = n->inputs[0];
  const size_t axes_at = 3;
  const auto extents = n->inputs[1] ? ints_of(n->inputs[1]) : std::nullopt;
  if (!extents) return false;
  const auto axes = moved_axes(n, axes_at, is_slice ? extents->size() : extents->size() / 2);
  if (!axes) return false;
  std::vector<Value*> in = n->inputs;
  in.resize(std::max(in.size(), axes_at + 1));
  in[0] = l.last(in[0], n);
  in[axes_at] = ints(l, x, is_slice ? "_slice_axes" : "_pad_axes", *axes);
  l.replace(n, remade(l, n, std::move(in), n->attrs));
  return true;
}

bool resize(Layouts& l, Node* n) {
  if (!n->is("Resize")) return false;
  std::vector<Value*> in = n->inputs;
  if (in.size() > 1 && in[1] && !has_no_elements(dims_of(in[1]))) return false;  // a region of interest
  Attrs attrs = n->attrs;
  const int rank = rank_of(in[0]);
  auto axes = n->attr_ints("axes");
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  for (int64_t& a : axes) a = axis_in_last(a, rank);
  attrs["axes"] = axes;
  auto counted = n->attr_ints(std::string(kCountedAxes));
  for (int64_t& a : counted) a = axis_in_last(a, rank);
  if (!counted.empty()) attrs[std::string(kCountedAxes)] = counted;
  in[0] = l.last(in[0], n);
  l.replace(n, remade(l, n, std::move(in), std::move(attrs)));
  return true;
}

bool upsample(Layouts& l, Node* n) {
  if (!n->is("Upsample") || !n->inputs.at(1)->constant) return false;
  Value* x = n->inputs[0];
  const auto rank = size_t(rank_of(x));
  const Constant scales = n->inputs[1]->constant;
  if (scales->size() != int64_t(rank) || scales->dtype != DType::F32) return false;
  std::vector<float> moved(rank);
  for (size_t d = 0; d < rank; ++d) moved[size_t(axis_in_last(int64_t(d), int(rank)))] = scales->as<float>()[d];
  const Constant in_last = make_constant(DType::F32, scales->dims, moved.data());
  Value* s = l.graph().add_constant(derived(n->inputs[1]->name, "_last"), in_last);
  l.replace(n, remade(l, n, {l.last(x, n), s}, n->attrs));
  return true;
}

bool reduction(Layouts& l, Node* n) {
  if (!knows(*n, "noop_with_empty_axes")) return false;
  if ((n->inputs.size() < 2 || !n->inputs[1]) && n->attr_int("noop_with_empty_axes", 0) != 0) return false;
  const int rank = rank_of(n->inputs[0]);
  const auto axes = moved_axes(n, 1, size_t(rank));
  if (!axes || axes->empty()) return false;
  const bool keep = n->attr_int("keepdims", 1) != 0;
  Value* axes_value = ints(l, n->outputs[0], "_axes", *axes);
  if (keep) {
    l.replace(n, remade(l, n, {l.last(n->inputs[0], n), axes_value}, n->attrs));
    return true;
  }
  // Without the reduced axes the others must be in the old order: N before C before the spatial ones.
  auto gone = [&](int64_t a) { return std::find(axes->begin(), axes->end(), a) != axes->end(); };
  bool spatial_left = false;
  for (int64_t a = 1; a + 1 < rank; ++a) spatial_left = spatial_left || !gone(a);
  if (spatial_left && !gone(rank - 1)) return false;
  Value* y = add_op(l.graph(), n, n->op, {l.last(n->inputs[0], n), axes_value}, n->outputs[0]->name, n->attrs);
  replace_node(l.graph(), n, y);
  return true;
}

/// Reshape that merges the spatial axes, [N, C, H, W] -> [N, C, H * W]: they are neighbours in both layouts.
bool merge_spatial(Layouts& l, Node* n) {
  if (!n->is("Reshape")) return false;
  const Dims in = dims_of(n->inputs[0]), out = dims_of(n->outputs[0]);
  if (out.size() != 3 || in.size() < 3 || out[0] != in[0] || out[1] != in[1]) return false;
  Value* shape = ints(l, n->outputs[0], "_shape", {out[0], out[2], out[1]});
  l.replace(n, add_op(l.graph(), n, "Reshape", {l.native(n->inputs[0]), shape}, Layouts::name_for(n),
                      sizes_as_given(n->outputs[0])));
  return true;
}

/// Reshape of [N, C, 1, 1]: the transposition moves nothing.
bool reshape_of_unmoved(Layouts& l, Node* n) {
  if (!n->is("Reshape")) return false;
  const Dims d = dims_of(n->inputs[0]);
  const bool no_space = has_one_element(Dims(d.begin() + 2, d.end()));
  if (!no_space && d[1] != 1) return false;
  Value* shape = ints(l, n->outputs[0], "_shape", dims_of(n->outputs[0]));
  replace_node(l.graph(), n,
               add_op(l.graph(), n, "Reshape", {l.native(n->inputs[0]), shape}, n->outputs[0]->name,
                      sizes_as_given(n->outputs[0])));
  return true;
}

/// Reshape [N, C, H, W] -> [N, C * H * W] before a product with a constant matrix: its rows move instead.
bool flatten_before_matmul(Layouts& l, Node* n) {
  if (!n->is("Reshape")) return false;
  Graph& g = l.graph();
  const Dims in = dims_of(n->inputs[0]), out = dims_of(n->outputs[0]);
  Node* m = only_user(n->outputs[0]);
  if (!m || !m->is("MatMul") || m->inputs[0] != n->outputs[0]) return false;
  Value* w = m->inputs[1];
  if (out.size() != 2 || out[0] != in[0] || !w->constant || rank_of(w) != 2) return false;
  const int rank = int(in.size());
  Dims rows(in.begin() + 1, in.end());
  rows.push_back(dims_of(w)[1]);
  std::vector<int64_t> perm;  // [C, H, W, M] -> [H, W, C, M]
  for (int d = 1; d + 1 < rank; ++d) perm.push_back(d);
  perm.push_back(0);
  perm.push_back(rank - 1);
  Value* apart =
      constant_op(g, m, "Reshape", {w, ints(l, w, "_rows", rows)}, derived(w->name, "_apart"), sizes_as_given(w));
  Value* moved = constant_op(g, m, "Transpose", {apart}, derived(w->name, "_moved"), {{"perm", perm}});
  Value* flat = constant_op(g, m, "Reshape", {moved, ints(l, w, "_size", dims_of(w))}, derived(w->name, "_nhwc"),
                            sizes_as_given(w));
  g.set_input(m, 1, flat);
  Value* shape = ints(l, n->outputs[0], "_shape", out);
  replace_node(
      g, n,
      add_op(g, n, "Reshape", {l.native(n->inputs[0]), shape}, n->outputs[0]->name, sizes_as_given(n->outputs[0])));
  return true;
}

/// [N, a * b, ...] -> [N, a, b, ...] -> [N, b, a, ...] -> [N, b * a, ...]: channels are shuffled. n is the last Reshape.
bool shuffle(Layouts& l, Node* n) {
  Node* exchange = made_by(n->inputs[0], "Transpose");
  const Node* split = exchange ? made_by(exchange->inputs[0], "Reshape") : nullptr;
  Value* x = split ? l.native(split->inputs[0]) : nullptr;
  if (!x) return false;
  const Dims in = dims_of(split->inputs[0]), parts = dims_of(split->outputs[0]), out = dims_of(n->outputs[0]);
  if (parts.size() != in.size() + 1 || out != in || parts[0] != in[0] || parts[1] * parts[2] != in[1]) return false;
  if (!std::equal(in.begin() + 2, in.end(), parts.begin() + 3)) return false;
  std::vector<int64_t> perm(parts.size()), last(parts.size());
  for (size_t d = 0; d < perm.size(); ++d) perm[d] = last[d] = int64_t(d);
  std::swap(perm[1], perm[2]);
  if (exchange->attr_ints("perm") != perm) return false;
  std::swap(last[last.size() - 2], last.back());
  Graph& g = l.graph();
  Dims apart = {in[0]};
  apart.insert(apart.end(), in.begin() + 2, in.end());
  Dims whole = apart;
  apart.insert(apart.end(), {parts[1], parts[2]});
  whole.push_back(in[1]);
  const Value* y = n->outputs[0];
  Value* a = add_op(g, n, "Reshape", {x, ints(l, y, "_parts", apart)}, derived(y->name, "_apart"), sizes_as_given(y));
  Value* b = add_op(g, n, "Transpose", {a}, derived(y->name, "_exchanged"), {{"perm", last}});
  l.replace(n, add_op(g, n, "Reshape", {b, ints(l, y, "_shape", whole)}, Layouts::name_for(n), sizes_as_given(y)));
  if (!exchange->outputs[0]->is_used()) erase_unused(g, exchange);
  return true;
}

}  // namespace

bool follow_layout(Layouts& l, Node* n) {
  if (n->outputs.empty() || !n->outputs[0]) return false;
  if (n->is("Reshape"))
    return shuffle(l, n) ||
           (l.may_follow(n) && (reshape_of_unmoved(l, n) || merge_spatial(l, n) || flatten_before_matmul(l, n)));
  if (reduction(l, n)) return true;
  if (rank_of(n->outputs[0]) < 3) return false;
  return spatial(l, n) || follow_normalization(l, n) || by_axis(l, n) || fill(l, n) || slice_or_pad(l, n) ||
         resize(l, n) || upsample(l, n) || pointwise(l, n);
}

}  // namespace tc
