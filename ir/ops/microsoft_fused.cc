// Operators of com.microsoft that stand for several of ONNX's: what ONNX Runtime's optimiser for transformers writes.
// Each is rewritten into those, by ONNX Runtime's documentation of its contrib operators.
#include <algorithm>

#include "ir/ops/expansion.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// Which of the keys 0, 1, ... there are, [B, keys], from where those of each batch end [B], or end and begin [2B].
Value* mask_of_places(const Expansion& e, Value* places, int64_t batch, int64_t keys) {
  Value* position = e.counted({1, keys}, "_places");
  Value* ends = e.cast(DType::I64, places, "_lengths");
  Value* begins = dims_of_type(places) == Dims{batch} ? nullptr : e.slice(ends, 0, batch, 2 * batch, "_begins");
  if (begins) ends = e.slice(ends, 0, 0, batch, "_ends");
  Value* mask = e.op("Less", {position, e.reshape(ends, {batch, 1}, "_lengths_column")}, "_mask");
  if (!begins) return mask;
  Value* begun = e.op("GreaterOrEqual", {position, e.reshape(begins, {batch, 1}, "_begins_column")}, "_begun");
  return e.op("And", {mask, begun}, "_mask_between");
}

/// What is added to the scores [batch, heads, queries, keys] where `mask` forbids a key: the places of each batch's keys
/// [B] or [2B], or zeros at forbidden keys in [B, keys] or [B, queries, keys].
Value* mask_bias(const Expansion& e, Value* mask, int64_t batch, int64_t keys, DType t) {
  const Dims dims = dims_of_type(mask);
  if ((dims == Dims{batch} || dims == Dims{2 * batch}) && batch > 0) {
    mask = mask_of_places(e, mask, batch, keys);
  } else {
    const bool rows = dims.size() == 2 && dims[1] == keys, squares = dims.size() == 3 && dims[2] == keys;
    if ((!rows && !squares) || (dims[0] != batch && dims[0] != 1))
      e.unsupported("a mask of this shape: " + to_text(mask->type));
    if (mask->type.dtype != DType::Bool)
      mask = e.op("Not", {e.op("Equal", {mask, e.constant(scalar_constant(mask->type.dtype, 0), "_no")}, "_forbidden")},
                  "_mask");
  }
  const float filter = e.attr_float("mask_filter_value");
  Value* bias = e.op("Where", {mask, e.scalar(t, 0, "_allowed"), e.scalar(t, double(filter), "_filter")}, "_mask_bias");
  return e.unsqueeze(bias, dims.size() == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2}, "_mask_bias_4d");
}

struct Streams {
  Value *q, *k, *v, *mask, *past_k, *past_v;  // null: absent; q, k, v [batch, sequence, hidden]
  Value* bias;                                // added to the scores
};

/// Whether queries see no keys behind their own. A single query sees all of them; which key is that of a query is known only
/// where both are as many, or the keys fewer.
int64_t causal(const Expansion& e, int64_t queries, int64_t keys) {
  if (e.attr_int("unidirectional") == 0 || (queries == 1 && keys > 1)) return 0;
  if (keys > queries) e.unsupported("attribute unidirectional for more keys than queries");
  return e.attr_int("unidirectional");
}

/// ai.onnx's Attention of these; its outputs are y, present_key, present_value.
Node* attention(const Expansion& e, Streams s, bool present) {
  const int64_t heads = e.attr_int("num_heads");
  if (heads < 1) e.reject("attribute num_heads must be given and positive");
  const Dims q = dims_of_type(s.q), k = dims_of_type(s.k);
  const int64_t added = k.size() == 4 ? k[2] : k[1], keys = added + (s.past_k ? dims_of_type(s.past_k)[2] : 0);
  const DType t = s.q->type.dtype;
  Value* bias = s.mask ? mask_bias(e, s.mask, q[0], keys, t) : nullptr;
  if (bias && s.bias) bias = e.op("Add", {bias, s.bias}, "_bias");
  if (!bias) bias = s.bias;
  Attrs attrs = {{"q_num_heads", heads}, {"kv_num_heads", heads}, {"is_causal", causal(e, q[1], added)}};
  if (const float scale = e.attr_float("scale"); scale != 0) attrs["scale"] = scale;
  return e.node_of("Attention", {s.q, s.k, s.v, bias, s.past_k, s.past_v}, present ? 3 : 1, "_attention", attrs);
}

