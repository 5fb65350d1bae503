// Multiplies what a model holds in quantised form as integers: in C, and under --precision int8 for CUDA (whose tensor
// cores do), but not under --fp strict.
//   a = DequantizeLinear(x, sx, zx)  b = DequantizeLinear(w, sw, zw)      i = ConvInteger(x, w, zx, zw)
//   y = Conv(a, b, bias)                                             ->   y = f32(i) * (sx * sw) + bias
// and MatMul and Gemm likewise. x and w have 8 bits; sx is one number, sw one or one for each channel or column of the
// result. A bias that is quantised too, with the scale sx * sw, is added to the sum of integers. What follows
// (activation, QuantizeLinear) stays, and fusion puts all of it into the kernel of the product. In C, a convolution
// whose result is quantised again at once becomes one operator that has a single scale, and a Relu or Clip that the
// range of the quantised result implies goes away:
//   y = QuantizeLinear(Relu(Conv(a, b, bias)), sy, zy)   ->   y = QLinearConv(x, sx, zx, w, sw, zw, sy, zy, bias)
//
// Operators between the two that only choose (MaxPool, Transpose, ...) choose among the integers, of 8 or 16 bits, and a
// Concat that is quantised next is one of integers. An AveragePool is a convolution of each channel with ones:
//   y = QuantizeLinear(AveragePool(a), sy, zy)   ->   y = QLinearConv(x, sx, zx, ones, 1 / their number, 0, sy, zy)
//
// Rounding: the sum is exact, and rounded once when it becomes f32; then come one rounding for the scale (sx * sw, or
// sx * sw / sy, is rounded while compiling) and one for the bias. The sum of floats that the model writes rounds every
// term, so that results differ by a few units in the last place, and a QuantizeLinear behind them by one step where its
// operand is next to a tie. Where that is not wanted there is --fp strict: models then mean what they say, the product
// of floats.
//
// In C only products with known weights: those have a template.
//
// What is left may be a product of blocks: multiply_blocks.h.
//
// Preconditions: x and w have 8 bits, scales and results are f32, scales are one number or a vector along the axis that
// is said above, not blocks; the sum of integers, with its bias, fits into 32 bits whatever x is. And of
//   a bias that joins the sum   i32, no zero point, scale = sx * sw rounded, all of them constants; one scale, or a
//                               vector along its last axis
//   QLinearConv                 as above, or no bias; nobody else reads the values between; one scale sy; sx * sw / sy
//                               has a usual size; the range of the result implies a Relu or Clip
//   operators that choose       one result that nobody else reads; scale and zero point are the same values; the scale
//                               has a usual size (the way there and back is exact), and for a MaxPool is positive
//   AveragePool                 as QLinearConv; x is made by a QuantizeLinear (an input of the model is faster read as floats); one size of windows: no ceil_mode, and padding counts where there is any
//   Concat                      nobody else reads it; the result's scale is one number of a usual size; all operands, but
//                               one, are dequantised by one scale each
//   Gemm                        alpha = beta = 1, a is not transposed
//
// Needs: types, before fold_constant turns quantised weights into floats. Leaves: DequantizeLinear where others read
// it.
#include <cmath>

#include "ir/loop/build.h"
#include "ir/ops/op.h"
#include "passes/graph/match.h"
#include "passes/graph/multiply_blocks.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

struct Quantized {
  Value *x = nullptr, *scale = nullptr, *zero = nullptr;  // x null: another form
};

bool has_8_bits(DType t) { return t == DType::I8 || t == DType::U8; }
bool has_8_or_16_bits(DType t) { return has_8_bits(t) || t == DType::I16 || t == DType::U16; }

/// v = DequantizeLinear(x, scale, zero), with one scale or one for each element of `axis` (< 0: only one).
Quantized quantized(const Value* v, int axis, bool (*fits)(DType) = has_8_bits) {
  const Node* n = v ? made_by(v, "DequantizeLinear") : nullptr;
  if (!n || v->type.dtype != DType::F32 || n->attr_int("block_size", 0) != 0) return {};
  Value *x = n->inputs[0], *scale = n->inputs[1];
  if (!fits(x->type.dtype) || scale->type.dtype != DType::F32) return {};
  if (!x->type.is_static_tensor() || !scale->type.is_static_tensor()) return {};
  int64_t along = n->attr_int("axis", 1);
  if (along < 0) along += rank_of(x);
  if (!has_one_element(dims_of(scale)) && (rank_of(scale) != 1 || along != axis)) return {};
  return {x, scale, n->inputs.size() > 2 ? n->inputs[2] : nullptr};
}

