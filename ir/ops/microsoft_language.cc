// What ONNX Runtime's builders of language models write (com.microsoft): rotated positions and attention over a cache
// of keys. Each is rewritten into ONNX's RotaryEmbedding and Attention; the cache is an operator of our own.
//   GroupQueryAttention(query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos, sin)
//   -> past_lengths = seqlens_k + 1 - S                               how many keys each batch's cache holds already
//      query', key' = RotaryEmbedding(query | key, cos, sin, past_lengths + [0, S))
//      present_key = tc.append_to_cache(past_key, key', past_lengths)
//      y = Attention(query', present_key, present_value, , , , past_lengths + S) <is_causal = 1>
// A cache that slides has a size of its own and holds the last keys: attention reads them with the new ones behind, and the next run
// the last rows of that.
#include <algorithm>
#include <limits>

#include "ir/open_size.h"
#include "ir/ops/expansion.h"
#include "ir/ops/microsoft_counts.h"
#include "ir/ops/numeric.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// y[b, h, j] = the cached past[b, h, j] where j < past_lengths[b], then fresh[b, j - past_lengths[b]], then 0; fresh
/// is [batch, sequence, heads * size], past [batch, heads, capacity, size]. More keys than fit into y: E_RANGE.
void define_append_to_cache(OpBuilder& op) {
  const Tensor past = op.in(0), fresh = op.in(1), past_lengths = op.in(2);
  const int64_t total = op.attr_int("total"), capacity = past.dim(2), size = past.dim(3), sequence = fresh.dim(1);
  const int64_t most = std::min(capacity, total - sequence);
  if (most < 0) op.reject("the cache has no room for the new keys");
  auto y = [&](const Exprs& i) {
    const Expr position = checked_index(past_lengths({i[0]}), most + 1);
    const Expr k = i[2] - position;
    const Expr row = min(max(k, Expr(0)), Expr(sequence - 1));
    const Expr added = select(k < Expr(sequence), fresh({i[0], row, i[1] * size + i[3]}), zero(fresh.dtype()));
    if (capacity == 0) return added;
    return select(k < Expr(0), past({i[0], i[1], min(i[2], Expr(capacity - 1)), i[3]}), added);
  };
  op.output(
      0, op.compute("append_to_cache", past.dtype(), {past.dim(0), past.dim(1), total, size}, y, {"b", "h", "s", "d"}));
}

/// Rows that a cache of `capacity` holds of x tokens, the last `window` of which it must: all of them, or all but as many times
/// the slack as it takes. ONNX Runtime's layout of caches with sliding_window_cache.
void define_window_rows(OpBuilder& op) {
  const Tensor tokens = op.in(0);
  const int64_t capacity = op.attr_int("capacity"), slack = capacity - op.attr_int("window") + 1;
  if (slack < 1) op.reject("the cache has no room for the window");
  op.output(0, op.compute("rows", DType::I64, tokens.dims(), [&](const Exprs& i) {
    const Expr beyond = max(tokens(i) - Expr(capacity), Expr(0));
    return tokens(i) - floor_div(beyond + Expr(slack - 1), Expr(slack)) * Expr(slack);
  }));
}

/// y[b, h, j] = x[b, h, j + shift[b]], `capacity` rows; the last row of x behind its last.
void define_last_rows(OpBuilder& op) {
  const Tensor x = op.in(0), shift = op.in(1);
  Dims dims = x.dims();
  if (dims.size() != 4) op.reject("the cache must have four axes");
  const Expr last = Expr(dims[2] - 1);
  dims[2] = op.attr_int("capacity");
  op.output(
      0, op.compute("last_rows", x.dtype(), dims,
                    [&](const Exprs& i) { return x(with_axis(i, 2, min(max(i[2] + shift({i[0]}), Expr(0)), last))); },
                    {"b", "h", "s", "d"}));
}

