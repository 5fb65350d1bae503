// Operators of com.microsoft that stand for a few of ONNX: those with channels last, what diffusion models are fused
// into, forms from before ONNX had them, and a quantised LSTM. Each is rewritten by ONNX Runtime's documentation of its
// contrib operators; transpositions that meet vanish later.
#include "ir/ops/expansion.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// Channels from the last axis to the second, and back.
Value* channels_first(const Expansion& e, Value* x, const std::string& suffix) {
  const int64_t rank = int64_t(dims_of_type(x).size());
  if (rank < 3) e.reject("at least three axes are needed");
  std::vector<int64_t> perm = {0, rank - 1};
  for (int64_t k = 1; k + 1 < rank; k++) perm.push_back(k);
  return e.transpose(x, perm, suffix);
}
Value* channels_last(const Expansion& e, Value* x, const std::string& suffix) {
  const int64_t rank = int64_t(dims_of_type(x).size());
  std::vector<int64_t> perm = {0};
  for (int64_t k = 2; k < rank; k++) perm.push_back(k);
  perm.push_back(1);
  return e.transpose(x, perm, suffix);
}

const std::vector<std::string> kWindow = {"kernel_shape", "pads", "strides", "dilations", "auto_pad", "group"};

/// The weights of NhwcConv have their channels last, as ONNX Runtime's optimiser writes them (fusion_nhwc_conv.py): [M, kH, kW, C]. Those of
/// NhwcFusedConv are as in Conv.
bool convolve_channels_last(Graph& g, Node* n, bool weights_too) {
  const Expansion e(g, n);
  Attrs attrs = e.attrs_named(kWindow);
  const Attrs fused = e.attrs_named({"activation", "activation_params"});
  attrs.insert(fused.begin(), fused.end());
  Value* z = e.optional(3);
  if (z) z = channels_first(e, z, "_addend");
  Value* w = weights_too ? channels_first(e, e.in(1), "_w") : e.in(1);
  Value* y =
      e.op("FusedConv", {channels_first(e, e.in(0), "_x"), w, e.optional(2), z}, "_conv", attrs, "com.microsoft");
  e.finish(0, channels_last(e, y, ""));
  return true;
}
bool expand_nhwc_conv(Graph& g, Node* n) { return convolve_channels_last(g, n, true); }
bool expand_nhwc_fused_conv(Graph& g, Node* n) { return convolve_channels_last(g, n, false); }

bool expand_nhwc_max_pool(Graph& g, Node* n) {
  const Expansion e(g, n);
  Attrs attrs = e.attrs_named({"kernel_shape", "pads", "strides", "dilations", "auto_pad", "ceil_mode"});
  e.finish(0, channels_last(e, e.op("MaxPool", {channels_first(e, e.in(0), "_x")}, "_pool", attrs), ""));
  return true;
}

bool expand_qlinear_conv(Graph& g, Node* n) {
  const Expansion e(g, n);
  const bool last = e.attr_int("channels_last") != 0;
  std::vector<Value*> in = {last ? channels_first(e, e.in(0), "_x") : e.in(0)};
  for (size_t k = 1; k < n->inputs.size(); k++) in.push_back(e.optional(k));
  Value* y = e.op("QLinearConv", in, last ? "_conv" : "", e.attrs_named(kWindow));
  e.finish(0, last ? channels_last(e, y, "") : y);
  return true;
}

/// Groups are normalised, then x * sigmoid(x) with activation = 1.
Value* group_norm(const Expansion& e, Value* x) {
  const bool last = e.attr_int("channels_last") != 0;
  const DType t = x->type.dtype;
  const auto parameter = [&](size_t k, const char* suffix) {
    return e.in(k)->type.dtype == t ? e.in(k) : e.op("CastLike", {e.in(k), x}, suffix);
  };
  const Attrs attrs = {{"num_groups", e.attr_int("groups")}, {"epsilon", e.attr_float("epsilon")}};
  Value* y =
      e.op("GroupNormalization", {last ? channels_first(e, x, "_x") : x, parameter(1, "_gamma"), parameter(2, "_beta")},
           "_norm", attrs);
  const int64_t activation = e.attr_int("activation");
  if (activation != 0 && activation != 1) e.unsupported("this activation");
  if (activation == 1) y = e.op("Swish", {y}, "_swish");
  return last ? channels_last(e, y, "_y") : y;
}

bool expand_group_norm(Graph& g, Node* n) {
  const Expansion e(g, n);
  e.finish(0, group_norm(e, e.in(0)));
  return true;
}

