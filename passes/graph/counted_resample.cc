// Operators whose results lie along the axes of their operand, as many as a formula of its size says: Resize, Upsample,
// DepthToSpace, SpaceToDepth, GridSample. Behind the counted elements stands what they read beyond an end.
//   y = Resize(x, , [1, 1, 2]) <mode = "linear">   x: [1, 3, n]   ->   y = Resize(x, the last element behind it), counted by 2 n
//   y = Resize(x, , , Shape(z)) <align_corners>    z: [1, 3, m]   ->   y = Resize(x, , , bounds, n, m), counted by m
//   y = GridSample(x, grid)                        x: [1, 3, n]   ->   y = GridSample(x, grid, n), counted as the grid is
//
// Preconditions: scales are constants, sizes forms of counts. Where scales are powers of two times whole numbers, or sizes have a
// constant ratio to the operand's, and positions don't depend on the size (half_pixel, asymmetric, pytorch_half_pixel of more than
// one element), nor do weights (no antialias, no exclude_outside), the operator stays as it is; else it gets the sizes as operands.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/counted_sizes.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

/// Of two numbers of elements.
struct Ratio {
  int64_t p = 1, q = 1;
};

/// A scale that a product with a size gives exactly: a whole number divided by a power of two.
std::optional<Ratio> exact_ratio(double scale) {
  for (Ratio r; r.q <= 64; r.q *= 2)
    if (const double p = scale * double(r.q); p >= 1 && p <= 1024 && p == std::floor(p)) return Ratio{int64_t(p), r.q};
  return std::nullopt;
}

/// `to` of `from`, where that is the same for all sizes.
std::optional<Ratio> ratio_of(const SizeForm& to, const SizeForm& from) {
  const auto factor = [](const SizeForm& f) { return f.fixed() ? f.addend : f.terms.begin()->second; };
  const int64_t common = std::gcd(factor(to), factor(from));
  if (common == 0) return std::nullopt;
  const Ratio r = {factor(to) / common, factor(from) / common};
  return r.p > 0 && r.q > 0 && to * r.q == from * r.p ? std::optional(r) : std::nullopt;
}

bool positions_are_local(const Node& n) {
  if (n.is("Upsample")) return true;
  const std::string mode = n.attr_string("coordinate_transformation_mode", "half_pixel");
  return (mode == "half_pixel" || mode == "asymmetric" || mode == "pytorch_half_pixel") &&
         n.attr_int("antialias", 0) == 0 && n.attr_int("exclude_outside", 0) == 0 &&
         n.attr_string("keep_aspect_ratio_policy", "stretch") == "stretch";
}

/// May the operator be told how many elements there are? `scale` is 0 where sizes say how many there shall be. An antialiasing
/// filter leaves an axis alone whose length stays, and has as many taps as the scale says.
bool positions_are_known(const Node& n, double scale) {
  if (!n.is("Resize") || n.attr_string("keep_aspect_ratio_policy", "stretch") != "stretch") return false;
  if (n.attr_int("antialias", 0) != 0 && (scale <= 0 || (scale > 1 && scale < 2))) return false;
  const std::string mode = n.attr_string("coordinate_transformation_mode", "half_pixel");
  return mode != "tf_crop_and_resize" && (mode != "tf_half_pixel_for_nn" || scale > 0);
}

/// Does a result never read beyond the last element? It is the nearest one of those that are repeated.
bool repeats(const Node& n, const Ratio& r) {
  if (n.attr_string("mode", "nearest") != "nearest" || r.p % r.q != 0) return false;
  if (n.is("Upsample")) return true;
  const std::string nearest = n.attr_string("nearest_mode", "round_prefer_floor");
  if (n.attr_string("coordinate_transformation_mode", "half_pixel") == "asymmetric") return nearest == "floor";
  return nearest == "round_prefer_floor" || nearest == "round_prefer_ceil";
}

}  // namespace

void BoundedSizes::note_sized(Graph& g, Node* n, const Value* x, const std::vector<SizeForm>& out) {
  n->fn.reset();
  infer_types(g, *n);
  Value* y = n->outputs.at(0);
  told_.insert(y->id);
  const Dims dims = dims_of(y);
  for (size_t d = 0; d < dims.size(); d++) {
    if (out[d].fixed()) continue;
    const auto same = find(x, int(d));
    const bool kept = same && *counts_.find(same->count) == out[d];
    const std::string suffix = "_size" + to_text(int64_t(d));
    note(y, {int(d), kept ? same->count : counts_.value_of(g, n, out[d], derived(y->name, suffix)), dims[d]});
  }
}

