// Writes the quantised operators of ONNX Runtime that have a form in floats as that form between DequantizeLinear and
// QuantizeLinear, which is what they mean:
//   y = QLinearAdd(a, sa, za, b, sb, zb, sy, zy)   ->   y = QuantizeLinear(Add(DequantizeLinear(a, sa, za),
//                                                                              DequantizeLinear(b, sb, zb)), sy, zy)
// and QLinearMul, QLinearLeakyRelu, QLinearSigmoid, QLinearSoftmax, QLinearAveragePool, QLinearGlobalAveragePool and
// QLinearConcat likewise. What passes know of the operators of floats (layouts, fusion, which integers may stay integers) they know
// of these then. Results are the same to the bit: both are defined by the same three steps.
//
// Preconditions: bytes; each scale and zero point is one known number; channels come second (channels_last = 0); a softmax is
// one along its axis alone, as since operator set 13.
//
// Needs: types. Leaves: none of these operators that meet the preconditions.
#include <algorithm>

#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

struct Form {
  const char* quantised;
  const char* real;
  int first, operands;  // where (x, scale, zero point) begin, and how many there are; 0: until the end
  int result;           // where the result's scale and zero point are
};

constexpr Form kForms[] = {
    {"QLinearAdd", "Add", 0, 2, 6},
    {"QLinearMul", "Mul", 0, 2, 6},
    {"QLinearLeakyRelu", "LeakyRelu", 0, 1, 3},
    {"QLinearSigmoid", "Sigmoid", 0, 1, 3},
    {"QLinearSoftmax", "Softmax", 0, 1, 3},
    {"QLinearAveragePool", "AveragePool", 0, 1, 3},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", 0, 1, 3},
    {"QLinearConcat", "Concat", 2, 0, 0},
};

bool is_byte(const Value* v) {
  return v && v->type.is_static_tensor() && (v->type.dtype == DType::I8 || v->type.dtype == DType::U8);
}

class Expansion {
 public:
  Expansion(Graph& g, Node* n, const Form& form) : g_(g), n_(n), form_(form), base_(n->outputs[0]->name) {}

  void run() {
    const size_t parts = form_.operands > 0 ? size_t(form_.operands) : (n_->inputs.size() - size_t(form_.first)) / 3;
    if (!is_byte(n_->outputs[0]) || n_->attr_int("channels_last", 0) != 0 || !is_along_one_axis()) return;
    for (size_t k = 0; k < parts; k++)
      if (!is_byte(operand(k)) || !is_known(first(k) + 1) || !is_known(first(k) + 2)) return;
    const size_t result = size_t(form_.result);
    if (!is_known(result) || !is_known(result + 1)) return;
    std::vector<Value*> real;
    for (size_t k = 0; k < parts; k++) {
      std::vector<Value*> in = {operand(k), scalar(first(k) + 1)};
      if (Value* zero = scalar(first(k) + 2)) in.push_back(zero);
      real.push_back(add_op(g_, n_, "DequantizeLinear", std::move(in), derived(base_, "_real_" + to_text(int64_t(k)))));
    }
    Attrs attrs = n_->attrs;
    attrs.erase("channels_last");
    attrs.erase("opset");
    Value* y = add_op(g_, n_, form_.real, std::move(real), derived(base_, "_real"), std::move(attrs));
    Value* zero = scalar(result + 1);
    if (!zero) zero = g_.add_constant(derived(base_, "_zero"), scalar_constant(n_->outputs[0]->type.dtype, 0));
    replace_node(g_, n_, add_op(g_, n_, "QuantizeLinear", {y, scalar(result), zero}, base_));
  }

 private:
  size_t first(size_t k) const { return size_t(form_.first) + 3 * k; }
  Value* input(size_t i) const { return i < n_->inputs.size() ? n_->inputs[i] : nullptr; }
  Value* operand(size_t k) const { return input(first(k)); }

  bool is_along_one_axis() const {
    const int axis = int(n_->attr_int("axis", -1));
    return std::string_view(form_.real) != "Softmax" || n_->attr_int("opset", 13) >= 13 || axis == -1 ||
           axis + 1 == rank_of(n_->inputs[0]);
  }

  /// One number that is known, or an absent zero point.
  bool is_known(size_t i) const { return !input(i) || scalar_of(input(i)).has_value(); }

  /// The number as a tensor without axes; null for an absent one.
  Value* scalar(size_t i) {
    Value* v = input(i);
    if (!v || rank_of(v) == 0) return v;
    return g_.add_constant(derived(v->name, "_number"), scalar_constant(v->type.dtype, *scalar_of(v)));
  }

  Graph& g_;
  Node* n_;
  const Form& form_;
  const ModelText base_;
};

}  // namespace

void qlinear_to_qdq(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) qlinear_to_qdq(*r, cx);
    if (n->domain != "com.microsoft" || n->outputs.size() != 1 || !n->outputs[0]) continue;
    for (const Form& f : kForms)
      if (n->op == f.quantised) {
        Expansion(g, n, f).run();
        break;
      }
  }
}

}  // namespace tc