/// x, gamma, beta, skip, bias: the sum of x, skip and bias is normalised, and is the second output.
bool expand_skip_group_norm(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value *x = e.in(0), *skip = e.in(3);
  const bool last = e.attr_int("channels_last") != 0;
  const auto spread = [&](Value* v, const std::string& suffix) {  // [channels] or [batch, channels] to four axes
    Dims d = dims_of_type(v);
    if (d.size() == 1) d.insert(d.begin(), 1);
    if (d.size() == 2) d = last ? Dims{d[0], 1, 1, d[1]} : Dims{d[0], d[1], 1, 1};
    return e.reshape(v, d, suffix);
  };
  Value* sum = e.op("Add", {x, spread(skip, "_skip")}, "_sum");
  if (Value* bias = e.optional(4)) sum = e.op("Add", {sum, spread(bias, "_bias")}, "_biased");
  if (e.wants(1)) e.finish(1, sum);
  e.finish(0, group_norm(e, sum));
  return true;
}

/// (x + bias) in two halves along the last axis: the left one by gelu of the right one.
bool expand_bias_split_gelu(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.op("Add", {e.in(0), e.in(1)}, "_biased");
  const Dims d = dims_of_type(x);
  if (d.empty() || d.back() % 2 != 0) e.reject("the last axis must have an even size");
  const int64_t last = int64_t(d.size()) - 1, half = d.back() / 2;
  Value* gate = e.op("Gelu", {e.slice(x, last, half, d.back(), "_right")}, "_gelu");
  e.finish(0, e.op("Mul", {e.slice(x, last, 0, half, "_left"), gate}, ""));
  return true;
}

/// x + bias + skip, and dropout of ONNX Runtime's training, which does nothing here: data, bias, residual.
bool expand_bias_add(Graph& g, Node* n) {
  const Expansion e(g, n);
  if (e.wants(1)) e.unsupported("the mask as an output");
  Value* addend = e.optional(2);
  Value* sum = e.op("Add", {e.in(0), e.in(1)}, addend ? "_biased" : "");
  e.finish(0, addend ? e.op("Add", {sum, addend}, "") : sum);
  return true;
}

/// softmax(x + bias) over all axes from `axis` on.
bool expand_bias_softmax(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* sum = e.op("Add", {e.in(0), e.in(1)}, "_biased");
  const Dims d = dims_of_type(sum);
  int64_t axis = e.attr_int("axis");
  if (axis < 0) axis += int64_t(d.size());
  if (axis < 0 || axis >= int64_t(d.size())) e.reject("the axis is out of range");
  const int64_t rows = num_elements(Dims(d.begin(), d.begin() + axis)),
                width = num_elements(Dims(d.begin() + axis, d.end()));
  const bool flat = axis + 1 < int64_t(d.size());
  Value* y =
      e.op("Softmax", {flat ? e.reshape(sum, {rows, width}, "_rows") : sum}, "_softmax", {{"axis", int64_t(-1)}});
  e.finish(0, flat ? e.reshape(y, d, "_shaped") : y);
  return true;
}

bool expand_dims(Graph& g, Node* n) {
  const Expansion e(g, n);
  if (!e.in(1)->constant) e.unsupported("an axis that is not known while compiling");
  e.finish(0, e.unsqueeze(e.in(0), {e.in(1)->constant->as_int(0)}, ""));
  return true;
}

/// An operator that ONNX has by now under the same name, with the attributes of the row.
bool expand_to_same_name(Graph& g, Node* n) {
  const Expansion e(g, n);
  std::vector<Value*> in;
  for (size_t k = 0; k < n->inputs.size(); k++) in.push_back(e.optional(k));
  Attrs attrs;
  for (const AttrSpec& a : find_op(n->domain, n->op)->attrs)
    if (e.has(a.name)) attrs[a.name] = n->attrs.at(a.name);
  if (n->op == "GridSample" && e.attr_string("mode") == "bilinear") attrs["mode"] = std::string("linear");
  if (n->op == "GridSample" && e.attr_string("mode") == "bicubic") attrs["mode"] = std::string("cubic");
  e.finish(0, e.op(n->op, in, "", attrs));
  return true;
}

/// Distances between the rows of a [m, k] and b [n, k].
bool expand_cdist(Graph& g, Node* n) {
  const Expansion e(g, n);
  const std::string metric = e.attr_string("metric");
  if (metric != "euclidean" && metric != "sqeuclidean") e.unsupported("metric \"" + printable(metric) + "\"");
  Value* gap = e.op("Sub", {e.unsqueeze(e.in(0), {1}, "_rows"), e.unsqueeze(e.in(1), {0}, "_columns")}, "_gap");
  const std::string reduce = metric == "euclidean" ? "ReduceL2" : "ReduceSumSquare";
  e.finish(0, e.op(reduce, {gap, e.constant(int64_constant({2}), "_axis")}, "", {{"keepdims", int64_t(0)}}));
  return true;
}