/// The last axis of a cache of cosines, checked against what is rotated.
Value* rotated(const Expansion& e, Value* x, Value* cosines, Value* sines, Value* positions, int64_t heads,
               int64_t rotary_dim, int64_t interleaved, const std::string& suffix) {
  Attrs attrs = {{"interleaved", interleaved}, {"rotary_embedding_dim", rotary_dim}};
  if (dims_of_type(x).size() == 3) attrs["num_heads"] = heads;
  return e.op("RotaryEmbedding", {x, cosines, sines, positions}, suffix, attrs);
}

/// [1, sequence]: 0, 1, 2, ...; `count`: how many of them there are, if that is known at run time only.
Value* steps_of(const Expansion& e, int64_t sequence, Value* count) {
  if (!count) return e.counted({1, sequence}, "_steps");
  return e.op("steps", {count}, "_steps", {{"capacity", sequence}}, "tc");
}

/// x [batch, sequence, hidden] or [batch, heads, sequence, size]; position_ids [batch, sequence], or one: the first.
bool expand_rotary(Graph& g, Node* n) {
  const Expansion e(g, n);
  Value *x = e.in(0), *positions = e.in(1), *cosines = e.in(2), *sines = e.in(3);
  if (e.attr_int("is_packed_batching") != 0) e.unsupported("attribute is_packed_batching");
  if (e.attr_float("scale") != 1) e.unsupported("attribute scale");
  const Dims dims = dims_of_type(x), cache = dims_of_type(cosines);
  if ((dims.size() != 3 && dims.size() != 4) || cache.size() != 2)
    e.reject("the input must have three or four axes, the caches two");
  const int64_t sequence = dims[dims.size() == 4 ? 2 : 1], rotary_dim = e.attr_int("rotary_embedding_dim");
  int64_t heads = e.attr_int("num_heads");
  if (dims.size() == 3 && heads == 0) {
    if (rotary_dim != 0) e.reject("attribute num_heads must be given with rotary_embedding_dim");
    if (cache[1] < 1 || dims[2] % (2 * cache[1]) != 0) e.reject("the caches do not fit the hidden size");
    heads = dims[2] / (2 * cache[1]);
  }
  positions = e.cast(DType::I64, positions, "_positions");
  if (has_one_element(dims_of_type(positions)) && dims_of_type(positions) != Dims{dims[0], sequence}) {
    Value* all = e.op("Add", {positions, steps_of(e, sequence, e.optional(kCountOperand))}, "_places");
    const Dims full = {dims[0], sequence};
    positions = e.op("Expand", {all, e.constant(int64_constant(full), "_places_shape")}, "_all_places");
  }
  e.finish(0, rotated(e, x, cosines, sines, positions, heads, rotary_dim, e.attr_int("interleaved"), ""));
  return true;
}

/// Operands and sizes of GroupQueryAttention.
struct GroupQuery {
  const Expansion& e;
  int64_t heads = 0, kv_heads = 0, size = 0;       // of the attribute, of a head
  int64_t batch = 0, sequence = 0, total = 0;      // total: keys that the present cache has room for
  Value *q = nullptr, *k = nullptr, *v = nullptr;  // [batch, sequence, heads * size]
  Value *past_k = nullptr, *past_v = nullptr;      // [batch, kv_heads, capacity, size]
  Value* past_lengths = nullptr;                   // [batch], i64: tokens before
  Value* rows = nullptr;                           // [batch], i64: keys that the cache holds already
  Value* count = nullptr;                          // how much of `sequence` there is, if that is known at run time only
  Value* fresh = nullptr;                          // the same, also where it is a constant
  bool starts = false;                             // the cache is known to be empty: the run is a prompt
  Value* prompt = nullptr;  // of one element: is the run one? Null: it is known, or there is one query
  int64_t window = -1;      // keys that a query sees; all of them where it is not positive
  bool slides = false;      // the cache has `capacity` rows, and holds the last keys only
  int64_t capacity = 0;
};

