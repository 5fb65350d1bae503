// Windows that slide along an axis whose size is known at run time: what they read behind the counted elements is what padding
// gives, and they have as many places as fit.
//   y = Conv(x, w) <strides = [2], pads = [1, 1]>     x: [1, 3, n], w: [8, 3, 3]   ->
//       y = Conv(zeros behind x, w), counted by (n - 1) / 2 + 1
//   y = AveragePool(x) <pads = [1, 1]>                taps in the padding don't count   ->
//       y = AveragePool(zeros behind x) / AveragePool(zeros behind ones), both of which count all taps
//   y = Conv(x, w) <strides = [2], auto_pad = "SAME_UPPER">    whose padding t depends on n   ->
//       y = Conv(Pad(x, [t / 2, t - t / 2]), w) <strides = [2]>; of AveragePool divided by the same of ones
//   y = GlobalAveragePool(x)                          ->   y = ReduceMean(x, [2, 3])
//
// Preconditions: channels are not counted, nor is any operand but the first (a DeformConv's offsets and mask have its places); a
// window fits into the least input. Where auto_pad's padding depends on the size, no place is asked for. ConvTranspose has no
// output_shape.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

/// The axis where space begins: [N, C, spatial...].
constexpr size_t kSpace = 2;

/// Which operand holds the weights; 0: none, the kernel is an attribute.
size_t weights_of(const Node& n) {
  if (n.domain == "com.microsoft" && n.op == "FusedConv") return 1;
  if (n.is("Conv") || n.is("ConvInteger") || n.is("ConvTranspose") || n.is("DeformConv")) return 1;
  return n.is("QLinearConv") ? 3 : 0;
}

bool slides(const Node& n) {
  return weights_of(n) > 0 || n.is("MaxPool") || n.is("AveragePool") || n.is("LpPool") || n.is("MaxUnpool");
}

/// Has operand k numbers for each place of the window?
bool is_by_place(const Node& n, size_t k) { return n.is("DeformConv") && (k == 2 || k == 4); }

/// Does it give or take places in the image?
bool tells_places(const Node& n) {
  return n.is("MaxUnpool") || (n.is("MaxPool") && n.outputs.size() > 1 && n.outputs[1]);
}

}  // namespace

