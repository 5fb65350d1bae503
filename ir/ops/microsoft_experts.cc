// Mixtures of experts (com.microsoft): each token goes through the k of several feed-forward networks that a router chooses.
//   MoE(x, router, w1, b1, w2, b2)   ->   v, chosen = TopK(router, k)   p = Softmax(v)
//       h = activation(tc.expert_matmul(x, chosen, w1, b1))   z = tc.expert_matmul(h, chosen, w2, b2)   y = sum(k) z * p
// QMoE has the same weights in 2, 4 or 8 bits: (q - zero point) * scale, with a scale for each column or block of it. Only the
// weights of experts that are chosen are read. Sums are in single precision. Where a model allows bytes (accuracy_level 4), multiply_blocks
// makes products of blocks of these tensors: block_products.h.
#include <algorithm>
#include <numeric>

#include "ir/ops/expansion.h"
#include "ir/ops/experts.h"
#include "ir/ops/numeric.h"
#include "ir/ops/packed_numbers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

/// Numbers of `bits` bits, packed along the last axis: y[..., k] = number k, `size` of them.
void define_unpack_numbers(OpBuilder& op) {
  const Tensor x = op.in(0);
  const int64_t bits = op.attr_int("bits"), size = op.attr_int("size");
  Dims d = x.dims();
  if (d.empty() || d.back() * 8 < size * bits) op.reject("the zero points do not fit the scales", 0);
  d.back() = size;
  op.output(0, op.compute("numbers", DType::U8, d, [&](const Exprs& i) {
    return cast(DType::U8,
                unpacked([&](const Expr& at) { return x(with_axis(i, int(d.size()) - 1, at)); }, i.back(), bits));
  }));
}

/// The numbers of each block of a row in another order: byte i of block b holds number i of each part of the block, the first part in
/// its lowest bits, so that neighbours lie in neighbouring bytes. [experts, columns, bytes] -> [experts, columns, blocks, bytes].
void define_part_numbers(OpBuilder& op) {
  const Tensor x = op.in(0);
  const Dims d = x.dims();
  const int64_t bits = op.attr_int("bits"), parts = bits > 0 ? 8 / bits : 0, block = op.attr_int("block_size");
  if (bits != 2 && bits != 4 && bits != 8) op.unsupported("weights of " + to_text(bits) + " bits");
  if (d.size() != 3 || x.dtype() != DType::U8 || block < parts || block % parts != 0 || d[2] * parts % block != 0)
    op.reject("the weights must be bytes of whole blocks along their last axis", 0);
  op.output(0, op.compute("parts", DType::U8, {d[0], d[1], d[2] * parts / block, block / parts}, [&](const Exprs& i) {
    Expr y = make_int(DType::I32, 0);
    for (int64_t p = parts; p-- > 0;) {
      const Expr k = i[2] * block + p * (block / parts) + i[3];
      const Expr q = unpacked([&](const Expr& at) { return x({i[0], i[1], at}); }, k, bits);
      y = p + 1 == parts ? q : y * make_int(DType::I32, int64_t(1) << bits) + q;
    }
    return cast(DType::U8, y);
  }));
}

/// Weights of experts: numbers [experts, columns, depth], or few bits as part_numbers leaves them.
struct ExpertWeights {
  Tensor w, scales, zeros;
  int64_t bits = 0;  // 0: numbers
  int64_t experts = 0, columns = 0, blocks = 1, block = 0;
  int64_t depth() const { return blocks * block; }
  int64_t parts() const { return 8 / bits; }

  /// Numbers k of all parts of a block, less its zero point. In single precision, where bytes are exact and lanes are.
  Exprs distances(const Expr& e, const Expr& n, const Expr& b, const Expr& k) const {
    const Expr middle = make_const(DType::F32, double(int64_t(1) << (bits - 1)));
    const Expr zero_point = zeros ? cast(DType::F32, zeros({e, n, b})) : middle;
    Expr left = cast(DType::F32, w({e, n, b, k}));
    Exprs list;
    for (int64_t p = 1; p < parts(); p++) {
      const Expr size = make_const(DType::F32, double(int64_t(1) << bits));
      const Expr above = apply(Op::Floor, {left * make_const(DType::F32, 1 / double(int64_t(1) << bits))});
      list.push_back(left - above * size - zero_point);
      left = above;
    }
    list.push_back(left - zero_point);
    return list;
  }
};