/// The operands of Attention and QAttention that are not the packed product.
struct SelfAttention {
  Value *weights, *mask, *past, *bias;  // null: absent, but the weights; bias: added to the scores
};

/// `qkv` [batch, sequence, hidden sizes of q, k and v].
bool attend(const Expansion& e, Value* qkv, const SelfAttention& s) {
  const Dims w = dims_of_type(s.weights);
  std::vector<int64_t> sizes = e.attr_ints("qkv_hidden_sizes");
  if (sizes.empty()) sizes = {w[1] / 3, w[1] / 3, w[1] / 3};
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != w[1]) e.reject("the weights do not fit the hidden sizes");
  Streams streams{e.slice(qkv, 2, 0, sizes[0], "_q"),
                  e.slice(qkv, 2, sizes[0], sizes[0] + sizes[1], "_k"),
                  e.slice(qkv, 2, sizes[0] + sizes[1], w[1], "_v"),
                  s.mask,
                  nullptr,
                  nullptr,
                  s.bias};
  if (s.past) {
    streams.past_k = e.op("Gather", {s.past, e.ints(DType::I64, {}, {0}, "_first")}, "_past_k");
    streams.past_v = e.op("Gather", {s.past, e.ints(DType::I64, {}, {1}, "_second")}, "_past_v");
  }
  Node* a = attention(e, streams, e.wants(1));
  if (e.wants(0)) e.finish(0, a->outputs[0]);
  if (e.wants(1)) {
    Value *k = e.unsqueeze(a->outputs[1], {0}, "_present_k"), *v = e.unsqueeze(a->outputs[2], {0}, "_present_v");
    e.finish(1, e.op("Concat", {k, v}, "_present", {{"axis", int64_t(0)}}));
  }
  return true;
}

void check_self_attention(const Expansion& e) {
  if (e.attr_int("do_rotary") != 0) e.unsupported("attribute do_rotary");
  if (dims_of_type(e.in(0)).size() != 3 || dims_of_type(e.in(1)).size() != 2)
    e.reject("the input must have three axes, the weights two");
}

bool expand_attention(Graph& g, Node* n) {
  const Expansion e(g, n);
  if (n->inputs.size() > 6 && n->inputs[6]) e.unsupported("a past whose memory is shared with the present");
  check_self_attention(e);
  Value* qkv = e.op("MatMul", {e.in(0), e.in(1)}, "_product");
  if (Value* bias = e.optional(2)) qkv = e.op("Add", {qkv, bias}, "_qkv");
  return attend(e, qkv, {e.in(1), e.optional(3), e.optional(4), e.optional(5)});
}

/// input, weights, bias, their scales, mask, their zero points, past.
bool expand_quantized_attention(Graph& g, Node* n) {
  const Expansion e(g, n);
  check_self_attention(e);
  Value* qkv =
      e.op("MatMulIntegerToFloat", {e.in(0), e.in(1), e.in(3), e.in(4), e.optional(6), e.optional(7), e.optional(2)},
           "_qkv", {}, "com.microsoft");
  return attend(e, qkv, {e.in(1), e.optional(5), e.optional(8), nullptr});
}

/// One of the tensors that [batch, tokens, heads, tensors, size] has beside each other, as [batch, tokens, heads * size].
Value* unpacked(const Expansion& e, Value* x, int64_t which, const std::string& suffix) {
  Value* axis = e.constant(int64_constant({3}), suffix + "_axis");
  Value* heads = e.op("Squeeze", {e.slice(x, 3, which, which + 1, suffix + "_packed"), axis}, suffix + "_heads");
  return e.op("Reshape", {heads, e.constant(int64_constant({0, 0, -1}), suffix + "_shape")}, suffix);
}