/// The LSTM of the weights' real values. ONNX Runtime rounds the input and the state to 8 bits on the way, too; this
/// does not. Weights are [directions, inputs, 4 * hidden_size], scales and zero points one a direction or one a column.
bool expand_dynamic_quantize_lstm(Graph& g, Node* n) {
  const Expansion e(g, n);
  const auto real = [&](size_t weights, size_t scales, const std::string& suffix) {
    Value* w = e.in(weights);
    const Dims d = dims_of_type(w);
    const auto spread = [&](Value* p, const std::string& name) {
      const Dims s = dims_of_type(p);
      if (d.size() != 3 || (s != Dims{d[0]} && s != Dims{d[0], d[2]}))
        e.reject("the scales and zero points do not fit the weights");
      return e.reshape(p, {d[0], 1, s.size() == 2 ? s[1] : 1}, suffix + name);
    };
    Value* v = e.cast(DType::F32, w, suffix + "_numbers");
    if (Value* zero = e.optional(scales + 1))
      v = e.op("Sub", {v, e.cast(DType::F32, spread(zero, "_zero"), suffix + "_zero_number")}, suffix + "_centred");
    return e.transpose(e.op("Mul", {v, spread(e.in(scales), "_scale")}, suffix + "_real"), {0, 2, 1}, suffix);
  };
  std::vector<Value*> in = {e.in(0), real(1, 8, "_w"), real(2, 10, "_r")};
  for (size_t k = 3; k < 8; k++) in.push_back(e.optional(k));
  const Attrs attrs = e.attrs_named(
      {"activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "input_forget"});
  Node* lstm = e.node_of("LSTM", in, 3, "_lstm", attrs);
  for (size_t k = 0; k < 3; k++)
    if (e.wants(k)) e.finish(k, lstm->outputs[k]);
  return true;
}

}  // namespace

OpFamily microsoft_layout_ops() {
  const auto row = [](std::string_view name, std::vector<AttrSpec> attrs, bool (*expand)(Graph&, Node*)) {
    return expanding_row("com.microsoft", name, 1, std::move(attrs), expand);
  };
  const std::vector<AttrSpec> window = {optional_attr("kernel_shape"), optional_attr("pads"), optional_attr("strides"),
                                        optional_attr("dilations"), string_attr("auto_pad", "NOTSET")};
  const auto with = [](std::vector<AttrSpec> attrs, const std::vector<AttrSpec>& more) {
    attrs.insert(attrs.end(), more.begin(), more.end());
    return attrs;
  };
  const AttrSpec group = int_attr("group", 1);
  const std::vector<AttrSpec> norm = {float_attr("epsilon", 1e-5f), optional_attr("groups"),
                                      optional_attr("activation"), int_attr("channels_last", 1)};
  const std::vector<AttrSpec> lstm = {optional_attr("activation_alpha"),   optional_attr("activation_beta"),
                                      optional_attr("activations"),        optional_attr("clip"),
                                      string_attr("direction", "forward"), optional_attr("hidden_size"),
                                      int_attr("input_forget", 0)};
  return {
      row("NhwcConv", with(window, {group}), expand_nhwc_conv),
      row("NhwcFusedConv", with(window, {group, optional_attr("activation"), optional_attr("activation_params")}),
          expand_nhwc_fused_conv),
      row("NhwcMaxPool", with(window, {int_attr("ceil_mode", 0)}), expand_nhwc_max_pool),
      row("QLinearConv", with(window, {group, int_attr("channels_last", 0)}), expand_qlinear_conv),
      row("GroupNorm", norm, expand_group_norm),
      row("SkipGroupNorm", norm, expand_skip_group_norm),
      row("BiasSplitGelu", {}, expand_bias_split_gelu),
      row("BiasAdd", {}, expand_bias_add),
      row("BiasDropout", {}, expand_bias_add),
      row("BiasSoftmax", {int_attr("axis", 1), optional_attr("is_inner_broadcast")}, expand_bias_softmax),
      row("ExpandDims", {}, expand_dims),
      row("Trilu", {int_attr("upper", 1)}, expand_to_same_name),
      row("Pad", {string_attr("mode", "constant")}, expand_to_same_name),
      row("GatherND", {}, expand_to_same_name),
      row("GridSample",
          {int_attr("align_corners", 0), string_attr("mode", "bilinear"), string_attr("padding_mode", "zeros")},
          expand_to_same_name),
      row("CDist", {string_attr("metric", "sqeuclidean")}, expand_cdist),
      row("DynamicQuantizeLSTM", lstm, expand_dynamic_quantize_lstm),
  };
}

}  // namespace tc
