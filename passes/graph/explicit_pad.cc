// Gives padding a node of its own, so that the kernel before a convolution can write the border of its result and the
// convolution's loops need no tests.
//   y = Conv(x, w) {pads = [1, 1, 1, 1]}   ->   p = Pad(x, [0, 0, 1, 1, 0, 0, 1, 1])   y = Conv(p, w)
//   y = MaxPool(x) {pads = [1, 1, 1, 1]}   ->   the same with -infinity
//   y = QLinearConv(x, ..., zero, ...)     ->   the same with zero, which stands for 0; and ConvInteger
// Consumers of one value with equal pads share one Pad. What rounding up (ceil_mode) lets hang over the end of a
// MaxPool is padding too. A ConvTranspose reads zeros around its input wherever its kernel hangs over; its own pads,
// which cut the result, grow by as much:
//   y = ConvTranspose(x, w) {k = 4, stride 2, pads 1}   ->   p = Pad(x, 1)   y = ConvTranspose(p, w) {stride 2, pads 3}
// A convolution whose taps often lie above or below the image (far steps: "atrous" ones) keeps these pads: its loops end there.
// Taps that lie outside for every result are cut off the weights, or off the window of a MaxPool, on a GPU, too.
// Positions of maxima and averages that do not count the padding stay. So do pools of floats with the channels first:
// their template (templates/cpu/window_rows.cc) skips what lies outside, and nobody would write the border for it.
//
// Preconditions: sizes are known; no pad is negative; floats, for MaxPool also integers; the zero point of a convolution
// of integers is one number, known or not. MaxPool: no positions; AveragePool: it counts the padding and does not round
// up; no pools of f32 with the channels first. ConvTranspose: zeros only where the kernel hangs over, and none along an
// axis of one position; no weight that is known to be infinite.
//
// Not for a GPU: there, a thread asks for the border once per load, and a kernel that only pads is a launch.
// Needs: types; convert_layout before it, which then has fewer operators to move. Leaves: Conv and MaxPool without
// pads, and each ConvTranspose of floats without a position outside of its input.
#include <cmath>
#include <limits>
#include <map>

#include "ir/loop/build.h"
#include "ir/open_size.h"
#include "ir/ops/contraction.h"
#include "ir/ops/op.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

struct Pads {
  Dims begin, end;  // per spatial axis
  bool any() const {
    for (size_t d = 0; d < begin.size(); ++d)
      if (begin[d] != 0 || end[d] != 0) return true;
    return false;
  }
};

bool channels_last(const Node& n) { return n.attr_string("data_layout", "NCHW") == "NHWC"; }

Dims spatial_of(const Node& n, const Value* v) {
  const Dims d = dims_of(v);
  return channels_last(n) ? Dims(d.begin() + 1, d.end() - 1) : Dims(d.begin() + 2, d.end());
}

bool is_integer_conv(const Node& n) { return n.is("ConvInteger") || n.is("QLinearConv"); }

Dims kernel_of(const Node& n) {
  if (!n.is("Conv") && !n.is("ConvTranspose") && !is_integer_conv(n)) return n.attr_ints("kernel_shape");
  const Dims w = dims_of(n.inputs[n.is("QLinearConv") ? 3 : 1]);
  return Dims(w.begin() + 2, w.end());
}

/// What the windows reach beyond the input: derived from the sizes, so that auto_pad and ceil_mode are covered.
std::optional<Pads> pads_of(const Node& n) {
  const Dims in = spatial_of(n, n.inputs[0]), out = spatial_of(n, n.outputs[0]), kernel = kernel_of(n);
  const size_t rank = in.size();
  const Dims strides = numbers_of(n, "strides", rank, 1), dilations = numbers_of(n, "dilations", rank, 1);
  const std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  const Dims given = numbers_of(n, "pads", 2 * rank, 0);
  Pads p;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (out[d] - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1;
    const int64_t total = std::max<int64_t>(0, reach - in[d]);
    int64_t begin = given[d];
    if (auto_pad == "SAME_UPPER")
      begin = total / 2;
    else if (auto_pad == "SAME_LOWER")
      begin = total - total / 2;
    else if (auto_pad == "VALID")
      begin = 0;
    if (begin < 0 || given[rank + d] < 0) return std::nullopt;  // negative pads cut: rare enough to stay
    p.begin.push_back(begin);
    p.end.push_back(std::max<int64_t>(0, reach - in[d] - begin));
  }
  return p;
}