Node* BoundedSizes::resample(Graph& g, Node* n) {
  Value* x = operand(*n, 0);
  if (!x || !x->type.is_static_tensor() || !n->domain.empty()) return n;
  const size_t told = n->is("Pad") ? 1 : 3;  // the operand that may say sizes of the result
  if (!is_counted(x) && ((!n->is("Resize") && !n->is("Pad")) || !operand(*n, told) || n->inputs[told]->constant ||
                         !n->outputs.at(0) || n->outputs[0]->type.is_static_tensor()))
    return n;
  if (n->is("Pad")) return pad(g, n);
  const std::vector<SizeForm> in = forms(x);
  if ((n->is("DepthToSpace") || n->is("SpaceToDepth")) && in.size() == 4 && in[1].fixed()) {
    const int64_t block = n->attr_int("blocksize", 1);
    if (block < 1) return n;
    std::vector<SizeForm> out = in;
    out[1] = fixed_size(0);  // the type has it
    for (size_t d = 2; d < 4; d++) {
      const auto part = exact_quotient(in[d], fixed_size(block));
      if (!part && n->is("SpaceToDepth")) return n;
      out[d] = n->is("DepthToSpace") ? in[d] * block : *part;
    }
    note_sized(g, n, x, out);
    return n;
  }
  if (n->is("GridSample")) return sample(g, n);
  return n->is("Resize") || n->is("Upsample") ? resize(g, n) : n;
}

Node* BoundedSizes::sample(Graph& g, Node* n) {
  Value *x = n->inputs[0], *grid = operand(*n, 1);
  if (!along_space(sizes(x)) || !grid || !grid->type.is_static_tensor() || rank_of(grid) != rank_of(x)) return n;
  const std::vector<SizeForm> in = forms(x), at = forms(grid);
  if (in[0] != at[0] || !at.back().fixed()) return n;
  std::vector<SizeForm> out = {in[0], in[1]};
  out.insert(out.end(), at.begin() + 1, at.end() - 1);
  std::vector<int64_t> axes;
  if (n->inputs.size() > size_t(kGridSampleCounts)) return n;
  for (const BoundedSize& size : std::vector<BoundedSize>(sizes(x))) {
    if (size.axis < 2) continue;
    axes.push_back(size.axis);
    g.add_node_input(n, size.count);
  }
  n->attrs[std::string(kCountedAxes)] = axes;
  note_sized(g, n, x, out);
  return n;
}

// Boxes in an image: each result depends on its own box, and on how large the image is.
Node* BoundedSizes::align_rois(Graph& g, Node* n) {
  Value *x = operand(*n, 0), *rois = operand(*n, 1), *batch = operand(*n, 2);
  if (!x || !rois || !batch || n->inputs.size() != size_t(kRoiAlignCounts) || !x->type.is_static_tensor()) return n;
  if (!rois->type.is_static_tensor() || !batch->type.is_static_tensor() || rank_of(x) != 4 || rank_of(rois) != 2)
    return n;
  if (find(x, 1) || find(rois, 1) || forms(batch) != std::vector<SizeForm>{form_along(rois, 0)}) return n;
  if (!is_counted(x) && !is_counted(rois)) return n;
  const SizeForm boxes = form_along(rois, 0);
  for (const size_t k : {size_t(1), size_t(2)})  // behind the last box none that takes long, or lies in no image
    if (const auto size = find(n->inputs[k], 0)) g.set_input(n, k, filled(g, n, n->inputs[k], *size, "zero"));
  std::vector<int64_t> axes;
  for (const BoundedSize& size : std::vector<BoundedSize>(sizes(x))) {
    if (size.axis < 2) continue;
    axes.push_back(size.axis);
    g.add_node_input(n, size.count);
  }
  if (!axes.empty()) n->attrs[std::string(kCountedAxes)] = axes;
  n->fn.reset();
  infer_types(g, *n);
  std::vector<SizeForm> out = {boxes};
  for (size_t d = 1; d < 4; d++) out.push_back(fixed_size(dims_of(n->outputs.at(0))[d]));
  note_sized(g, n, rois, out);
  return n;
}

// A scale that gives whole numbers only after rounding: as ONNX has it, floor(scale n) in f32.
SizeForm BoundedSizes::scaled(Graph& g, Node* n, const BoundedSize& size, double scale) {
  const SizeForm in = *counts_.find(size.count);
  if (const auto r = exact_ratio(scale)) return counts_.quotient(in * r->p, r->q);
  Value*& known = scaled_[{in, scale}];
  if (!known) {
    const ModelText name = derived(n->outputs.at(0)->name, "_axis" + to_text(int64_t(size.axis)));
    Value* number = add_op(g, n, "Cast", {size.count}, derived(name, "_f32"), {{"to", int64_t(DType::F32)}});
    Value* factor = g.add_constant(derived(name, "_scale"), scalar_constant(DType::F32, scale));
    Value* product = add_op(g, n, "Mul", {number, factor}, derived(name, "_scaled"));
    Value* whole = add_op(g, n, "Floor", {product}, derived(name, "_whole"));
    known = add_op(g, n, "Cast", {whole}, derived(name, "_size"), {{"to", int64_t(DType::I64)}});
    const auto ended = [&](int64_t end) { return int64_t(std::floor(float(scale) * float(end))); };
    counts_.add(known, ended(counts_.bound(in)), ended(counts_.least(in)));
  }
  return *counts_.find(known);
}