/// How many rows a cache that slides holds of so many tokens.
Value* rows_of(const GroupQuery& a, Value* tokens, const std::string& suffix) {
  return a.e.op("window_rows", {tokens}, suffix, {{"capacity", a.capacity}, {"window", a.window}}, "tc");
}

void read_streams(GroupQuery& a) {
  const Expansion& e = a.e;
  a.heads = e.attr_int("num_heads");
  a.kv_heads = e.attr_int("kv_num_heads");
  if (a.heads < 1 || a.kv_heads < 1 || a.heads % a.kv_heads != 0)
    e.reject("num_heads must be a positive multiple of kv_num_heads");
  a.q = e.in(0);
  const Dims q = dims_of_type(a.q);
  if (q.size() != 3) e.reject("the query must have three axes");
  a.batch = q[0];
  a.sequence = q[1];
  a.k = e.optional(1);
  a.v = e.optional(2);
  if ((a.k == nullptr) != (a.v == nullptr)) e.reject("key and value must be given together");
  const int64_t streams = a.heads + (a.k ? 0 : 2 * a.kv_heads);
  if (q[2] % streams != 0) e.reject("the numbers of heads do not divide the hidden size");
  a.size = q[2] / streams;
  if (!a.k) {
    const int64_t first = a.heads * a.size, second = first + a.kv_heads * a.size;
    Value* packed = a.q;
    a.q = e.slice(packed, 2, 0, first, "_query");
    a.k = e.slice(packed, 2, first, second, "_key");
    a.v = e.slice(packed, 2, second, q[2], "_value");
  }
  const Dims fresh = {a.batch, a.sequence, a.kv_heads * a.size};
  if (dims_of_type(a.k) != fresh || dims_of_type(a.v) != fresh) e.reject("key and value do not fit the query");
}

/// 0 for each of a batch, which may have no upper bound: no constant has as many elements.
Value* no_tokens(const Expansion& e, int64_t batch) {
  if (!is_open(batch)) return e.ints(DType::I64, {batch}, std::vector<int64_t>(size_t(batch), 0), "_places");
  return e.op("Expand", {e.number(DType::I64, 0, "_none"), e.constant(int64_constant({batch}), "_batch")}, "_places");
}

/// The numbers of queries and keys are operands: kCountOperand and the one behind it.
void read_open_cache(GroupQuery& a) {
  const Expansion& e = a.e;
  a.total = e.node().attr_int(std::string(kCapacityAttr), 0);
  if (!a.past_k) {
    a.past_lengths = no_tokens(e, a.batch);
    a.starts = true;
    return;
  }
  Value *lengths = e.in(5), *total = e.in(6);
  if (num_elements(dims_of_type(lengths)) != a.batch) e.reject("seqlens_k must have one value per batch");
  Value* last = e.cast(DType::I64, e.reshape(lengths, {a.batch}, "_lengths"), "_last");
  Value* keys = e.op("Add", {last, e.number(DType::I64, 1, "_one")}, "_all_keys");
  a.prompt = e.op("Equal", {e.reshape(e.cast(DType::I64, total, "_total"), {}, "_total_0"), a.count}, "_is_prompt");
  a.past_lengths = e.op("Where", {a.prompt, e.number(DType::I64, 0, "_start"), e.op("Sub", {keys, a.count}, "_places")},
                        "_places_or_start");
}

