// Operators whose results lie along the axes of their operand, as many as a formula of its size says: Resize, Upsample, Pad,
// DepthToSpace, SpaceToDepth. Behind the counted elements stands what they read beyond an end.
//   y = Resize(x, , [1, 1, 2]) <mode = "linear">   x: [1, 3, n]   ->   y = Resize(x, the last element behind it), counted by 2 n
//   y = Pad(x, [0, 1, 0, 2])                       x: [1, n]      ->   y = Pad(zeros behind x), counted by n + 3
//
// Preconditions: scales are powers of two times whole numbers, or sizes have a constant ratio to the operand's; positions don't
// depend on the size (half_pixel, asymmetric, pytorch_half_pixel of more than one element), nor do weights (no antialias, no
// exclude_outside). Pads are constants; what is mirrored has enough elements; nothing is wrapped.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/op.h"
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
  if (!x || !is_counted(x) || !n->domain.empty()) return n;
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
  return n->is("Resize") || n->is("Upsample") ? resize(g, n) : n;
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
  if (!positions_are_local(*n) || (scales ? !scales->constant : !sizes_given)) return n;
  std::vector<SizeForm> out = in;
  std::vector<int64_t> bounds;
  std::vector<BoundedSize> read_behind;
  for (size_t k = 0; k < which.size(); k++) {
    const int64_t d = axis_from_front(which[k], x);
    if (d < 0 || d >= int64_t(in.size())) return n;
    const auto at = size_t(d);
    const auto to = scales ? std::nullopt : element(sizes_given, int64_t(k));
    if (!scales && !to) return n;
    const auto own = find(x, int(d));
    const auto r = !own     ? Ratio{}
                   : scales ? exact_ratio(scales->constant->as_double(int64_t(k)))
                            : ratio_of(*to, in[at]);
    const int64_t capacity = dims_of(x)[at];
    if (!r || (own && to && checked_mul(capacity, r->p) % r->q != 0) || (!own && to && !to->fixed())) return n;
    out[at] = to ? *to : own ? counts_.quotient(in[at] * r->p, r->q) : in[at];
    if (own && n->attr_string("coordinate_transformation_mode", "") == "pytorch_half_pixel" &&
        counts_.least(out[at]) < 2)
      return n;
    if (own && (r->p != 1 || r->q != 1) && !repeats(*n, *r)) read_behind.push_back(*own);
    if (to) bounds.push_back(own ? capacity * r->p / r->q : to->addend);
  }
  for (const BoundedSize& size : read_behind) g.set_input(n, 0, filled(g, n, n->inputs[0], size, "edge"));
  if (!scales) g.set_input(n, 3, g.add_constant(derived(n->outputs.at(0)->name, "_sizes"), int64_constant(bounds)));
  note_sized(g, n, x, out);
  return n;
}

Node* BoundedSizes::pad(Graph& g, Node* n) {
  Value* x = n->inputs[0];
  const std::string mode = n->attr_string("mode", "constant");
  const auto rank = size_t(rank_of(x));
  const auto pads = operand(*n, 1) ? ints_of(n->inputs[1]) : std::nullopt;
  auto axes = operand(*n, 3) ? ints_of(n->inputs[3]) : std::vector<int64_t>();
  if (!operand(*n, 3))
    for (size_t d = 0; d < rank; d++) axes->push_back(int64_t(d));
  if (!pads || !axes || pads->size() != 2 * axes->size()) return n;
  if (std::any_of(pads->begin(), pads->end(), [](int64_t p) { return p < INT32_MIN || p > INT32_MAX; })) return n;
  std::vector<int64_t> all(2 * rank, 0);  // of every axis
  for (size_t k = 0; k < axes->size(); k++) {
    const int64_t d = axis_from_front((*axes)[k], x);
    if (d < 0 || d >= int64_t(rank)) return n;
    all[size_t(d)] = (*pads)[k];
    all[size_t(d) + rank] = (*pads)[k + axes->size()];
  }
  std::vector<SizeForm> out = forms(x);
  const std::vector<BoundedSize> counted = sizes(x);
  for (const BoundedSize& size : counted) {
    const auto d = size_t(size.axis);
    const int64_t before = all[d], after = all[d + rank];
    if (mode == "wrap" && (before != 0 || after != 0)) return n;
    if (mode == "reflect" && counts_.least(out[d]) <= std::max(before, after)) return n;
    if (mode == "edge" && (before > 0 || after > 0) && counts_.least(out[d]) < 1) return n;
    out[d] = out[d] + fixed_size(before + after);
    if (counts_.least(out[d]) < 0) return n;
  }
  for (size_t d = 0; d < rank; d++)
    if (!find(x, int(d))) out[d] = fixed_size(0);  // the type has it
  for (const BoundedSize& size : counted) pad_end(g, n, size, all);
  const ModelText& name = n->outputs.at(0)->name;
  g.set_input(n, 1, g.add_constant(derived(name, "_pads"), int64_constant(all)));
  if (operand(*n, 3)) g.set_input(n, 3, nullptr);
  note_sized(g, n, x, out);
  return n;
}

// What Pad reads behind the last element, along one axis.
void BoundedSizes::pad_end(Graph& g, Node* n, const BoundedSize& size, std::vector<int64_t>& pads) {
  const size_t rank = pads.size() / 2, d = size_t(size.axis);
  const std::string mode = n->attr_string("mode", "constant");
  if (pads[d + rank] <= 0) return;
  Value *x = n->inputs[0], *number = mode == "constant" ? as_number(g, n, operand(*n, 2)) : nullptr;
  const ModelText name = derived(n->outputs.at(0)->name, "_axis" + to_text(int64_t(d)));
  if (mode == "reflect") {  // room for what is mirrored
    std::vector<int64_t> room(2 * rank, 0);
    std::swap(room[d + rank], pads[d + rank]);
    Value* wide =
        add_op(g, n, "Pad", {x, g.add_constant(derived(name, "_room"), int64_constant(room))}, derived(name, "_wide"));
    const std::vector<BoundedSize> all = sizes(x);
    for (const BoundedSize& s : all) note(wide, {s.axis, s.count, dims_of(wide)[size_t(s.axis)]});
    x = wide;
  }
  g.set_input(n, 0, filled(g, n, x, size, mode == "constant" ? "zero" : mode, number));
}

}  // namespace tc