bool all_equal(const Value* v, int64_t number) {
  if (!v) return number == 0;
  if (!v->constant) return false;
  for (int64_t i = 0; i < v->constant->size(); i++)
    if (v->constant->as_int(i) != number) return false;
  return true;
}

bool is_known(const Quantized& w) { return w.x->is_constant() && (!w.zero || w.zero->is_constant()); }

/// Does a sum of `terms` products of bytes less their zero points, and of the bias, fit into 32 bits?
bool sum_fits(int64_t terms, const Value* bias) {
  int64_t most = 0;
  if (bias && !bias->constant) return false;
  for (int64_t i = 0; bias && i < bias->constant->size(); i++)
    most = std::max(most, std::abs(bias->constant->as_int(i)));
  return terms <= (INT32_MAX - most) / (255 * 255);
}

/// v = DequantizeLinear of i32 with the scale a * b and no zero point: its operand, else null.
Value* quantized_bias(const Value* v, const Value* a, const Value* b) {
  const Node* n = v ? made_by(v, "DequantizeLinear") : nullptr;
  if (!n || n->inputs[0]->type.dtype != DType::I32 || n->attr_int("block_size", 0) != 0) return nullptr;
  const Value* scale = n->inputs[1];
  if (!scale->constant || !a->constant || !b->constant || !all_equal(n->inputs.size() > 2 ? n->inputs[2] : nullptr, 0))
    return nullptr;
  const int64_t parts = b->constant->size(), own = scale->constant->size();
  if (a->constant->size() != 1 || (own != parts && parts != 1)) return nullptr;
  const int64_t axis = n->attr_int("axis", 1), rank = rank_of(v);
  if (own != 1 && (axis < 0 ? axis + rank : axis) != rank - 1) return nullptr;
  for (int64_t i = 0; i < scale->constant->size(); i++) {
    const double expected = a->constant->as_double(0) * b->constant->as_double(parts == 1 ? 0 : i);
    if (!is_rounded(scale->constant->as_double(i), expected, DType::F32)) return nullptr;
  }
  return n->inputs[0];
}

class Realization {
 public:
  Realization(Graph& g, Node* n, bool picks_precision)
      : g_(g), n_(n), picks_precision_(picks_precision), base_(n->outputs[0]->name) {}

  bool run() {
    if (n_->outputs.size() != 1 || !n_->outputs[0]->type.is_static_tensor() || n_->outputs[0]->type.dtype != DType::F32)
      return false;
    if (n_->is("Conv")) return convolution();
    if (n_->is("AveragePool")) return average();
    if (n_->is("MatMul")) return product(n_->inputs[1], false, nullptr);
    if (!n_->is("Gemm") || n_->attr_int("transA", 0) != 0 || n_->attr_float("alpha", 1) != 1 ||
        n_->attr_float("beta", 1) != 1)
      return false;
    return product(n_->inputs[1], n_->attr_int("transB", 0) != 0, n_->inputs.size() > 2 ? n_->inputs[2] : nullptr);
  }

 private:
  Value* op(const char* name, std::vector<Value*> in, std::string_view suffix, Attrs attrs = {}) {
    return constant_op(g_, n_, name, std::move(in), derived(base_, suffix), std::move(attrs));
  }
  static std::vector<Value*> operands(const Quantized& a, const Quantized& b) {
    std::vector<Value*> in = {a.x, b.x};
    if (a.zero || b.zero) in.push_back(a.zero);
    if (b.zero) in.push_back(b.zero);
    return in;
  }