ExpertWeights read_weights(OpBuilder& op) {
  ExpertWeights w;
  w.w = op.in(2);
  w.bits = op.has(4) ? op.attr_int("bits") : 0;
  const Dims d = w.w.dims();
  if (d.size() != (w.bits == 0 ? 3u : 4u)) op.reject("the weights must have three axes", 2);
  w.experts = d[0];
  w.columns = d[1];
  w.block = d.back();
  if (w.experts < 1) op.reject("there must be experts", 2);
  if (w.bits == 0) return w;
  w.blocks = d[2];
  w.block *= w.parts();
  w.scales = op.in(4);
  if (op.has(5)) w.zeros = op.in(5);
  const Dims each = {w.experts, w.columns, w.blocks};
  if (w.scales.dims() != each) op.reject("the scales must have the shape " + to_text(to_shape(each)), 4);
  if (w.zeros && (w.zeros.dims() != each || w.zeros.dtype() != DType::U8))
    op.reject("the zero points do not fit the scales", 5);
  return w;
}

/// y[t, j, n] = b[e, n] + sum(k) x[t, j, k] * w[e, n, k], e = chosen[t, j]; an x of two axes is the same for all j. Of few bits it is
/// one sum over blocks and what is in them: sum(b, k) x[..., b, k] * (q[e, n, b, k] - z[e, n, b]) * s[e, n, b].
void define_expert_matmul(OpBuilder& op) {
  const Tensor x = op.in(0), chosen = op.in(1);
  const ExpertWeights w = read_weights(op);
  const Dims rows = chosen.dims();
  Dims wanted = rows;
  if (x.rank() == 2 && !wanted.empty()) wanted.pop_back();
  wanted.push_back(w.depth());
  if (rows.size() != 2 || x.dims() != wanted) op.reject("the input does not fit the weights", 0);
  auto expert = [&](const Exprs& i) { return chosen_expert(chosen, i, w.experts); };
  auto left = [&](const Exprs& i, const Expr& k) { return widen(x.rank() == 2 ? x({i[0], k}) : x({i[0], i[1], k})); };
  const Dims out = {rows[0], rows[1], w.columns};
  Tensor sum;
  if (w.bits == 0) {
    sum = op.reduce("matmul", Op::Add, DType::F32, out, {w.block},
                    [&](const Exprs& i, const Exprs& r) {
                      return left(i, r[0]) * widen(w.w({expert(i), i[2], r[0]}));
                    },
                    {"t", "j", "n", "k"});
  } else {
    const int64_t size = w.block / w.parts();
    sum = op.reduce("matmul", Op::Add, DType::F32, out, {w.blocks, size},
                    [&](const Exprs& i, const Exprs& r) {
                      const Exprs q = w.distances(expert(i), i[2], r[0], r[1]);
                      Expr y;
                      for (size_t p = 0; p < q.size(); p++) {
                        const Expr term = left(i, r[0] * w.block + int64_t(p) * size + r[1]) * q[p];
                        y = y ? y + term : term;
                      }
                      return y * widen(w.scales({expert(i), i[2], r[0]}));
                    },
                    {"t", "j", "n", "b", "k"});
  }
  output_with_bias(op, sum, 3, chosen, w.experts);
}

/// y = g' sigmoid(alpha g') (l' + beta) with g' = min(g, limit) and l' = l cut to [-limit, limit]. Both halves are operands, or one
/// operand has them along its last axis, in turns or one behind the other.
void define_swiglu(OpBuilder& op) {
  const Tensor x = op.in(0);
  Dims d = x.dims();
  if (d.empty()) op.reject("the input must have axes", 0);
  const bool apart = op.has(1), in_turns = op.attr_int("interleaved") != 0;
  if (!apart && d.back() % 2 != 0) op.reject("the last axis must hold pairs", 0);
  if (apart && op.in(1).dims() != d) op.reject("both halves must have one shape", 1);
  if (!apart) d.back() /= 2;
  const int last = x.rank() - 1;
  const auto number = [&](const char* name) { return parameter(DType::F32, op.attr_float(name)); };
  op.output(0, op.compute("swiglu", DType::F32, d, [&](const Exprs& i) {
    const Expr k = i[size_t(last)];
    const auto at = [&](const Expr& place) { return widen(x(with_axis(i, last, place))); };
    Expr g = apart ? widen(x(i)) : at(in_turns ? k * 2 : k);
    Expr l = apart ? widen(op.in(1)(i)) : at(in_turns ? k * 2 + 1 : k + d.back());
    if (op.has_attr("limit")) {
      const Expr limit = number("limit");
      g = min(g, limit);
      l = min(max(l, -limit), limit);
    }
    const Expr one = make_const(DType::F32, 1);
    return g / (one + exp(-(number("alpha") * g))) * (l + number("beta"));
  }));
}

