#include "passes/graph/multiply_blocks.h"

#include <algorithm>
#include <map>

#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr int64_t kBytes = 4;  // accuracy_level
constexpr int64_t kWordBits = 32, kFewestColumns = 4;

/// Is it made of constants alone, in a few steps?
bool is_made_of_constants(const Value* v, int steps = 4) {
  if (!v || v->is_constant()) return true;
  const Node* n = v->producer;
  if (!n || steps == 0 || !n->regions.empty() || is_random(*n)) return false;
  return std::all_of(n->inputs.begin(), n->inputs.end(),
                     [&](const Value* in) { return is_made_of_constants(in, steps - 1); });
}
bool is_known(const Value* v) { return is_made_of_constants(v); }

bool allows_bytes(const Node* n) { return n->attr_int("accuracy_level", 0) == kBytes; }

Value* input(const Node* n, size_t k) { return k < n->inputs.size() ? n->inputs[k] : nullptr; }

/// Numbers of a block of the left factor: a divisor of `block`, the numbers with one scale (0: all `depth` of them), of which
/// the template takes whole words and, of long ones, 32 at a time. 0: there is none.
int64_t part_of_block(int64_t block, int64_t depth, int64_t bits) {
  constexpr int64_t kLongest = 128, kSteps = 32;
  if (block == 0) return std::min(kLongest, (depth + kSteps - 1) / kSteps * kSteps);
  for (int64_t part = kLongest; part * bits >= kWordBits; part /= 2)
    if (block % part == 0) return part;
  return 0;
}

/// Weights that are dequantised in front of a product: w[k, n], or w[n, k] if `turned`.
struct Dequantised {
  Node* n = nullptr;
  bool turned = false;
};
Dequantised dequantised(Value* v, bool turned) {
  Node* n = v->producer;
  if (n && n->is("Transpose") && rank_of(v) == 2) {
    const std::vector<int64_t> perm = n->attr_ints("perm", {1, 0});
    if (perm[0] == 1) turned = !turned;
    n = n->inputs[0]->producer;
  }
  if (!n || !n->is("DequantizeLinear") || rank_of(n->inputs[0]) != 2) return {};
  return {n, turned};
}

class Products {
 public:
  explicit Products(Graph& g) : g_(g) {}

  void multiply(Node* n) {
    const bool experts = n->domain == "tc" && n->op == "expert_matmul";
    if (!n->is("MatMul") && !n->is("Gemm") && !experts) return;
    n_ = n;
    const Value* y = n->outputs[0];
    if (y->type.dtype != DType::F32 || !y->type.is_static_tensor()) return;
    Value* x = n->inputs[0];
    if (x->type.dtype != DType::F32 || !x->type.is_static_tensor()) return;
    if (n->is("MatMul")) multiply_packed(x);
    if (experts) return multiply_experts(x);
    if (n_) multiply_dequantised(x);
  }

 private:
  struct Bytes {
    Value *q = nullptr, *s = nullptr;
  };

  Value* op(const char* name, std::vector<Value*> in, const ModelText& made, Attrs attrs, const Dims& d, DType t) {
    Node* n = insert_for(g_, *n_, n_, name, std::move(in), {made}, std::move(attrs), "tc");
    g_.set_type(n->outputs[0], ValueType::tensor(t, to_shape(d)));
    return n->outputs[0];
  }

  /// x in blocks, as bytes.
  Bytes quantised(Value* x, int64_t block) {
    Bytes& b = quantised_[{x, block}];
    if (b.q) return b;
    const ModelText& base = n_->outputs[0]->name;
    const Attrs attrs = {{"block_size", block}};
    Dims d = dims_of(x);
    d.back() = (d.back() + block - 1) / block;
    b.s = op("block_scales", {x}, derived(base, "_scales"), attrs, d, DType::F32);
    d.push_back(block);
    b.q = op("quantize_blocks", {x, b.s}, derived(base, "_bytes"), attrs, d, DType::I8);
    return b;
  }

  void finish(const char* name, std::vector<Value*> in, Attrs attrs, Value* bias = nullptr) {
    Value* old = n_->outputs[0];
    Value* y = op(name, std::move(in), derived(old->name, "_blocks"), std::move(attrs), dims_of(old), DType::F32);
    if (bias) y = add_op(g_, n_, "Add", {y, bias}, derived(old->name, "_biased"));
    replace_node(g_, n_, y);
    n_ = nullptr;
  }