  bool convolution() {
    const Quantized a = quantized(n_->inputs[0], -1), b = quantized(n_->inputs[1], 0);
    if (!a.x || !b.x || (!picks_precision_ && !is_known(b))) return false;
    const Dims weights = dims_of(b.x);
    const int64_t terms = num_elements({weights.begin() + 1, weights.end()});
    if (!sum_fits(terms, nullptr)) return false;
    Value* const given = n_->inputs.size() > 2 ? n_->inputs[2] : nullptr;
    Value* whole = quantized_bias(given, a.scale, b.scale);
    if (whole && !sum_fits(terms, whole)) whole = nullptr;
    if (!picks_precision_ && (!given || whole) && requantized(a, b, whole, n_->attrs)) return true;
    std::vector<int64_t> channels(size_t(rank_of(a.x)), 1);
    channels[1] = -1;
    Value* shape = g_.add_constant(derived(base_, "_channels"), int64_constant(channels));
    Value* sum = op("ConvInteger", operands(a, b), "_sum", n_->attrs);
    Value* scale = op("Reshape", {op("Mul", {a.scale, b.scale}, "_scale"), shape}, "_scale_of_channel");
    Value* bias = whole ? whole : given;
    if (bias) bias = op("Reshape", {bias, shape}, "_bias");
    return finish(sum, scale, bias);
  }