/// One axis of a Resize.
struct BoundedSizes::ResizedAxis {
  int axis = 0;
  std::optional<BoundedSize> own;
  std::optional<SizeForm> to;  // what sizes say
  double scale = 1;            // what scales say
  Ratio local;                 // where positions don't depend on the size
  bool open = false;           // they do
};

// Positions that don't depend on the size: each run reads what the one of the largest size reads there.
bool BoundedSizes::is_local(const Node& n, ResizedAxis& a, const SizeForm& in) const {
  if (!a.own) return !a.to || a.to->fixed();
  const auto r = a.to ? ratio_of(*a.to, in) : exact_ratio(a.scale);
  if (!r) return false;
  a.local = *r;
  if (r->p == r->q) return true;
  if (!positions_are_local(n) || (a.to && checked_mul(a.own->capacity, r->p) % r->q != 0)) return false;
  return n.attr_string("coordinate_transformation_mode", "") != "pytorch_half_pixel" ||
         counts_.least(in) * r->p / r->q >= 2;
}

Node* BoundedSizes::resize(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  const std::vector<SizeForm> in = forms(x);
  std::vector<int64_t> which = n->attr_ints("axes");
  if (which.empty())
    for (size_t d = 0; d < in.size(); d++) which.push_back(int64_t(d));
  const auto given = [&](size_t k) {
    const Value* v = operand(*n, k);
    return v && v->type.is_static_tensor() && dims_of(v) == Dims{int64_t(which.size())} ? v : nullptr;
  };
  const size_t by_scale = n->is("Upsample") ? 1 : 2;
  const Value *scales = given(by_scale), *sizes_given = n->is("Upsample") ? nullptr : given(3);
  if (scales ? !scales->constant : !sizes_given) return n;
  if (n->inputs.size() > size_t(kResizeCounts)) return n;
  std::vector<ResizedAxis> axes;
  for (size_t k = 0; k < which.size(); k++) {
    const int64_t d = axis_from_front(which[k], x);
    if (d < 0 || d >= int64_t(in.size())) return n;
    ResizedAxis a = {int(d), find(x, int(d)), {}, 1, {}, false};
    if (scales) a.scale = scales->constant->as_double(int64_t(k));
    if (!scales) a.to = element(sizes_given, int64_t(k));
    if (!scales && !a.to) return n;
    const bool stays = scales ? a.scale == 1 : *a.to == in[size_t(d)];
    if (a.own && !stays && !(a.scale > 0 && a.scale * double(a.own->capacity) <= 2e9))
      return n;  // the operator tells it
    a.open = !is_local(*n, a, in[size_t(d)]);
    if (a.open && (!positions_are_known(*n, scales ? a.scale : 0) || (a.to && counts_.least(*a.to) < 0))) return n;
    axes.push_back(a);
  }
  std::vector<SizeForm> out = in;
  std::vector<int64_t> bounds;
  for (const ResizedAxis& a : axes) {
    const auto at = size_t(a.axis);
    const bool moves = a.own && !a.open && a.local.p != a.local.q && !repeats(*n, a.local);
    out[at] = a.to ? *a.to : a.own ? scaled(g, n, *a.own, a.scale) : in[at];
    if (a.to) bounds.push_back(a.own && !a.open ? a.own->capacity * a.local.p / a.local.q : counts_.bound(*a.to));
    if (moves) g.set_input(n, 0, filled(g, n, n->inputs[0], *a.own, "edge"));
  }
  if (!scales) g.set_input(n, 3, g.add_constant(derived(n->outputs.at(0)->name, "_sizes"), int64_constant(bounds)));
  give_axes(g, n, axes, in, out);
  note_sized(g, n, x, out);
  return n;
}

// Where positions depend on the size, the operator gets it.
void BoundedSizes::give_axes(Graph& g, Node* n, const std::vector<ResizedAxis>& axes, const std::vector<SizeForm>& in,
                             const std::vector<SizeForm>& out) {
  std::vector<int64_t> counted;
  for (const ResizedAxis& a : axes) {
    if (!a.open) continue;
    while (n->inputs.size() < size_t(kResizeCounts)) g.add_node_input(n, nullptr);
    const ModelText name = derived(n->outputs.at(0)->name, "_axis" + to_text(int64_t(a.axis)));
    counted.push_back(a.axis);
    g.add_node_input(n, number_of(g, n, in[size_t(a.axis)], derived(name, "_from")));
    g.add_node_input(n, number_of(g, n, out[size_t(a.axis)], derived(name, "_to")));
  }
  if (!counted.empty()) n->attrs[std::string(kCountedAxes)] = counted;
}

}  // namespace tc