  void multiply_packed(Value* x) {
    const Node* w = n_->inputs[1]->producer;
    if (!w || w->domain != "tc" || w->op != "unpack_weights" || !allows_bytes(w)) return;
    if (!std::all_of(w->inputs.begin(), w->inputs.end(), [](const Value* v) { return !v || v->is_constant(); })) return;
    if (input(w, 3)) return;  // blocks whose k are not neighbours
    Value* zero = input(w, 2);
    const int64_t block = w->attr_int("block_size", 0), bits = w->attr_int("bits", 4), columns = w->attr_int("N", 0);
    if (bits != 4 && bits != 8) return;
    if ((zero && zero->type.dtype != DType::U8) || block * bits % kWordBits != 0 || columns < kFewestColumns) return;
    const Bytes b = quantised(x, block);
    std::vector<Value*> in = {b.q, b.s, w->inputs[0], w->inputs[1]};
    if (zero) in.push_back(zero);
    finish("matmul_blocks", std::move(in), {{"N", columns}, {"bits", bits}});
  }

  void multiply_dequantised(Value* x) {
    const bool gemm = n_->is("Gemm");
    if (gemm && (n_->attr_int("transA", 0) != 0 || n_->attr_float("alpha", 1) != 1 || n_->attr_float("beta", 1) != 1))
      return;
    const auto [w, turned] = dequantised(n_->inputs[1], gemm && n_->attr_int("transB", 0) != 0);
    if (!w || !allows_bytes(w) || !std::all_of(w->inputs.begin(), w->inputs.end(), is_known)) return;
    Value *numbers = w->inputs[0], *scale = w->inputs[1], *zero = input(w, 2);
    const DType t = numbers->type.dtype;
    if (!is_int(t) || info(t).bits > 8 || scale->type.dtype != DType::F32 || w->outputs[0]->type.dtype != DType::F32)
      return;
    const int64_t bits = info(t).bits <= 4 ? 4 : 8;
    const Node* left = x->producer;
    if (left && bits == 8 && left->is("DequantizeLinear") && info(left->inputs[0]->type.dtype).bits == 8) return;
    const Dims d = dims_of(numbers);
    int64_t axis = w->attr_int("axis", 1), block = w->attr_int("block_size", 0);
    if (axis < 0) axis += 2;
    const bool one = has_one_element(dims_of(scale)), along_sum = block > 0;
    if (!one && axis != (turned == along_sum ? 1 : 0)) return;
    const int64_t depth = d[turned ? 1 : 0], part = part_of_block(one || block >= depth ? 0 : block, depth, bits);
    if (part == 0 || depth == 0 || d[turned ? 0 : 1] < kFewestColumns || rank_of(x) < 1) return;
    const Bytes b = quantised(x, part);
    std::vector<Value*> in = {b.q, b.s, numbers, scale};
    if (zero) in.push_back(zero);
    finish("matmul_dequantized", std::move(in), {{"axis", axis}, {"block_size", block}, {"transB", int64_t(turned)}},
           gemm ? input(n_, 2) : nullptr);
  }

  void multiply_experts(Value* x) {
    if (!allows_bytes(n_)) return;
    Value *chosen = n_->inputs[1], *bias = input(n_, 3), *scales = input(n_, 4), *zeros = input(n_, 5);
    const Node* w = n_->inputs[2]->producer;
    if (!scales || !w || w->domain != "tc" || w->op != "part_numbers") return;
    Value* packed = w->inputs[0];
    const int64_t bits = w->attr_int("bits", 4), block = w->attr_int("block_size", 0);
    const int64_t part = part_of_block(block, dims_of(x).back(), bits);
    if (bits == 2 || part == 0 || dims_of(packed)[1] < kFewestColumns) return;
    if (!is_known(packed) || !is_known(scales) || !is_known(zeros)) return;
    const Bytes b = quantised(x, part);
    finish("expert_matmul_blocks", {b.q, b.s, chosen, packed, bias, scales, zeros},
           {{"bits", bits}, {"block_size", block}});
  }

  Graph& g_;
  Node* n_ = nullptr;                                            // the product at hand; null: it is gone
  std::map<std::pair<const Value*, int64_t>, Bytes> quantised_;  // looked up only
};

}  // namespace

void multiply_blocks(Graph& g) {
  std::vector<Node*> nodes;
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) multiply_blocks(*r);
    nodes.push_back(n.get());
  }
  Products products(g);
  for (Node* n : nodes) products.multiply(n);
}

void allow_byte_products(Graph& g) {
  const auto has_weights = [](const Node& n) {
    if (n.domain == "com.microsoft") return n.op == "MatMulNBits" || n.op == "QMoE";
    if (n.domain == "tc") return n.op == "unpack_weights" || n.op == "expert_matmul";
    return n.is("DequantizeLinear") && is_known(n.inputs[0]);
  };
  for (const auto& n : g.nodes()) {
    for (const auto& r : n->regions) allow_byte_products(*r);
    if (has_weights(*n)) n->attrs["accuracy_level"] = kBytes;
  }
}

}  // namespace tc