  /// A mean is a convolution of each channel with ones, whose scale is one over their number. What the model has just
  /// quantised is then stored in bytes, and where it is padded, whoever makes it writes the border.
  bool average() {
    const Quantized a = picks_precision_ ? Quantized() : quantized(n_->inputs[0], -1);
    const std::vector<int64_t> window = n_->attr_ints("kernel_shape"), dilations = n_->attr_ints("dilations");
    const std::string pad = n_->attr_string("auto_pad", "NOTSET");
    if (!a.x || !made_by(a.x, "QuantizeLinear") || window.empty() || n_->attr_int("ceil_mode", 0) != 0 ||
        (pad != "NOTSET" && pad != "VALID"))
      return false;
    const auto is_padded = [&](const std::vector<int64_t>& pads) {
      return std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p != 0; });
    };
    if (n_->attr_int("count_include_pad", 0) == 0 && is_padded(n_->attr_ints("pads"))) return false;
    const int64_t channels = dims_of(a.x)[1], terms = num_elements(window);
    if (!sum_fits(terms, nullptr) || channels == 0) return false;
    Dims dims = {channels, 1};
    dims.insert(dims.end(), window.begin(), window.end());
    const std::vector<int8_t> ones(size_t(num_elements(dims)), 1);
    Quantized b;
    b.x = g_.add_constant(derived(base_, "_ones"), make_constant(DType::I8, dims, ones.data()));
    b.scale = g_.add_constant(derived(base_, "_share"), scalar_constant(DType::F32, 1 / double(terms)));
    Attrs attrs = {{"group", channels}};
    for (const char* name : {"kernel_shape", "strides", "pads", "dilations"})
      if (const auto given = n_->attrs.find(name); given != n_->attrs.end()) attrs.insert(*given);
    return requantized(a, b, nullptr, std::move(attrs));
  }

  /// The node that quantises the result, behind an activation that its range implies; null if there is another reader.
  Node* quantizer() const {
    Node* q = only_user(n_->outputs[0]);
    const bool bounds = q && (q->is("Relu") || q->is("Clip")) && q->inputs[0] == n_->outputs[0];
    const Node* activation = bounds ? q : nullptr;
    if (activation) q = only_user(activation->outputs[0]);
    if (!q || !q->is("QuantizeLinear") || q->attr_int("block_size", 0) != 0 || q->attr_int("precision", 0) > 1)
      return nullptr;
    const DType t = q->outputs[0]->type.dtype;
    const auto scale = scalar_of(q->inputs[1]);
    const auto zero = q->inputs.size() > 2 && q->inputs[2] ? scalar_of(q->inputs[2]) : 0.0;
    if ((t != DType::I8 && t != DType::U8) || !scale || !zero || q->inputs[1]->type.dtype != DType::F32) return nullptr;
    if (!activation) return q;
    auto limit = [&](size_t i) {
      return activation->inputs.size() > i && activation->inputs[i] ? scalar_of(activation->inputs[i]) : 1e30;
    };
    const auto low = activation->is("Relu")                                   ? 0.0
                     : activation->inputs.size() > 1 && activation->inputs[1] ? scalar_of(activation->inputs[1])
                                                                              : -1e30;
    const auto high = activation->is("Relu") ? 1e30 : limit(2);
    if (!low || !high) return nullptr;
    const bool implied = std::nearbyint(*low / *scale) + *zero <= double(*as_const_int(lowest(t))) &&
                         std::nearbyint(*high / *scale) + *zero >= double(*as_const_int(highest(t)));
    return implied ? q : nullptr;
  }

  // Known scales must not meet in a number that is infinite or zero.
  static bool has_usual_scale(const Quantized& a, const Quantized& b, const Value* result) {
    for (const Value* v : {static_cast<const Value*>(a.scale), static_cast<const Value*>(b.scale), result})
      if (v->constant && !is_moderate(v->constant, 30)) return false;
    return true;
  }

  bool requantized(const Quantized& a, const Quantized& b, Value* bias, Attrs attrs) {
    Node* q = quantizer();
    if (!q || !has_usual_scale(a, b, q->inputs[1])) return false;
    auto zero = [&](Value* given, DType t, std::string_view suffix) {
      return given ? given : g_.add_constant(derived(base_, suffix), scalar_constant(t, 0));
    };
    std::vector<Value*> in = {
        a.x,
        a.scale,
        zero(a.zero, a.x->type.dtype, "_zero"),
        b.x,
        b.scale,
        zero(b.zero, b.x->type.dtype, "_weight_zero"),
        q->inputs[1],
        zero(q->inputs.size() > 2 ? q->inputs[2] : nullptr, q->outputs[0]->type.dtype, "_result_zero")};
    if (bias) in.push_back(bias);
    Value* y = add_op(g_, q, "QLinearConv", std::move(in), q->outputs[0]->name, std::move(attrs));
    add_origins(y->producer->origins, n_->origins);
    replace_node(g_, q, y);
    return true;
  }

  bool product(Value* right, bool transposed, Value* bias) {
    const Node* made = made_by(right, "DequantizeLinear");
    if (!made || rank_of(made->inputs[0]) < 2 || rank_of(n_->inputs[0]) < 2) return false;
    const int rank = rank_of(right);
    const Quantized a = quantized(n_->inputs[0], -1), found = quantized(right, rank == 2 ? (transposed ? 0 : 1) : -1);
    if (!a.x || !found.x || (!picks_precision_ && !is_known(found))) return false;
    Quantized b = found;
    if (b.zero && !has_one_element(dims_of(b.zero)) && !b.zero->is_constant()) return false;
    const int64_t terms = dims_of(n_->inputs[0]).back();
    if (!sum_fits(terms, nullptr) || rank_of(a.scale) > 1 || rank_of(b.scale) > 1) return false;
    if (transposed) b.x = op("Transpose", {b.x}, "_factor", {{"perm", std::vector<int64_t>{1, 0}}});
    Value* sum = op("MatMulInteger", operands(a, b), "_sum");
    Value* whole = quantized_bias(bias, a.scale, b.scale);
    if (whole && !sum_fits(terms, whole)) whole = nullptr;
    return finish(sum, op("Mul", {a.scale, b.scale}, "_scale"), whole ? whole : bias);
  }

  bool finish(Value* sum, Value* scale, Value* bias) {
    if (bias && bias->type.dtype == DType::I32) {
      sum = op("Add", {sum, bias}, "_sum_biased");
      bias = nullptr;
    }
    Value* real = op("Cast", {sum}, "_sum_real", {{"to", int64_t(DType::F32)}});
    Value* y = op("Mul", {real, scale}, bias ? "_scaled" : "");
    if (bias) y = op("Add", {y, bias}, "");
    replace_node(g_, n_, y);
    return true;
  }

  Graph& g_;
  Node* n_;
  const bool picks_precision_;
  const ModelText base_;
};

/// Does the operator only choose among the elements of its first operand, so that integers go through it as their
/// floats do?
bool only_chooses(const Node& n) { return has_trait(n, OpTrait::Chooses) && n.outputs.size() == 1; }