/// A ConvTranspose's input gets zeros so that every term of every result reads one of its positions.
struct Reach {
  Pads input;  // zeros around the input
  Dims cut;    // the new pads, begins and ends
};

Reach reach_of(const Node& n) {
  const Dims in = spatial_of(n, n.inputs[0]), out = spatial_of(n, n.outputs[0]), kernel = kernel_of(n);
  const size_t rank = in.size();
  const Dims strides = numbers_of(n, "strides", rank, 1), dilations = numbers_of(n, "dilations", rank, 1),
             given = numbers_of(n, "pads", 2 * rank, 0), more = numbers_of(n, "output_padding", rank, 0);
  const std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  const bool sized = !n.attr_ints("output_shape").empty() || auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  Reach r{{Dims(rank, 0), Dims(rank, 0)}, Dims(2 * rank)};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t s = strides[d], last = (kernel[d] - 1) * dilations[d];
    const int64_t full = s * (in[d] - 1) + more[d] + last + 1, total = std::max<int64_t>(0, full - out[d]);
    int64_t begin = auto_pad == "VALID" ? 0 : given[d];
    if (sized) begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    // A single position is known to be the only one: nothing reads beside it.
    if (in[d] > 1 || dilations[d] > 1) {
      const int64_t before = last - begin, behind = out[d] - 1 + begin - s * in[d];
      r.input.begin[d] = before > 0 ? before / s : 0;
      r.input.end[d] = behind >= 0 ? behind / s + 1 : 0;
    }
    r.cut[d] = begin + s * r.input.begin[d];
    r.cut[rank + d] = full + s * (r.input.begin[d] + r.input.end[d]) - r.cut[d] - out[d];
  }
  return r;
}

// What stands for 0 around the input of a convolution of integers; null: 0.
Value* zero_of(const Node& n) { return n.inputs.size() > 2 ? n.inputs[2] : nullptr; }

bool is_pool_by_rows(const Node& n) {
  return (n.is("MaxPool") || n.is("AveragePool")) && !channels_last(n) && n.inputs[0]->type.dtype == DType::F32;
}

bool is_candidate(const Node& n) {
  if (!n.domain.empty() || n.outputs.empty() || !n.outputs[0] || !n.outputs[0]->type.is_static_tensor()) return false;
  if (n.inputs.empty() || !n.inputs[0] || !n.inputs[0]->type.is_static_tensor()) return false;
  if (is_integer_conv(n)) {
    const Value* zero = zero_of(n);
    return is_int(n.inputs[0]->type.dtype) &&
           (!zero || (zero->type.is_static_tensor() && has_one_element(dims_of(zero))));
  }
  if (!is_float(n.inputs[0]->type.dtype) && !(n.is("MaxPool") && is_int(n.inputs[0]->type.dtype))) return false;
  if (is_pool_by_rows(n)) return false;
  if (n.is("MaxPool")) return n.outputs.size() < 2 || !n.outputs[1];
  if (n.is("AveragePool")) return n.attr_int("count_include_pad", 0) != 0 && n.attr_int("ceil_mode", 0) == 0;
  if (n.is("ConvTranspose") && has_infinite_weights(n.inputs[1]->constant)) return false;
  return (n.is("Conv") || n.is("ConvTranspose")) && n.inputs[1]->type.is_static_tensor();
}

/// "_pad1", "_pad0_1_2_1": two Pads of one value differ in their names.
std::string suffix_of(const Pads& p, bool infinite) {
  Dims all = p.begin;
  all.insert(all.end(), p.end.begin(), p.end.end());
  std::string s = "_pad" + to_text(all[0]);
  for (size_t i = 1; i < all.size(); ++i)
    if (!std::equal(all.begin() + 1, all.end(), all.begin())) s += "_" + to_text(all[i]);
  return s + (infinite ? "_inf" : "");
}

Value* padded(Graph& g, Node* n, const Pads& p, bool infinite) {
  Value* x = n->inputs[0];
  const Dims zero(channels_last(*n) ? 1 : 2, 0);
  std::vector<int64_t> list;
  for (const Dims* side : {&p.begin, &p.end}) {
    list.insert(list.end(), zero.begin(), zero.end());
    list.insert(list.end(), side->begin(), side->end());
    if (channels_last(*n)) list.push_back(0);
  }
  const ModelText name = derived(x->name, suffix_of(p, infinite));
  Value* pads = g.add_constant(derived(name, "_pads"), int64_constant(list));
  const DType t = x->type.dtype;
  const double least = is_int(t) ? double(*as_const_int(lowest(t))) : -std::numeric_limits<double>::infinity();
  Value* fill = is_integer_conv(*n) ? zero_of(*n) : nullptr;
  if (!fill) fill = g.add_constant(derived(name, "_value"), scalar_constant(t, infinite ? least : 0));
  return add_op(g, n, "Pad", {x, pads, fill}, name, {{"mode", std::string("constant")}});
}

