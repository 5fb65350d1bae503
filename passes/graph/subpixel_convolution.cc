// Makes a transposed convolution a convolution of its input, each of whose channels is a subpixel of the result, on a GPU.
//   y = ConvTranspose(x, w) {k = 4, strides 2, pads 1}   ->   c = Conv(x, v) {k = 2, pads 1}     v: 4 channels for each of w
//                                                             y = Slice(depth to space of c)     from 1 on
// Results that lie `strides` apart take the same taps of the kernel, every strides-th of them. All of them are computed for each
// result otherwise, though only one in strides falls on an element: in two axes of stride 2, three of four products are of zeros.
// (Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.)
//
// With q = o + begin, q = Q * s + r, and the taps t = r + j * s of subpixel r:
//   y[o] = sum(j) x[Q - j] * w[r + j * s]      a kernel of ceil(k / s) taps, from the last to the first
// Where k is no multiple of s, some subpixels have a tap less, and a zero in its place.
//
// Preconditions: constant finite weights and a constant bias or none, pads that are given, no dilations, as many products saved as
// the copy to its place costs. Zeros among the weights only without --fp strict: a product of zero and infinity is none. On C,
// templates/cpu/subpixel.cc does this without a copy.
//
// Needs: folded constants, channels first. Leaves: Conv, Reshape, Transpose and Slice.
#include "ir/ops/contraction.h"
#include "ir/ops/numeric.h"
#include "ir/ops/op.h"
#include "passes/graph/match.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr int64_t kCopy = 64;  // multiplications that writing a result and moving it to its place cost

struct Transposed {
  Dims kernel, strides, begin;  // per spatial axis
  Dims taps, positions, out;    // of the convolution: its kernel, its results; of the transposed one: its results
  int64_t channels = 0, results = 0, groups = 1;  // of the input, of the result of a group
  size_t rank() const { return kernel.size(); }
};

bool has_plain_pads(const Node& n) {
  const std::string automatic = n.attr_string("auto_pad", "NOTSET");
  if (!n.attr_ints("output_shape").empty() || (automatic != "NOTSET" && automatic != "VALID")) return false;
  const Dims pads = n.attr_ints("pads");
  return std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p >= 0; });
}

bool has_known_weights(const Node& n) {
  const Value *w = n.inputs[1], *b = n.inputs.size() > 2 ? n.inputs[2] : nullptr;
  return w->constant && is_float(w->type.dtype) && !has_infinite_weights(w->constant) && (!b || b->constant);
}

std::optional<Transposed> match(const Node& n, bool strict) {
  if (!n.is("ConvTranspose") || !has_known_weights(n) || !has_plain_pads(n)) return {};
  if (!n.inputs[0]->type.is_static_tensor() || !n.outputs[0]->type.is_static_tensor()) return {};
  const Dims w = dims_of(n.inputs[1]), y = dims_of(n.outputs[0]);
  Transposed t;
  t.kernel = Dims(w.begin() + 2, w.end());
  t.strides = numbers_of(n, "strides", t.rank(), 1);
  t.out = Dims(y.begin() + 2, y.end());
  t.groups = n.attr_int("group", 1);
  t.channels = w[0], t.results = w[1];
  if (numbers_of(n, "dilations", t.rank(), 1) != Dims(t.rank(), 1) || num_elements(w) == 0 || num_elements(y) == 0)
    return {};
  const Dims pads =
      n.attr_string("auto_pad", "NOTSET") == "VALID" ? Dims(2 * t.rank(), 0) : numbers_of(n, "pads", 2 * t.rank(), 0);
  for (size_t d = 0; d < t.rank(); d++) {
    const int64_t k = t.kernel[d], s = t.strides[d];
    if (k % s != 0 && strict) return {};
    t.begin.push_back(pads[d]);
    t.taps.push_back(ceil_quotient(k, s));
    t.positions.push_back(ceil_quotient(t.out[d] + pads[d] % s, s));
  }
  const int64_t saved = num_elements(t.kernel) - num_elements(t.taps);
  return t.channels / t.groups * saved >= kCopy ? std::optional(t) : std::nullopt;
}