/// A window over the spatial axes.
struct SlidingWindow {
  Dims kernel, strides, dilations, begin, end;  // by spatial axis
  std::string auto_pad;
  bool ceil = false;
  bool same() const { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }
  int64_t extent(size_t d) const { return checked_add(checked_mul(kernel[d] - 1, dilations[d]), 1); }
  void pad(size_t d, int64_t total) {
    begin[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    end[d] = total - begin[d];
  }
};

namespace {

/// Nothing where attributes are wrong: who defines the operator says so.
std::optional<SlidingWindow> slide_of(const Node& n) {
  const size_t weights = weights_of(n), rank = size_t(rank_of(n.inputs[0])) - kSpace;
  SlidingWindow s;
  if (weights > 0) {
    const Dims dims = dims_of(n.inputs[weights]);
    if (dims.size() != rank + kSpace) return std::nullopt;
    s.kernel.assign(dims.begin() + kSpace, dims.end());
  } else {
    s.kernel = n.attr_ints("kernel_shape");
  }
  const auto of = [&](const char* name, size_t count, int64_t otherwise) {
    const Dims v = n.attr_ints(name);
    return v.empty() ? Dims(count, otherwise) : v;
  };
  s.strides = of("strides", rank, 1);
  s.dilations = of("dilations", rank, 1);
  s.auto_pad = n.attr_string("auto_pad", "NOTSET");
  Dims pads = of("pads", 2 * rank, 0);
  if (s.auto_pad == "VALID" || s.same()) pads.assign(2 * rank, 0);
  if (s.kernel.size() != rank || s.strides.size() != rank || s.dilations.size() != rank || pads.size() != 2 * rank)
    return std::nullopt;
  const auto within = [](const Dims& v, int64_t least) {
    return std::all_of(v.begin(), v.end(), [&](int64_t x) { return x >= least && x <= INT32_MAX; });
  };
  if (!within(s.kernel, 1) || !within(s.strides, 1) || !within(s.dilations, 1)) return std::nullopt;
  if (!within(pads, INT32_MIN) || !within(n.attr_ints("output_padding"), 0)) return std::nullopt;
  s.begin.assign(pads.begin(), pads.begin() + std::ptrdiff_t(rank));
  s.end.assign(pads.begin() + std::ptrdiff_t(rank), pads.end());
  s.ceil = n.attr_int("ceil_mode", 0) != 0 && !s.same();
  return s;
}

/// How many elements auto_pad adds along axis d of an input of `in` for a place at every `stride` of them; below 0: none.
SizeForm missing(Counts& counts, const SlidingWindow& s, size_t d, const SizeForm& in) {
  const SizeForm places = counts.quotient(in + fixed_size(s.strides[d] - 1), s.strides[d]);
  return (places - fixed_size(1)) * s.strides[d] + fixed_size(s.extent(d)) - in;
}

/// How many places a window has along axis d of an input of `in` elements; nothing where that is no form. Sets the pads that
/// auto_pad means.
std::optional<SizeForm> places(Counts& counts, SlidingWindow& s, size_t d, const SizeForm& in) {
  const int64_t stride = s.strides[d], extent = s.extent(d);
  if (s.same()) {
    const SizeForm total = missing(counts, s, d, in);
    if (!total.fixed()) return std::nullopt;
    s.pad(d, std::max<int64_t>(0, total.addend));
    return counts.quotient(in + fixed_size(stride - 1), stride);
  }
  const SizeForm span = in + fixed_size(s.begin[d] + s.end[d] - extent);
  if (counts.least(span) <= (s.ceil ? -stride : -1)) return std::nullopt;
  if (!s.ceil) return counts.quotient(span, stride) + fixed_size(1);
  // Rounded up, but the last window begins inside the input or its leading padding.
  if (s.end[d] >= extent) return std::nullopt;
  const int64_t up = s.begin[d] + s.end[d] - extent + stride - 1;
  return counts.quotient(in + fixed_size(std::min(up, s.begin[d] - 1)), stride) + fixed_size(1);
}

/// How many results a transposed window has, whose padding is the same for all sizes.
std::optional<SizeForm> reached(const SlidingWindow& s, const Node& n, size_t d, const SizeForm& in) {
  const Dims extra = n.attr_ints("output_padding");
  if (!n.attr_ints("output_shape").empty() || (!extra.empty() && extra.size() != s.kernel.size())) return std::nullopt;
  if (s.same()) return in * s.strides[d];
  return (in - fixed_size(1)) * s.strides[d] +
         fixed_size(s.extent(d) + (extra.empty() ? 0 : extra[d]) - s.begin[d] - s.end[d]);
}

Dims joined(Dims a, const Dims& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Attributes of an AveragePool with as many places as `n`, in which all taps count.
Attrs all_taps(const Node& n, const SlidingWindow& s) {
  Attrs attrs = n.attrs;
  attrs.erase("auto_pad");
  attrs.erase("ceil_mode");
  Dims end = s.end;
  const Dims in = dims_of(n.inputs[0]);
  for (size_t d = 0; d < end.size() && s.ceil; d++) {
    const int64_t room = in[d + kSpace] + s.begin[d] + s.end[d] - s.extent(d);
    const int64_t places = (room + s.strides[d]) / s.strides[d], over = room - (places - 1) * s.strides[d];
    if (over != 0 && places * s.strides[d] < in[d + kSpace] + s.begin[d]) end[d] += s.strides[d] - over;
  }
  attrs["pads"] = joined(s.begin, end);
  attrs["count_include_pad"] = int64_t(1);
  return attrs;
}

/// What no maximum is below.
Constant lowest_number(DType t) {
  if (is_float(t)) return scalar_constant(t, -std::numeric_limits<double>::infinity());
  return scalar_constant(t, is_signed_int(t) ? -std::ldexp(1.0, info(t).bits - 1) : 0);
}

}  // namespace

Node* BoundedSizes::slide(Graph& g, Node* n) {
  Value* x = n->inputs.empty() ? nullptr : n->inputs[0];
  if (!slides(*n) || !x || !is_counted(x) || find(x, 1) || n->attrs.count("data_layout")) return n;
  if (!along_space(sizes(x)) && !tells_places(*n)) return n;
  if (n->is("MaxUnpool")) return unpool(g, n);
  for (size_t k = 1; k < n->inputs.size(); k++)
    if (n->inputs[k] && !is_by_place(*n, k) && (is_counted(n->inputs[k]) || !n->inputs[k]->type.is_static_tensor()))
      return n;
  auto window = n->inputs.size() > weights_of(*n) ? slide_of(*n) : std::nullopt;
  if (!window) return n;
  if (window->same() && !n->is("ConvTranspose"))
    if (Node* padded = pad_same(g, n, *window)) return padded;
  const std::vector<SizeForm> in = forms(x);
  const auto out = sizes_behind(*n, *window);
  if (!out) return n;
  if (window->same() && !n->is("ConvTranspose")) {
    n->attrs.erase("auto_pad");
    n->attrs.erase("ceil_mode");
    n->attrs["pads"] = joined(window->begin, window->end);
  }
  const ModelText name = n->outputs.at(0)->name;
  Value* taps = n->is("AveragePool") ? average_taps(g, n, *window, *out) : nullptr;
  fill_space(g, n, *window);
  if (taps) {
    Value* all = add_op(g, n, "AveragePool", {n->inputs[0]}, derived(name, "_all"), all_taps(*n, *window));
    note_sized(g, all->producer, x, *out);
    Node* average = insert_for(g, *n, n, "Div", {all, taps}, {name});
    g.replace_uses(n->outputs[0], average->outputs[0]);
    g.erase(n);
    return average;
  }
  note_sized(g, n, x, *out);
  return n->is("MaxPool") && tells_places(*n) ? pool_places(g, n, in) : n;
}

Value* BoundedSizes::as_number(Graph& g, Node* before, Value* v) {
  if (!v || rank_of(v) == 0) return v;
  return add_op(g, before, "Reshape", {v, g.add_constant(derived(v->name, "_scalar"), int64_constant({}))},
                derived(v->name, "_number"));
}

// The sizes of the result, where they are forms. Sets the pads that auto_pad means. Throws Error TC0303 where a window may not fit.
std::optional<std::vector<SizeForm>> BoundedSizes::sizes_behind(const Node& n, SlidingWindow& s) {
  Value* x = n.inputs[0];
  std::vector<SizeForm> out = forms(x);
  for (size_t d = 0; d < s.kernel.size(); d++) {
    SizeForm& size = out[d + kSpace];
    const auto to = n.is("ConvTranspose") ? reached(s, n, d, size) : places(counts_, s, d, size);
    const int64_t least = counts_.least(size);
    if (!to && !s.same() && least + s.begin[d] + s.end[d] < s.extent(d))
      refuse_counted(n, x,
                     "a window of " + to_text(s.extent(d)) + " elements does not fit where a run has " +
                         to_text(least) + " along axis " + to_text(int64_t(d + kSpace)) +
                         ": let the range of the size begin later");
    if (!to || counts_.least(*to) < 0) return std::nullopt;
    size = *to;
  }
  for (size_t k = 1; k < n.inputs.size(); k++) {
    if (!n.inputs[k] || !is_by_place(n, k)) continue;
    std::vector<SizeForm> of_places = forms(n.inputs[k]);
    if (of_places.size() != out.size()) return std::nullopt;
    of_places[1] = out[1];
    if (find(n.inputs[k], 1) || of_places != out) return std::nullopt;
  }
  return out;
}

// Where the padding that auto_pad says depends on sizes, it is put around the operand, and the node loses its auto_pad. An average that
// counts no padding is divided by that of ones with the same padding. Null where it depends on none.
Node* BoundedSizes::pad_same(Graph& g, Node* n, SlidingWindow s) {
  Value* x = n->inputs[0];
  const std::vector<SizeForm> in = forms(x);
  std::vector<AxisPads> moving;
  for (size_t d = 0; d < s.kernel.size(); d++) {
    const SizeForm total = missing(counts_, s, d, in[d + kSpace]);
    if (total.fixed()) {
      s.pad(d, std::max<int64_t>(0, total.addend));
      continue;
    }
    const SizeForm least = counts_.least(total) < 0 ? counts_.larger(total, fixed_size(0)) : total;
    const SizeForm half = counts_.quotient(least, 2);
    const bool upper = s.auto_pad == "SAME_UPPER";
    moving.push_back({int(d + kSpace), upper ? half : least - half, upper ? least - half : half});
  }
  if (moving.empty() || tells_places(*n)) return nullptr;
  const ModelText name = n->outputs.at(0)->name;
  Attrs attrs = n->attrs;
  attrs.erase("auto_pad");
  attrs.erase("ceil_mode");
  attrs["pads"] = joined(s.begin, s.end);
  const bool average = n->is("AveragePool") && n->attr_int("count_include_pad", 0) == 0;
  if (average) attrs["count_include_pad"] = int64_t(1);
  Value* ones = average ? ones_inside(g, n, Dims(s.kernel.size(), 0)) : nullptr;
  if (average)
    for (const BoundedSize& size : std::vector<BoundedSize>(sizes(x)))
      if (size.axis >= int(kSpace)) note(ones, size);
  Value* number = number_in_padding(g, n);
  for (const AxisPads& p : moving) {
    x = pad_along(g, n, x, p, "constant", number);
    if (average) ones = pad_along(g, n, ones, p, "constant", nullptr);
  }
  if (!average) {
    n->attrs = attrs;
    g.set_input(n, 0, x);
    return slide(g, n);
  }
  Value* all = made(g, n, "AveragePool", {x}, derived(name, "_all"), attrs);
  Value* share = made(g, n, "AveragePool", {ones}, derived(name, "_share"), attrs);
  return replaced(g, n, made(g, n, "Div", {all, at_least_a_tap(g, n, share, s)}, name));
}

// The number that the padding holds; null: zero.
Value* BoundedSizes::number_in_padding(Graph& g, Node* n) {
  if (n->is("MaxPool"))
    return g.add_constant(derived(n->outputs.at(0)->name, "_lowest"), lowest_number(n->inputs[0]->type.dtype));
  const size_t zero_point = n->is("ConvInteger") || n->is("QLinearConv") ? 2 : 0;
  return zero_point > 0 ? as_number(g, n, operand(*n, zero_point)) : nullptr;
}

// What a window meets behind the last element: what it meets in the padding. Without padding it meets nothing.
void BoundedSizes::fill_space(Graph& g, Node* n, const SlidingWindow& s) {
  const std::string fill = n->is("MaxPool") ? "lowest" : "zero";
  Value* number = fill == "zero" ? number_in_padding(g, n) : nullptr;
  // Zeros in front of a DequantizeLinear: integers stay beside their product.
  Node* real = fill == "zero" ? made_by(n->inputs[0], "DequantizeLinear") : nullptr;
  if (real && !has_one_element(dims_of(real->inputs.at(1)))) real = nullptr;
  if (real && real->inputs.size() > 2) number = as_number(g, n, real->inputs[2]);
  Value* x = real ? real->inputs[0] : n->inputs[0];
  for (const BoundedSize& size : std::vector<BoundedSize>(sizes(n->inputs[0]))) {
    if (size.axis < int(kSpace)) continue;
    const bool inside =
        !n->is("ConvTranspose") && !n->is("DeformConv") && !s.ceil && s.end[size_t(size.axis) - kSpace] <= 0;
    if (!inside) x = filled(g, n, x, size, fill, number);
  }
  if (real && x != real->inputs[0]) {
    std::vector<Value*> operands = real->inputs;
    operands[0] = x;
    x = made(g, n, "DequantizeLinear", operands, derived(n->inputs[0]->name, "_filled"), real->attrs);
  }
  if (!real || x != real->inputs[0]) g.set_input(n, 0, x);
}

// Ones, [1, 1, spatial...], where the input has elements or one of `padding` more by spatial axis; zeros behind them.
Value* BoundedSizes::ones_inside(Graph& g, Node* n, const Dims& padding) {
  Value* x = n->inputs[0];
  const ModelText name = derived(n->outputs.at(0)->name, "_taps");
  const std::vector<SizeForm> in = forms(x);
  Dims dims = {1, 1};
  for (size_t d = 0; d < padding.size(); d++) dims.push_back(dims_of(x)[d + kSpace] + padding[d]);
  Value* one = g.add_constant(derived(name, "_one"), scalar_constant(x->type.dtype, 1));
  Value* ones = add_op(g, n, "Expand", {one, g.add_constant(derived(name, "_shape"), int64_constant(dims))},
                       derived(name, "_ones"));
  for (size_t d = kSpace; d < dims.size(); d++) {
    const SizeForm size = in[d] + fixed_size(padding[d - kSpace]);
    if (size.fixed()) continue;
    const std::string suffix = "_size" + to_text(int64_t(d));
    const BoundedSize counted = {int(d), counts_.value_of(g, n, size, derived(name, suffix)), dims[d]};
    ones = filled(g, n, ones, counted, "zero");
  }
  return ones;
}

// What lies behind the last result has no taps; it has to be finite.
Value* BoundedSizes::at_least_a_tap(Graph& g, Node* n, Value* share, const SlidingWindow& s) {
  const ModelText name = derived(n->outputs.at(0)->name, "_taps");
  const DType t = n->inputs[0]->type.dtype;
  Value* least = g.add_constant(derived(name, "_least"), scalar_constant(t, 0.5 / double(num_elements(s.kernel))));
  return made(g, n, "Max", {share, least}, name);
}

// The share of the taps that count, [1, 1, spatial...]: the average of ones where the input has elements (or padding that counts),
// zeros elsewhere. Null where all taps count everywhere.
Value* BoundedSizes::average_taps(Graph& g, Node* n, const SlidingWindow& s, std::vector<SizeForm> out) {
  const bool padding_counts = n->attr_int("count_include_pad", 0) != 0;
  const bool padded = joined(s.begin, s.end) != Dims(2 * s.kernel.size(), 0);
  if (!s.ceil && (padding_counts || !padded)) return nullptr;
  Value* x = n->inputs[0];
  Dims padding(s.kernel.size(), 0);
  for (size_t d = 0; d < s.kernel.size() && padding_counts; d++) padding[d] = s.begin[d] + s.end[d];
  Value* ones = ones_inside(g, n, padding);
  Attrs attrs = all_taps(*n, s);
  if (padding_counts) {
    Dims pads = std::get<std::vector<int64_t>>(attrs.at("pads"));
    for (size_t d = 0; d < s.kernel.size(); d++) {
      pads[d] = 0;
      pads[d + s.kernel.size()] -= s.end[d];
    }
    attrs["pads"] = pads;
  }
  const ModelText name = derived(n->outputs.at(0)->name, "_taps_share");
  Value* share = add_op(g, n, "AveragePool", {ones}, name, attrs);
  out[0] = out[1] = fixed_size(1);
  note_sized(g, share->producer, x, out);
  return at_least_a_tap(g, n, share, s);
}

}  // namespace tc