/// Operands by their places, which differ between MoE and QMoE.
struct Layer {
  Value *w = nullptr, *bias = nullptr, *scales = nullptr, *zeros = nullptr;
  int64_t bits = 0;
};

struct Experts {
  const Expansion& e;
  bool few_bits = false;
  Dims dims{};                                 // of the input
  Value* x = nullptr;                          // [tokens, hidden]
  Value *chosen = nullptr, *shares = nullptr;  // [tokens, k]: which experts, how much of each
  int64_t k = 1;

  Layer layer(int number) const;
  Value* matmul(Value* input, const Layer& l, const std::string& suffix) const;
  Value* activated(Value* h, Value* other) const;
};

Layer Experts::layer(int number) const {
  const auto at = size_t(number - 1);
  if (!few_bits) return {e.optional(2 + 2 * at), e.optional(3 + 2 * at)};
  Layer l = {e.optional(2 + 3 * at), e.optional(4 + 3 * at), e.optional(3 + 3 * at), e.optional(11 + at),
             e.attr_int("expert_weight_bits")};
  const std::string own = "fc" + to_text(int64_t(number)) + "_expert_weight_bits";
  if (e.has(own)) l.bits = e.attr_int(own);
  if (l.w && !l.scales) e.reject("weights of few bits need scales");
  return l;
}

Value* Experts::matmul(Value* input, const Layer& l, const std::string& suffix) const {
  if (!few_bits) return e.op("expert_matmul", {input, chosen, l.w, l.bias}, suffix, {}, "tc");
  const Dims d = dims_of_type(l.w);
  const int64_t bits = l.bits, depth = dims_of_type(input).back();
  if (d.size() != 3 || (bits != 2 && bits != 4 && bits != 8) || d[2] * (8 / bits) != depth || depth < 1)
    e.reject("weights of " + to_text(bits) + " bits do not fit a depth of " + to_text(depth));
  const int64_t size = e.has("block_size") ? e.attr_int("block_size") : 0;
  const int64_t stated = size > 0 ? std::min(size, depth) : depth, blocks = (depth + stated - 1) / stated;
  // Where the last block is short, blocks are parts of the stated ones that divide the depth, and share their numbers.
  const int64_t block = std::gcd(depth, stated), parts = depth / block;
  const auto of_parts = [&](Value* v, const std::string& name) {
    if (parts == blocks) return v;
    std::vector<int64_t> from;
    for (int64_t p = 0; p < parts; p++) from.push_back(p * block / stated);
    return e.op("Gather", {v, e.ints(DType::I64, {parts}, from, name + "_from")}, name + "_of_parts",
                {{"axis", int64_t(2)}});
  };
  if (num_elements(dims_of_type(l.scales)) != d[0] * d[1] * blocks)
    e.reject("there must be a scale for each block of the weights");
  const Dims each = {d[0], d[1], blocks};
  Value* w = e.op("part_numbers", {l.w}, suffix + "_parts", {{"bits", bits}, {"block_size", block}}, "tc");
  Value* scales = of_parts(e.reshape(l.scales, each, suffix + "_scales"), suffix + "_scales");
  Value* zeros = l.zeros;
  if (zeros) {
    const bool by_column = dims_of_type(zeros).size() == 2;
    zeros =
        e.op("unpack_numbers", {zeros}, suffix + "_zeros", {{"bits", bits}, {"size", by_column ? d[1] : blocks}}, "tc");
    if (num_elements(dims_of_type(zeros)) != d[0] * d[1] * blocks) e.reject("the zero points do not fit the scales");
    zeros = of_parts(e.reshape(zeros, each, suffix + "_zeros_of_blocks"), suffix + "_zeros");
  }
  Attrs attrs = e.attrs_named({"accuracy_level"});
  attrs["bits"] = bits;
  return e.op("expert_matmul", {input, chosen, w, l.bias, scales, zeros}, suffix, std::move(attrs), "tc");
}