/// The next point of a box, in row-major order; false behind the last.
bool advance(Dims& at, const Dims& extents) {
  for (size_t d = extents.size(); d-- > 0; at[d] = 0)
    if (++at[d] < extents[d]) return true;
  return false;
}

int64_t offset_in(const Dims& at, const Dims& extents) {
  int64_t o = 0;
  for (size_t d = 0; d < extents.size(); d++) o = o * extents[d] + at[d];
  return o;
}

/// The channel of the convolution for a result's channel and a subpixel: with the channels last, neighbours are of one subpixel, and
/// the copy to its place moves them side by side. The results of a group are those of its own channels.
int64_t channel_of(const Transposed& t, int64_t result, int64_t subpixel) {
  return t.groups == 1 ? subpixel * t.results + result : result * num_elements(t.strides) + subpixel;
}

/// [channels, results, kernel]   ->   [results and subpixels, channels of a group, taps]
Constant subpixel_weights(const Transposed& t, const Constant& w) {
  const size_t size = size_t(info(w->dtype).bytes);
  const int64_t inside = t.channels / t.groups, taps = num_elements(t.taps);
  Dims dims = {t.groups * t.results * num_elements(t.strides), inside};
  dims.insert(dims.end(), t.taps.begin(), t.taps.end());
  MutableTensor v = new_tensor(w->dtype, dims);
  Dims sub(t.rank(), 0);
  do {
    Dims u(t.rank(), 0);
    do {
      Dims tap(t.rank());  // of the kernel
      bool exists = true;
      for (size_t d = 0; d < t.rank(); d++) {
        tap[d] = sub[d] + (t.taps[d] - 1 - u[d]) * t.strides[d];
        exists = exists && tap[d] < t.kernel[d];
      }
      if (!exists) continue;
      const int64_t tap_at = offset_in(tap, t.kernel), sub_at = offset_in(sub, t.strides), u_at = offset_in(u, t.taps);
      for (int64_t c = 0; c < t.channels; c++)
        for (int64_t m = 0; m < t.results; m++) {
          const int64_t from = (c * t.results + m) * num_elements(t.kernel) + tap_at;
          const int64_t result = channel_of(t, c / inside * t.results + m, sub_at);
          const int64_t to = (result * inside + c % inside) * taps + u_at;
          std::copy_n(w->bytes.get() + size_t(from) * size, size, v.bytes + size_t(to) * size);
        }
    } while (advance(u, t.taps));
  } while (advance(sub, t.strides));
  return std::make_shared<const TensorData>(std::move(v.data));
}

/// An element for each channel of the convolution.
Constant repeated(const Transposed& t, const Constant& b) {
  const size_t size = size_t(info(b->dtype).bytes);
  const int64_t subpixels = num_elements(t.strides);
  MutableTensor v = new_tensor(b->dtype, {b->size() * subpixels});
  for (int64_t m = 0; m < b->size(); m++)
    for (int64_t r = 0; r < subpixels; r++)
      std::copy_n(b->bytes.get() + size_t(m) * size, size, v.bytes + size_t(channel_of(t, m, r)) * size);
  return std::make_shared<const TensorData>(std::move(v.data));
}

/// Where the convolution begins and ends: result 0 is that of q = begin rounded down to a subpixel 0.
Dims pads_of(const Transposed& t, const Dims& in) {
  Dims begin, end;
  for (size_t d = 0; d < t.rank(); d++) {
    begin.push_back(t.taps[d] - 1 - t.begin[d] / t.strides[d]);
    end.push_back(t.positions[d] - in[d] + t.taps[d] - 1 - begin[d]);
  }
  begin.insert(begin.end(), end.begin(), end.end());
  return begin;
}

class Rewrite {
 public:
  Rewrite(Graph& g, Node* n, const Transposed& t) : g_(g), n_(n), t_(t) {}

