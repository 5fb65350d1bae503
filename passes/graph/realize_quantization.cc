// Multiplies what a model holds in quantised form as integers, under --precision int8 (CUDA, whose tensor cores do).
//   a = DequantizeLinear(x, sx, zx)  b = DequantizeLinear(w, sw, zw)      i = ConvInteger(x, w, zx, zw)
//   y = Conv(a, b, bias)                                             ->   y = f32(i) * (sx * sw) + bias
// and MatMul and Gemm likewise. x and w have 8 bits; sx is one number, sw one or one for each channel or column of the result.
// What follows (activation, QuantizeLinear) stays, and fusion puts all of it into the kernel of the product.
//
// Rounding: the sum is exact, and rounded once when it becomes f32; then come one rounding for the scale (sx * sw is rounded
// while compiling) and one for the bias. The sum of floats that the model writes rounds every term, so that results differ by
// a few units in the last place, and a QuantizeLinear behind them by one step where its operand is next to a tie. Without
// --precision int8, models mean what they say: the product of floats.
//
// Needs: types, before fold_constant turns quantised weights into floats. Leaves: DequantizeLinear where others read it.
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

struct Quantized {
  Value *x = nullptr, *scale = nullptr, *zero = nullptr;  // x null: another form
};

/// v = DequantizeLinear(x, scale, zero), with one scale or one for each element of `axis` (< 0: only one).
Quantized quantized(const Value* v, int axis) {
  const Node* n = v ? made_by(v, "DequantizeLinear") : nullptr;
  if (!n || v->type.dtype != DType::F32 || n->attr_int("block_size", 0) != 0) return {};
  Value *x = n->inputs[0], *scale = n->inputs[1];
  if ((x->type.dtype != DType::I8 && x->type.dtype != DType::U8) || scale->type.dtype != DType::F32) return {};
  if (!x->type.is_static_tensor() || !scale->type.is_static_tensor()) return {};
  int64_t along = n->attr_int("axis", 1);
  if (along < 0) along += rank_of(x);
  if (num_elements(dims_of(scale)) != 1 && (rank_of(scale) != 1 || along != axis)) return {};
  return {x, scale, n->inputs.size() > 2 ? n->inputs[2] : nullptr};
}

class Realization {
 public:
  Realization(Graph& g, Node* n) : g_(g), n_(n), base_(n->outputs[0]->name) {}

  bool run() {
    if (n_->outputs.size() != 1 || !n_->outputs[0]->type.is_static_tensor() || n_->outputs[0]->type.dtype != DType::F32) return false;
    if (n_->is("Conv")) return convolution();
    if (n_->is("MatMul")) return product(n_->inputs[1], false, nullptr);
    if (!n_->is("Gemm") || n_->attr_int("transA", 0) != 0 || n_->attr_float("alpha", 1) != 1 || n_->attr_float("beta", 1) != 1) return false;
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
    if (!a.x || !b.x) return false;
    std::vector<int64_t> channels(size_t(rank_of(a.x)), 1);
    channels[1] = -1;
    Value* shape = g_.add_constant(derived(base_, "_channels"), int64_constant(channels));
    Value* sum = op("ConvInteger", operands(a, b), "_sum", n_->attrs);
    Value* scale = op("Reshape", {op("Mul", {a.scale, b.scale}, "_scale"), shape}, "_scale_of_channel");
    Value* bias = n_->inputs.size() > 2 && n_->inputs[2] ? op("Reshape", {n_->inputs[2], shape}, "_bias") : nullptr;
    return finish(sum, scale, bias);
  }

  bool product(Value* right, bool transposed, Value* bias) {
    const Node* made = made_by(right, "DequantizeLinear");
    if (!made || rank_of(made->inputs[0]) < 2 || rank_of(n_->inputs[0]) < 2) return false;
    const int rank = rank_of(right);
    const Quantized a = quantized(n_->inputs[0], -1), found = quantized(right, rank == 2 ? (transposed ? 0 : 1) : -1);
    if (!a.x || !found.x) return false;
    Quantized b = found;
    if (b.zero && num_elements(dims_of(b.zero)) != 1 && !b.zero->is_constant()) return false;
    if (transposed) b.x = op("Transpose", {b.x}, "_factor", {{"perm", std::vector<int64_t>{1, 0}}});
    Value* sum = op("MatMulInteger", operands(a, b), "_sum");
    return finish(sum, op("Mul", {a.scale, b.scale}, "_scale"), bias);
  }

  bool finish(Value* sum, Value* scale, Value* bias) {
    Value* real = op("Cast", {sum}, "_sum_real", {{"to", int64_t(DType::F32)}});
    Value* y = op("Mul", {real, scale}, bias ? "_scaled" : "");
    if (bias) y = op("Add", {y, bias}, "");
    replace_node(g_, n_, y);
    return true;
  }

  Graph& g_;
  Node* n_;
  const ModelText base_;
};

}  // namespace

void realize_quantization(Graph& g, PassContext& cx) {
  if (!cx.target.is_cuda() || cx.options.precision != Precision::Int8) return;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) realize_quantization(*r, cx);
    if (n->domain.empty()) Realization(g, n).run();
  }
}

}  // namespace tc