/// Which experts a token goes to are those with the largest scores; its shares are a softmax of the scores. Of equal ones
/// ONNX Runtime takes the last expert first, TopK the first: so the scores are turned round.
void route(Experts& m) {
  const Expansion& e = m.e;
  Value* scores = e.cast(DType::F32, e.in(1), "_scores");
  const Dims d = dims_of_type(scores);
  if (d.size() != 2 || d[0] != dims_of_type(m.x)[0]) e.reject("router_probs must have one row for each token");
  m.k = e.attr_int("k");
  if (m.k < 1 || m.k > d[1]) e.reject("k must be from 1 to the number of experts, " + to_text(d[1]));
  if (e.attr_int("use_sparse_mixer") != 0)
    e.unsupported("use_sparse_mixer; export the model with its router in ONNX's operators");
  const auto number = [&](int64_t n, std::string_view suffix) { return e.ints(DType::I64, {1}, {n}, suffix); };
  Value* turned =
      e.op("Slice", {scores, number(-1, "_last"), number(INT64_MIN, "_end"), number(1, "_along"), number(-1, "_back")},
           "_turned");
  Node* top = e.node_of("TopK", {turned, number(m.k, "_k")}, 2, "_best", {{"axis", int64_t(-1)}});
  m.chosen = e.op("Sub", {number(d[1] - 1, "_last_expert"), top->outputs[1]}, "_chosen");
  Value* own = m.few_bits ? e.optional(14) : nullptr;
  const bool normalized = e.attr_int("normalize_routing_weights") != 0;
  const auto softmax = [&](Value* x) { return e.op("Softmax", {x}, "_shares", {{"axis", int64_t(-1)}}); };
  const auto of_chosen = [&](Value* x) {
    return e.op("GatherElements", {x, m.chosen}, "_own_shares", {{"axis", int64_t(1)}});
  };
  if (own) {
    if (dims_of_type(own) != d) e.reject("router_weights must have the shape of router_probs");
    m.shares = of_chosen(e.cast(DType::F32, own, "_weights"));
    if (!normalized) return;
    Value* axis = e.constant(int64_constant({1}), "_axis");
    m.shares = e.op("Div", {m.shares, e.op("ReduceSum", {m.shares, axis}, "_all_shares")}, "_shares");
  } else if (normalized || m.few_bits) {  // ONNX Runtime's QMoE does so in any case
    m.shares = softmax(top->outputs[0]);
  } else {
    m.shares = of_chosen(softmax(scores));
  }
}

Value* Experts::activated(Value* h, Value* other) const {
  const std::string kind = e.attr_string("activation_type");
  if (kind == "swiglu") {
    const int64_t fusion = e.attr_int("swiglu_fusion");
    if (fusion < 0 || fusion > 2) e.reject("swiglu_fusion must be 0, 1 or 2");
    if ((fusion == 0) != (other != nullptr)) e.reject("swiglu needs fc3 where swiglu_fusion is 0, and only there");
    Attrs attrs = {{"alpha", e.attr_float("activation_alpha")},
                   {"beta", e.attr_float("activation_beta")},
                   {"interleaved", int64_t(fusion == 1)}};
    if (e.has("swiglu_limit")) attrs["limit"] = e.attr_float("swiglu_limit");
    return e.op("swiglu", {h, other}, "_activated", attrs, "tc");
  }
  Value* y = h;
  if (kind == "relu")
    y = e.op("Relu", {h}, "_activated");
  else if (kind == "gelu")
    y = e.op("Gelu", {h}, "_activated", {{"approximate", std::string("tanh")}});
  else if (kind == "silu")
    y = e.op("Swish", {h}, "_activated");
  else if (kind != "identity")
    e.reject("activation_type must be relu, gelu, silu, swiglu or identity");
  return other ? e.op("Mul", {y, other}, "_gated") : y;
}