/// For how many results along an axis tap k lies inside of the image.
int64_t results_inside(const Node& n, const Pads& p, size_t axis, int64_t k) {
  const int64_t in = spatial_of(n, n.inputs[0])[axis], out = spatial_of(n, n.outputs[0])[axis];
  const size_t rank = p.begin.size();
  const int64_t stride = numbers_of(n, "strides", rank, 1)[axis],
                at = k * numbers_of(n, "dilations", rank, 1)[axis] - p.begin[axis];  // of the first result
  const int64_t first = at < 0 ? (stride - 1 - at) / stride : 0;
  const int64_t behind = at < in ? std::min(out, (in - at + stride - 1) / stride) : 0;
  return std::max<int64_t>(0, behind - first);
}

/// Taps along an axis between which all lie that are inside of the image for some result: the first, and the number of them.
struct Taps {
  int64_t first = 0, count = 0;
};
Taps taps_inside(const Node& n, const Pads& p, size_t axis) {
  const int64_t in = spatial_of(n, n.inputs[0])[axis], out = spatial_of(n, n.outputs[0])[axis];
  const size_t rank = p.begin.size();
  const int64_t stride = numbers_of(n, "strides", rank, 1)[axis], dilation = numbers_of(n, "dilations", rank, 1)[axis];
  const int64_t short_of = p.begin[axis] - (out - 1) * stride;  // of the image, by tap 0 of the last result
  const int64_t first = short_of > 0 ? (short_of + dilation - 1) / dilation : 0;
  const int64_t last = std::min(kernel_of(n)[axis] - 1, (in - 1 + p.begin[axis]) / dilation);
  return {first, std::max<int64_t>(0, last - first + 1)};
}

/// The weights of these taps of each axis.
Value* weights_inside(Graph& g, Node* n, const std::vector<Taps>& taps) {
  Value* w = n->inputs[1];
  Dims begin, end, axes;
  for (size_t d = 0; d < taps.size(); ++d) {
    begin.push_back(taps[d].first);
    end.push_back(taps[d].first + taps[d].count);
    axes.push_back(int64_t(d) + 2);
  }
  const ModelText name = derived(w->name, "_inside");
  const auto list = [&](const std::string& suffix, const Dims& numbers) {
    return g.add_constant(derived(name, suffix), int64_constant(numbers));
  };
  return add_op(g, n, "Slice", {w, list("_begin", begin), list("_end", end), list("_axes", axes)}, name);
}

/// A convolution of floats with weights that are known to be finite, or a maximum.
bool may_lose_taps(const Node& n) {
  if (n.is("MaxPool")) return true;
  if (!n.is("Conv") || !is_float(n.inputs[0]->type.dtype) || n.inputs.size() < 2) return false;
  return n.inputs[1]->is_constant() && !has_infinite_weights(n.inputs[1]->constant);
}

/// What has first or last taps that lie outside for every result does without them: a convolution of 3 x 3 with steps of 36 on an image
/// of 32 x 32 is 1 x 1.
void cut_taps(Graph& g, Node* n) {
  const std::optional<Pads> p = may_lose_taps(*n) ? pads_of(*n) : std::nullopt;
  if (!p) return;
  const size_t rank = p->begin.size();
  const Dims kernel = kernel_of(*n), dilations = numbers_of(*n, "dilations", rank, 1);
  std::vector<Taps> taps;
  Dims counts(rank), pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const Taps t = taps_inside(*n, *p, d);
    taps.push_back(t);
    counts[d] = t.count;
    pads[d] = p->begin[d] - t.first * dilations[d];
    pads[rank + d] = p->end[d] - (kernel[d] - t.first - t.count) * dilations[d];
    if (t.count == 0 || pads[d] < 0 || pads[rank + d] < 0) return;
  }
  if (counts == kernel) return;
  if (n->is("Conv")) g.set_input(n, 1, weights_inside(g, n, taps));
  for (const char* old : {"auto_pad", "ceil_mode", "kernel_shape"}) n->attrs.erase(old);
  if (n->is("MaxPool")) n->attrs["kernel_shape"] = counts;
  n->attrs["pads"] = pads;
  n->fn = nullptr;
  const ValueType result = n->outputs[0]->type;
  infer_types(g, *n);
  check(n->outputs[0]->type == result, "explicit_pad changed the size of a result");
}