/// Queries, keys and values may be one operand, keys and values another.
void unpack(const Expansion& e, Streams& s) {
  const auto is_packed = [](const Value* v) { return v && dims_of_type(v).size() == 5; };
  Value* packed = is_packed(s.q) ? s.q : s.k;
  if (!is_packed(packed)) return;
  const int64_t first = packed == s.q ? 0 : 1;
  if (s.v || (first == 0 && s.k)) e.reject("values, or keys and values, are operands beside one that has them");
  if (dims_of_type(packed)[3] != 3 - first)
    e.reject("axis 3 of packed operands has " + to_text(3 - first) + " elements: " + (first == 0 ? "queries, " : "") +
             "keys and values");
  if (first == 0) s.q = unpacked(e, packed, 0, "_queries");
  s.k = unpacked(e, packed, 1 - first, "_keys");
  s.v = unpacked(e, packed, 2 - first, "_values");
}

bool expand_multi_head_attention(Graph& g, Node* n) {
  const Expansion e(g, n);
  Streams s{e.in(0), e.optional(1), e.optional(2), e.optional(4), e.optional(6), e.optional(7), e.optional(5)};
  for (size_t k = 8; k < n->inputs.size(); k++)
    if (n->inputs[k]) e.unsupported("a past whose memory is shared with the present");
  unpack(e, s);
  if (!s.k || !s.v || dims_of_type(s.q).size() != 3) e.reject("queries have three axes, and there are keys and values");
  if (Value* bias = e.optional(3)) {
    const int64_t q = dims_of_type(s.q)[2], all = dims_of_type(bias).at(0);
    const int64_t v = all - 2 * q;
    if (dims_of_type(bias).size() != 1 || v < 1) e.reject("the bias does not fit the operands");
    s.q = e.op("Add", {s.q, e.slice(bias, 0, 0, q, "_bias_q")}, "_q");
    if (dims_of_type(s.k).size() == 3) s.k = e.op("Add", {s.k, e.slice(bias, 0, q, 2 * q, "_bias_k")}, "_k");
    if (dims_of_type(s.v).size() == 3) s.v = e.op("Add", {s.v, e.slice(bias, 0, 2 * q, all, "_bias_v")}, "_v");
  }
  const bool present = e.wants(1) || e.wants(2);
  if (e.wants(3)) e.unsupported("the scores as an output");
  Node* a = attention(e, s, present);
  if (e.wants(0)) e.finish(0, a->outputs[0]);
  if (e.wants(1)) e.finish(1, a->outputs[1]);
  if (e.wants(2)) e.finish(2, a->outputs[2]);
  return true;
}

bool expand_embedding(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value *ids = e.in(0), *segments = e.optional(1), *positions = e.optional(8), *mask = e.optional(7);
  const Dims dims = dims_of_type(ids);
  if (dims.size() != 2) e.reject("the tokens must have two axes");
  if (!positions) positions = e.counted({1, dims[1]}, "_places");
  Value* sum = e.op(
      "Add", {e.op("Gather", {e.in(2), ids}, "_words"), e.op("Gather", {e.in(3), positions}, "_positions")}, "_sum");
  if (segments && e.optional(4))
    sum = e.op("Add", {sum, e.op("Gather", {e.in(4), segments}, "_segments")}, "_embedded");
  if (e.wants(0))
    e.finish(0, e.op("LayerNormalization", {sum, e.in(5), e.in(6)}, "_normalised",
                     {{"axis", int64_t(-1)}, {"epsilon", e.attr_float("epsilon")}, {"stash_type", int64_t(1)}}));
  if (e.wants(1)) {
    Value* axis = e.constant(int64_constant({1}), "_axis");
    Value* lengths =
        mask ? e.op("ReduceSum", {mask, axis}, "_lengths", {{"keepdims", int64_t(0)}})
             : e.op("Identity", {e.ints(DType::I32, {dims[0]}, std::vector<int64_t>(size_t(dims[0]), 0), "_none")},
                    "_lengths");
    e.finish(1, lengths);
  }
  if (e.wants(2)) e.finish(2, e.op("Identity", {sum}, "_embedding_sum"));
  return true;
}