/// How many keys the caches hold before and behind. `total_sequence_length` may be unknown while compiling; the
/// declared shape of the present cache says what its capacity is then.
void read_lengths(GroupQuery& a) {
  const Expansion& e = a.e;
  const int64_t capacity = a.capacity;
  a.count = e.optional(kCountOperand);
  if (a.count) return read_open_cache(a);
  Value *lengths = e.in(5), *total = e.in(6);
  const bool known = total->constant && total->constant->size() == 1;
  const Value* present = e.wants(1) ? e.node().outputs[1] : nullptr;
  a.total = std::max(capacity, a.sequence);
  if (known)
    a.total = std::max(capacity, total->constant->as_int(0));
  else if (present && present->type.is_static_tensor() && present->type.shape.size() == 4)
    a.total = dims_of_type(present)[2];
  else if (a.past_k)
    a.total = capacity + a.sequence;
  if (a.total < a.sequence) e.reject("total_sequence_length is less than the length of the query");
  if (capacity == 0 || (known && total->constant->as_int(0) == a.sequence)) {
    a.past_lengths = no_tokens(e, a.batch);
    a.starts = true;
    return;
  }
  if (num_elements(dims_of_type(lengths)) != a.batch) e.reject("seqlens_k must have one value per batch");
  Value* last = e.cast(DType::I64, e.reshape(lengths, {a.batch}, "_lengths"), "_last");
  a.past_lengths = e.op("Add", {last, e.ints(DType::I64, {1}, {1 - a.sequence}, "_fresh")}, "_places");
  if (known || a.sequence == 1) return;
  // A prompt fills the cache from its start, whatever the lengths say about padding.
  a.prompt = e.op("Equal",
                  {e.reshape(e.cast(DType::I64, total, "_total"), {1}, "_total_1"),
                   e.ints(DType::I64, {1}, {a.sequence}, "_sequence")},
                  "_is_prompt");
  a.past_lengths =
      e.op("Where", {a.prompt, e.ints(DType::I64, {1}, {0}, "_start"), a.past_lengths}, "_places_or_start");
}

void read_cache(GroupQuery& a) {
  const Expansion& e = a.e;
  a.past_k = e.optional(3);
  a.past_v = e.optional(4);
  if ((a.past_k == nullptr) != (a.past_v == nullptr)) e.reject("past_key and past_value must be given together");
  if (a.past_k) {
    const Dims k = dims_of_type(a.past_k);
    if (k.size() != 4 || k[0] != a.batch || k[1] != a.kv_heads || k[3] != a.size || dims_of_type(a.past_v) != k)
      e.reject("the past does not fit the query");
    a.capacity = k[2];
  }
  a.window = e.attr_int("local_window_size");
  a.slides = e.attr_int("sliding_window_cache") != 0;
  read_lengths(a);
  a.fresh = a.count ? a.count : e.ints(DType::I64, {1}, {a.sequence}, "_fresh_keys");
  a.rows = a.past_lengths;
  if (!a.slides) return;
  if (!a.past_k || a.window < 1 || a.capacity < a.window)
    e.reject("with sliding_window_cache the caches need a size of at least local_window_size = " + to_text(a.window) +
             " (--dim gives it)");
  a.rows = rows_of(a, a.past_lengths, "_rows");
  a.total = a.capacity + a.sequence;
}

/// position_ids [batch, sequence]. Of a prompt the first one counts, for all batches: ONNX Runtime goes on from there.
Value* given_positions(const GroupQuery& a, Value* positions) {
  const Expansion& e = a.e;
  positions = e.cast(DType::I64, positions, "_positions");
  if (!a.starts && !a.prompt) return positions;
  Value* first = e.slice(e.slice(positions, 0, 0, 1, "_first_row"), 1, 0, 1, "_first_position");
  Value* on = e.op("Add", {first, steps_of(e, a.sequence, a.count)}, "_from_first");
  if (a.prompt) return e.op("Where", {a.prompt, on, positions}, "_own_positions");
  return e.op("Expand", {on, e.constant(int64_constant({a.batch, a.sequence}), "_places_shape")}, "_own_positions");
}