  /// Nothing where the convolution would have to leave out a part of its input.
  void run() {
    const Dims x = dims_of(n_->inputs[0]), pads = pads_of(t_, Dims(x.begin() + 2, x.end()));
    if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; })) return;
    std::vector<Value*> in = {n_->inputs[0],
                              constant("_subpixels", subpixel_weights(t_, n_->inputs[1]->constant), n_->inputs[1])};
    if (n_->inputs.size() > 2 && n_->inputs[2])
      in.push_back(constant("_subpixels", repeated(t_, n_->inputs[2]->constant), n_->inputs[2]));
    const Value* y = n_->outputs[0];
    Value* c = add_op(g_, n_, "Conv", in, derived(y->name, "_subpixels"), {{"group", t_.groups}, {"pads", pads}});
    replace_node(g_, n_, in_place(c));
  }

 private:
  Value* constant(const char* suffix, const Constant& c, const Value* of) {
    return g_.add_constant(derived(of->name, suffix), c);
  }
  Value* numbers(const std::string& suffix, const Dims& list) {
    return g_.add_constant(derived(n_->outputs[0]->name, suffix), int64_constant(list));
  }

  /// [n, channels, positions]   ->   [n, results, positions and subpixels in turn]
  Value* in_turn(Value* c) {
    const ModelText& name = n_->outputs[0]->name;
    const bool first = t_.groups == 1;  // the subpixels, before the results
    if (t_.rank() == 2 && t_.strides[0] == t_.strides[1])
      return add_op(g_, n_, "DepthToSpace", {c}, derived(name, "_whole"),
                    {{"blocksize", t_.strides[0]}, {"mode", std::string(first ? "DCR" : "CRD")}});
    const int64_t results = t_.groups * t_.results, rank = int64_t(t_.rank());
    Dims apart = {0}, whole = {0, results}, perm = {0, first ? rank + 1 : 1};  // 0: as it is
    if (!first) apart.push_back(results);
    apart.insert(apart.end(), t_.strides.begin(), t_.strides.end());
    if (first) apart.push_back(results);
    apart.insert(apart.end(), t_.positions.begin(), t_.positions.end());
    for (int64_t d = 0; d < rank; d++) {
      perm.insert(perm.end(), {rank + 2 + d, (first ? 1 : 2) + d});
      whole.push_back(t_.positions[size_t(d)] * t_.strides[size_t(d)]);
    }
    Value* v = add_op(g_, n_, "Reshape", {c, numbers("_apart_shape", apart)}, derived(name, "_apart"));
    v = add_op(g_, n_, "Transpose", {v}, derived(name, "_in_turn"), {{"perm", perm}});
    return add_op(g_, n_, "Reshape", {v, numbers("_whole_shape", whole)}, derived(name, "_whole"));
  }

  /// Of the results that the subpixels have together, those that are asked for.
  Value* in_place(Value* c) {
    Value* v = in_turn(c);
    Dims from, to, axes;
    bool cut = false;
    for (size_t d = 0; d < t_.rank(); d++) {
      from.push_back(t_.begin[d] % t_.strides[d]);
      to.push_back(from[d] + t_.out[d]);
      axes.push_back(int64_t(2 + d));
      cut = cut || t_.out[d] != t_.positions[d] * t_.strides[d];
    }
    if (!cut) return v;
    return add_op(g_, n_, "Slice", {v, numbers("_from", from), numbers("_to", to), numbers("_axes", axes)},
                  derived(n_->outputs[0]->name, "_cut"));
  }

  Graph& g_;
  Node* n_;
  const Transposed& t_;
};

}  // namespace

void subpixel_convolution(Graph& g, PassContext& cx) {
  if (!cx.target.device_memory) return;
  std::vector<Node*> nodes;
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) subpixel_convolution(*r, cx);
    nodes.push_back(n.get());
  }
  for (Node* n : nodes)
    if (const auto t = match(*n, cx.options.strict_fp)) Rewrite(g, n, *t).run();
  g.drop_unused_constants();
}

}  // namespace tc