/// y[t] = sum(j) shares[t, j] * z[t, j], in the shape and the type of the input.
void finish(const Experts& m, Value* z) {
  const Expansion& e = m.e;
  Value* weighted = e.op("Mul", {z, e.unsqueeze(m.shares, {2}, "_factors")}, "_weighted");
  Value* axis = e.constant(int64_constant({1}), "_experts_axis");
  Value* y = e.op("ReduceSum", {weighted, axis}, "_mixed", {{"keepdims", int64_t(0)}});
  y = e.cast(m.x->type.dtype, y, "_as_input");
  e.finish(0, e.reshape(y, m.dims, ""));
}

bool expand_experts(Graph& g, Node* n, bool few_bits) {
  const Expansion e(g, n);
  Experts m{e, few_bits};
  Value* x = e.in(0);
  m.dims = dims_of_type(x);
  if (m.dims.size() != 2 && m.dims.size() != 3) e.reject("the input must have two or three axes");
  const int64_t hidden = m.dims.back();
  m.x = m.dims.size() == 2 ? x : e.reshape(x, {m.dims[0] * m.dims[1], hidden}, "_tokens");
  route(m);
  const Layer first = m.layer(1), second = m.layer(2), third = m.layer(3);
  if (!first.w || !second.w) e.reject("the weights of fc1 and fc2 must be given");
  Value* other = third.w ? m.matmul(m.x, third, "_fc3") : nullptr;
  Value* h = m.activated(m.matmul(m.x, first, "_fc1"), other);
  finish(m, m.matmul(h, second, "_fc2"));
  return true;
}

bool expand_moe(Graph& g, Node* n) { return expand_experts(g, n, false); }

bool expand_qmoe(Graph& g, Node* n) {
  const Expansion e(g, n);
  if (e.attr_string("quant_type") != "int")
    e.unsupported("quant_type " + e.attr_string("quant_type") + "; export the experts with integers (quant_type int)");
  if (e.attr_int("weights_prepacked") == 1)
    e.unsupported("weights in the order of CUDA kernels; export with weights_prepacked = 0");
  return expand_experts(g, n, true);
}

std::vector<AttrSpec> shared_attrs() {
  return {int_attr("k", 1),
          string_attr("activation_type", "relu"),
          float_attr("activation_alpha", 1),
          float_attr("activation_beta", 0),
          int_attr("swiglu_fusion", 0),
          optional_attr("swiglu_limit"),
          int_attr("normalize_routing_weights", 0),
          int_attr("use_sparse_mixer", 0)};
}

}  // namespace

OpFamily microsoft_experts_ops() {
  std::vector<AttrSpec> few_bits = shared_attrs();
  for (AttrSpec a :
       {int_attr("expert_weight_bits", 4), optional_attr("fc1_expert_weight_bits"),
        optional_attr("fc2_expert_weight_bits"), optional_attr("fc3_expert_weight_bits"), optional_attr("block_size"),
        string_attr("quant_type", "int"), int_attr("weights_prepacked", -1), int_attr("accuracy_level", 0)})
    few_bits.push_back(std::move(a));
  return {
      expanding_row("com.microsoft", "MoE", 1, shared_attrs(), expand_moe),
      expanding_row("com.microsoft", "QMoE", 1, std::move(few_bits), expand_qmoe),
      {"expert_matmul",
       1,
       {int_attr("bits", 0), int_attr("accuracy_level", 0)},
       define_expert_matmul,
       "x chosen w bias scales zeros",
       "expert_matmul",
       "tc"},
      {"part_numbers",
       1,
       {int_attr("bits", 4), int_attr("block_size", 0)},
       define_part_numbers,
       "packed",
       "parts",
       "tc"},
      {"unpack_numbers",
       1,
       {int_attr("bits", 4), int_attr("size", 0)},
       define_unpack_numbers,
       "packed",
       "numbers",
       "tc"},
      {"swiglu",
       1,
       {float_attr("alpha", 1), float_attr("beta", 0), optional_attr("limit"), int_attr("interleaved", 0)},
       define_swiglu,
       "gate linear",
       "swiglu",
       "tc"},
  };
}

}  // namespace tc