void rotate_streams(GroupQuery& a) {
  const Expansion& e = a.e;
  if (e.attr_int("do_rotary") == 0) return;
  Value *cosines = e.in(7), *sines = e.in(8), *positions = e.optional(9);
  const Dims cache = dims_of_type(cosines);
  if (cache.size() != 2 || 2 * cache[1] > a.size) e.reject("the caches of sines and cosines do not fit the heads");
  if (positions)
    positions = given_positions(a, positions);
  else
    positions = e.op("Add", {e.reshape(a.past_lengths, {a.batch, 1}, "_first"), steps_of(e, a.sequence, a.count)},
                     "_positions");
  const int64_t interleaved = e.attr_int("rotary_interleaved"), width = 2 * cache[1];
  a.q = rotated(e, a.q, cosines, sines, positions, a.heads, width, interleaved, "_rotated_query");
  a.k = rotated(e, a.k, cosines, sines, positions, a.kv_heads, width, interleaved, "_rotated_key");
}

/// The cache with the new keys (or values), [batch, kv_heads, total, size].
Value* present(const GroupQuery& a, Value* past, Value* fresh, const std::string& suffix) {
  const Expansion& e = a.e;
  if (a.count) {
    Value* split = e.reshape(fresh, {a.batch, a.sequence, a.kv_heads, a.size}, suffix + "_heads");
    Value* rows = e.transpose(split, {0, 2, 1, 3}, suffix + "_fresh");
    if (!past) past = e.zeros(fresh->type.dtype, {a.batch, a.kv_heads, 0, a.size}, suffix + "_none");
    return e.op("append", {past, rows, a.count, a.rows, e.in(kCountOperand + 1)}, suffix,
                {{"axis", int64_t(2)},
                 {"capacity", a.total},
                 {"zeros_behind", e.node().attr_int(std::string(kOwnCacheAttr), 0)}},
                "tc");
  }
  if (!past && a.total == a.sequence) {
    Value* split = e.reshape(fresh, {a.batch, a.sequence, a.kv_heads, a.size}, suffix + "_heads");
    return e.transpose(split, {0, 2, 1, 3}, suffix);
  }
  if (!past) past = e.zeros(fresh->type.dtype, {a.batch, a.kv_heads, 0, a.size}, suffix + "_none");
  return e.op("append_to_cache", {past, fresh, a.rows}, suffix, {{"total", a.total}}, "tc");
}

/// Of each head the root mean square is 1, times a weight.
Value* normalized(const GroupQuery& a, Value* x, int64_t heads, Value* weight, const std::string& suffix) {
  const Expansion& e = a.e;
  if (dims_of_type(weight) != Dims{a.size}) e.reject("q_norm_weight and k_norm_weight must have the size of a head");
  Value* split = e.reshape(x, {a.batch, a.sequence, heads, a.size}, suffix + "_heads");
  Value* y = e.op("RMSNormalization", {split, weight}, suffix + "_norm",
                  {{"axis", int64_t(-1)}, {"epsilon", e.attr_float("qk_norm_epsilon")}});
  return e.reshape(y, {a.batch, a.sequence, heads * a.size}, suffix);
}

void normalize_streams(GroupQuery& a) {
  Value *q = a.e.optional(14), *k = a.e.optional(15);
  if ((q == nullptr) != (k == nullptr)) a.e.reject("q_norm_weight and k_norm_weight must be given together");
  if (!q) return;
  a.q = normalized(a, a.q, a.heads, q, "_normalized_query");
  a.k = normalized(a, a.k, a.kv_heads, k, "_normalized_key");
}

/// The caches of a window as the next run reads them: their last rows.
void slide(const GroupQuery& a, Value** k, Value** v) {
  const Expansion& e = a.e;
  Value* all = e.op("Add", {a.past_lengths, a.fresh}, "_all_tokens");
  Value* shift = e.op("Sub", {e.op("Add", {a.rows, a.fresh}, "_all_rows"), rows_of(a, all, "_rows_kept")}, "_shift");
  for (Value** x : {k, v})
    *x = e.op("last_rows", {*x, shift}, x == k ? "_last_keys" : "_last_values", {{"capacity", a.capacity}}, "tc");
}