bool expand_fused_gemm(Graph& g, Node* n) {
  const Expansion e(g, n);
  Attrs gemm;
  for (const char* name : {"transA", "transB"}) gemm[name] = e.attr_int(name);
  for (const char* name : {"alpha", "beta"}) gemm[name] = e.attr_float(name);
  Value* y = e.op("Gemm", {e.in(0), e.in(1), e.optional(2)}, "_gemm", gemm);
  const std::string activation = e.attr_string("activation");
  Attrs attrs;
  if (activation == "LeakyRelu" || activation == "Elu" || activation == "HardSigmoid" ||
      activation == "ThresholdedRelu")
    if (e.has("activation_alpha")) attrs["alpha"] = e.attr_float("activation_alpha");
  if (activation == "HardSigmoid" && e.has("activation_beta")) attrs["beta"] = e.attr_float("activation_beta");
  const std::vector<std::string> known = {"Relu", "Tanh",      "Sigmoid", "Softplus",    "Softsign",
                                          "Selu", "LeakyRelu", "Elu",     "HardSigmoid", "ThresholdedRelu"};
  if (!activation.empty() && std::find(known.begin(), known.end(), activation) == known.end())
    e.unsupported("activation \"" + printable(activation) + "\"");
  e.finish(0, activation.empty() ? y : e.op(activation, {y}, "_activated", attrs));
  return true;
}

/// condition, x, its scale and zero point, y, its scale and zero point, the result's scale and zero point.
bool expand_quantized_where(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value* x = e.op("DequantizeLinear", {e.in(1), e.in(2), e.optional(3)}, "_x");
  Value* y = e.op("DequantizeLinear", {e.in(4), e.in(5), e.optional(6)}, "_y");
  e.finish(0, e.op("QuantizeLinear", {e.op("Where", {e.in(0), x, y}, "_where"), e.in(7), e.optional(8)}, "_quantized"));
  return true;
}

}  // namespace

OpFamily microsoft_fused_ops() {
  const auto row = [](std::string_view name, std::vector<AttrSpec> attrs, bool (*expand)(Graph&, Node*)) {
    return expanding_row("com.microsoft", name, 1, std::move(attrs), expand);
  };
  const std::vector<AttrSpec> attention = {optional_attr("num_heads"), int_attr("unidirectional", 0),
                                           optional_attr("scale"), float_attr("mask_filter_value", -10000.0f)};
  std::vector<AttrSpec> quantized = attention;
  quantized.push_back(int_attr("do_rotary", 0));
  std::vector<AttrSpec> packed = attention;
  packed.push_back(optional_attr("qkv_hidden_sizes"));
  packed.push_back(int_attr("do_rotary", 0));
  return {
      row("Attention", packed, expand_attention),
      row("QAttention", quantized, expand_quantized_attention),
      row("MultiHeadAttention", attention, expand_multi_head_attention),
      row("EmbedLayerNormalization", {float_attr("epsilon", 1e-12f), int_attr("mask_index_type", 0)}, expand_embedding),
      row("FusedGemm",
          {float_attr("alpha", 1), float_attr("beta", 1), int_attr("transA", 0), int_attr("transB", 0),
           optional_attr("activation"), optional_attr("activation_alpha"), optional_attr("activation_beta"),
           optional_attr("activation_gamma")},
          expand_fused_gemm),
      row("QLinearWhere", {}, expand_quantized_where),
  };
}

}  // namespace tc