/// Weights, or what is left of them.
bool are_known(const Value* w) {
  const Value* all = w->producer && w->producer->is("Slice") ? w->producer->inputs[0] : w;
  return all->is_constant() && !has_infinite_weights(all->constant);
}

/// Of a convolution with far steps: is so much of its sums along an axis zeros, in percent, that its loops end there
/// (templates/cpu/contraction.h: TapRange)? Nobody stores these zeros then.
bool ends_along(const Node& n, const Pads& p, size_t axis, int64_t percent) {
  const int64_t out = spatial_of(n, n.outputs[0])[axis], taps = kernel_of(n)[axis];
  constexpr int64_t kMostTaps = 9;
  if (is_open(out) || taps > kMostTaps) return false;
  int64_t inside = 0;
  for (int64_t k = 0; k < taps; ++k) inside += results_inside(n, p, axis, k);
  return 100 * inside <= (100 - percent) * taps * out;
}

/// The pads that such a convolution keeps: those along rows cost a tile of results its shape.
Dims kept_pads(const Node& n, const Pads& p) {
  constexpr int64_t kLeastColumns = 8;
  Dims kept(4, 0);
  const Value* w = n.inputs[1];
  if (!n.is("Conv") || !channels_last(n) || p.begin.size() != 2 || n.attr_int("group", 1) != 1) return kept;
  const Dims out = spatial_of(n, n.outputs[0]), weights = dims_of(w);
  if (n.inputs[0]->type.dtype != DType::F32 || !are_known(w)) return kept;
  if (weights[0] < 16 || weights[1] < 8 || out[0] < 2 || out[1] < kLeastColumns) return kept;
  for (const size_t d : {size_t(0), size_t(1)})
    if (ends_along(n, p, d, d == 0 ? 10 : 15)) {
      kept[d] = p.begin[d];
      kept[2 + d] = p.end[d];
    }
  return kept;
}

void drop_pads(Node* n) {
  n->attrs.erase("pads");
  n->attrs.erase("auto_pad");
  n->attrs.erase("ceil_mode");
  n->fn = nullptr;
}

}  // namespace

void explicit_pad(Graph& g, PassContext& cx) {
  std::vector<Node*> nodes;
  for (const auto& n : g.nodes()) nodes.push_back(n.get());
  for (Node* n : nodes)
    if (is_candidate(*n)) cut_taps(g, n);
  if (!cx.target.padded_copies) return;
  std::map<std::pair<int, std::string>, Value*> made;  // by value and suffix; looked up only
  for (const auto& owned : g.nodes()) {
    Node* n = owned.get();
    for (const auto& r : n->regions) explicit_pad(*r, cx);
    if (!is_candidate(*n)) continue;
    const bool transposed = n->is("ConvTranspose");
    const auto reach = transposed ? std::optional(reach_of(*n)) : std::nullopt;
    std::optional<Pads> pads = transposed ? reach->input : pads_of(*n);
    if (!pads || !pads->any()) continue;
    const Dims kept = transposed || cx.options.strict_fp ? Dims(4, 0) : kept_pads(*n, *pads);
    for (size_t d = 0; d < 2; ++d)
      if (kept[d] + kept[2 + d] > 0) pads->begin[d] = pads->end[d] = 0;
    const ValueType result = n->outputs[0]->type;
    if (pads->any()) {
      const bool infinite = n->is("MaxPool");
      const Value* zero = is_integer_conv(*n) ? zero_of(*n) : nullptr;
      const std::string key =
          suffix_of(*pads, infinite) + (channels_last(*n) ? "l" : "f") + (zero ? to_text(int64_t(zero->id)) : "");
      Value*& p = made[{n->inputs[0]->id, key}];
      if (!p) p = padded(g, n, *pads, infinite);
      g.set_input(n, 0, p);
    }
    drop_pads(n);
    if (kept != Dims(4, 0)) n->attrs["pads"] = kept;
    if (transposed) {
      n->attrs["pads"] = reach->cut;
      n->attrs.erase("output_shape");
    }
    infer_types(g, *n);
    check(n->outputs[0]->type == result, "explicit_pad changed the size of a result");
  }
}

}  // namespace tc
