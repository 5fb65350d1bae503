// Elementwise functions tie the shapes of their operands and results together; the ties are followed in a forest of
// values (union-find), in the order of the nodes, so that two operands are known to share a shape before their user is
// looked at.
#include "passes/graph/declared_shapes.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace tc {
namespace {

constexpr std::string_view kUnary[] = {
    "Abs",     "Acos", "Acosh", "Asin",  "Asinh",    "Atan", "Atanh", "Cast",  "Ceil",     "CastLike",   "Cos",
    "Cosh",    "Erf",  "Exp",   "Floor", "Identity", "Log",  "Neg",   "Not",   "Relu",     "Reciprocal", "Round",
    "Sigmoid", "Sign", "Sin",   "Sinh",  "Sqrt",     "Tan",  "Tanh",  "IsNaN", "Softplus", "BitwiseNot"};
constexpr std::string_view kBroadcast[] = {"Add",        "Sub",   "Mul",   "Div",     "Mod",  "Pow",
                                           "And",        "Or",    "Xor",   "Max",     "Min",  "Sum",
                                           "Mean",       "Where", "Equal", "Greater", "Less", "GreaterOrEqual",
                                           "LessOrEqual"};

template <size_t N>
bool among(const std::string_view (&names)[N], const Node& n) {
  return n.domain.empty() && std::find(std::begin(names), std::end(names), n.op) != std::end(names);
}

class Ties {
 public:
  explicit Ties(const Graph& g) : parent_(size_t(g.value_ids())) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const auto& n : g.nodes()) node(*n);
  }
  int root(const Value* v) {
    int id = v->id;
    while (parent_[size_t(id)] != id) id = parent_[size_t(id)] = parent_[size_t(parent_[size_t(id)])];
    return id;
  }

 private:
  void node(const Node& n) {
    if (n.outputs.empty() || !n.outputs[0]) return;
    if (among(kUnary, n)) {
      if (!n.inputs.empty() && n.inputs[0]) tie(n.outputs[0], n.inputs[0]);
      return;
    }
    if (!among(kBroadcast, n)) return;
    const Value* shared = nullptr;
    for (const Value* v : n.inputs) {
      if (!v) return;
      if (v->type.is_static_tensor() && v->type.shape.empty()) continue;
      if (shared && root(shared) != root(v)) return;
      shared = v;
    }
    if (shared) tie(n.outputs[0], shared);
  }
  void tie(const Value* a, const Value* b) { parent_[size_t(root(a))] = root(b); }

  std::vector<int> parent_;
};

}  // namespace

void spread_declared_shapes(Graph& g) {
  Ties ties(g);
  std::vector<const Value*> declared(size_t(g.value_ids()), nullptr);
  for (const auto& v : g.values())
    if (v->type.is_static_tensor() && !declared[size_t(ties.root(v.get()))])
      declared[size_t(ties.root(v.get()))] = v.get();
  for (const auto& v : g.values()) {
    const Value* from = declared[size_t(ties.root(v.get()))];
    if (from && v->producer && v->type.is_tensor() && !v->type.is_static_tensor())
      g.set_type(v.get(), ValueType::tensor(v->type.dtype, from->type.shape));
  }
}

}  // namespace tc