void refuse_unknown_parts(const Expansion& e) {
  if (e.wants(3) || e.attr_int("qk_output") != 0) e.unsupported("the scores as an output (qk_output)");
  if (e.optional(12) || e.optional(13) || e.attr_string("k_quant_type") != "NONE" ||
      e.attr_string("v_quant_type") != "NONE")
    e.unsupported("a quantised cache (k_scale, v_scale): export the model with a cache of floats");
}

bool expand_group_query_attention(Graph& g, Node* n) {
  const Expansion e(g, n);
  refuse_unknown_parts(e);
  GroupQuery a{e};
  read_streams(a);
  read_cache(a);
  normalize_streams(a);
  rotate_streams(a);
  Value *k = present(a, a.past_k, a.k, "_present_key"), *v = present(a, a.past_v, a.v, "_present_value");
  Value *kept_k = k, *kept_v = v, *bias = e.optional(10), *sink = e.optional(11), *lengths = nullptr;
  if (a.slides) slide(a, &kept_k, &kept_v);
  if (a.slides && bias) e.unsupported("attention_bias beside sliding_window_cache");
  if (e.wants(1)) e.finish(1, kept_k);
  if (e.wants(2)) e.finish(2, kept_v);
  Attrs attrs = {{"q_num_heads", a.heads},
                 {"kv_num_heads", a.kv_heads},
                 {"softcap", e.attr_float("softcap")},
                 {"is_causal", e.attr_int("causal")}};
  if (const float scale = e.attr_float("scale"); scale != 0) attrs["scale"] = scale;
  if (a.window > 0) attrs["left_window_size"] = a.window - 1;
  if (a.count || a.total != a.sequence) lengths = e.op("Add", {a.rows, a.fresh}, "_keys");
  if (sink) sink = e.reshape(sink, {a.heads}, "_sink");
  if (!sink && e.attr_int("smooth_softmax") == 1) sink = e.zeros(a.q->type.dtype, {a.heads}, "_sink");
  if (a.count || sink)
    e.finish(0, e.op("attention", {a.q, k, v, bias, nullptr, nullptr, lengths, a.rows, sink}, "", attrs, "tc"));
  else
    e.finish(0, e.op("Attention", {a.q, k, v, bias, nullptr, nullptr, lengths}, "", attrs));
  return true;
}

}  // namespace

OpFamily microsoft_language_ops() {
  const std::string_view ms = "com.microsoft";
  return {
      {.name = "RotaryEmbedding",
       .since = 1,
       .attrs = {int_attr("interleaved", 0), int_attr("num_heads", 0), int_attr("rotary_embedding_dim", 0),
                 float_attr("scale", 1), int_attr("is_packed_batching", 0)},
       .define = nullptr,
       .domain = ms,
       .expand = expand_rotary},
      {.name = "GroupQueryAttention",
       .since = 1,
       .attrs = {optional_attr("num_heads"), optional_attr("kv_num_heads"), optional_attr("scale"),
                 float_attr("softcap", 0), int_attr("local_window_size", -1), int_attr("do_rotary", 0),
                 int_attr("rotary_interleaved", 0), int_attr("smooth_softmax", -1), int_attr("qk_output", 0),
                 int_attr("causal", 1), int_attr("sliding_window_cache", 0), float_attr("qk_norm_epsilon", 1e-6f),
                 string_attr("k_quant_type", "NONE"), string_attr("v_quant_type", "NONE"),
                 optional_attr("kv_cache_bit_width")},
       .define = nullptr,
       .domain = ms,
       .expand = expand_group_query_attention},
      {"append_to_cache", 1, {int_attr("total", 0)}, define_append_to_cache, "past fresh places", "append", "tc"},
      {"window_rows", 1, {int_attr("capacity", 0), int_attr("window", 0)}, define_window_rows, "tokens", "rows", "tc"},
      {"last_rows", 1, {int_attr("capacity", 0)}, define_last_rows, "x shift", "last_rows", "tc"},
  };
}

}  // namespace tc