/// Between DequantizeLinear and QuantizeLinear with the same scale and zero point, such an operator works on the
/// integers.
void choose_among_integers(Graph& g, Node* n) {
  const Quantized x = quantized(n->inputs[0], -1, has_8_or_16_bits);
  Node* q = x.x ? only_user(n->outputs[0]) : nullptr;
  if (!q || !q->is("QuantizeLinear") || q->inputs[0] != n->outputs[0] || q->inputs[1] != x.scale ||
      q->attr_int("precision", 0) > 1)
    return;
  Value* zero = q->inputs.size() > 2 ? q->inputs[2] : nullptr;
  if (zero != x.zero || q->outputs[0]->type.dtype != x.x->type.dtype || !has_one_element(dims_of(x.scale))) return;
  if (!is_moderate(x.scale->constant) || is_scalar(x.scale, 0)) return;
  if (n->is("MaxPool") && *scalar_of(x.scale) < 0) return;
  std::vector<Value*> in = n->inputs;
  in[0] = x.x;
  Value* y = add_op(g, q, n->op, std::move(in), q->outputs[0]->name, n->attrs);
  add_origins(y->producer->origins, n->origins);
  replace_node(g, q, y);
}

/// A Concat whose result is quantised is one of quantised parts: those that have the result's scale and zero point are
/// what they are, others are quantised each for itself, with the same rounding. That pays where they are dequantised
/// just before: both become one kernel. One part may be another, for which the quantised result had its kernel.
void concat_integers(Graph& g, Node* n) {
  Node* q = only_user(n->outputs[0]);
  if (!q || !q->is("QuantizeLinear") || q->inputs[0] != n->outputs[0]) return;
  Value *scale = q->inputs[1], *zero = q->inputs.size() > 2 ? q->inputs[2] : nullptr;
  const auto s = scalar_of(scale);
  const DType t = q->outputs[0]->type.dtype;
  if (!s || *s == 0 || !is_moderate(scale->constant) || !has_8_or_16_bits(t) || (zero && !scalar_of(zero))) return;
  int others = 0;
  for (const Value* v : n->inputs) others += quantized(v, -1, has_8_or_16_bits).x ? 0 : 1;
  if (others > 1 || n->inputs.size() < 2) return;
  std::vector<Value*> parts;
  for (Value* v : n->inputs) {
    const Quantized x = quantized(v, -1, has_8_or_16_bits);
    if (x.x && x.x->type.dtype == t && x.scale == scale && x.zero == zero && q->attr_int("precision", 0) <= 1) {
      parts.push_back(x.x);
      continue;
    }
    // A node of its own: others may read the floats.
    Value* real =
        x.x ? add_op(g, q, "DequantizeLinear", v->producer->inputs, derived(v->name, "_again"), v->producer->attrs) : v;
    std::vector<Value*> in = q->inputs;
    in[0] = real;
    parts.push_back(add_op(g, q, "QuantizeLinear", std::move(in), derived(v->name, "_quantized"), q->attrs));
  }
  Value* y = add_op(g, q, "Concat", std::move(parts), q->outputs[0]->name, n->attrs);
  add_origins(y->producer->origins, n->origins);
  replace_node(g, q, y);
}

}  // namespace

void realize_quantization(Graph& g, PassContext& cx) {
  const bool picks_precision = cx.target.picks_precision;
  if (picks_precision ? cx.options.precision != Precision::Int8 : cx.options.strict_fp) return;
  std::vector<Node*> products, choosers, concats;  // none of them is erased but by itself
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) realize_quantization(*r, cx);
    if (n->domain.empty() && (n->is("Conv") || n->is("MatMul") || n->is("Gemm") || n->is("AveragePool")))
      products.push_back(n.get());
    if (n->domain.empty() && !picks_precision && only_chooses(*n)) choosers.push_back(n.get());
    if (n->is("Concat") && !picks_precision) concats.push_back(n.get());
  }
  for (Node* n : products) Realization(g, n, picks_precision).run();
  for (Node* n : choosers) choose_among_integers(g, n);
  for (Node* n : concats) concat_integers(g, n);
  if (!picks_precision) multiply_blocks(g);  // it erases what made weights
}

}  // namespace tc
