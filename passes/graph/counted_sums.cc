// Sums of products over a counted axis: zeros behind what is counted change none of them.
//   y = MatMul(a, b)    a counted along its columns, b along its rows, both by n   ->   zeros behind both
//   y = Einsum(q, k) {equation = "bid,bjd->ij"}   b counted in both                ->   zeros behind both, along b
//   y = MatMulInteger(a, b, a_zero, b_zero)       a and b counted as in MatMul     ->   a_zero behind a, anything behind b
// It is read off the operator's meaning, whatever it is called: the stages that sum add products of elements, and an axis is summed
// where its index is one that a stage adds over.
//
// Preconditions: all factors that have the index have the same count along it, or one element. Of integers one factor has a single
// zero point.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

namespace tc {
namespace {

/// The loads that are factors of a product; false if it is none.
bool collect_factors(const Expr& e, std::vector<const Load*>& factors) {
  if (const Load* l = as<Load>(e)) return factors.push_back(l), true;
  if (const Cast* c = as<Cast>(e)) return collect_factors(c->value, factors);
  const Apply* a = as<Apply>(e);
  if (!a || a->op != Op::Mul) return false;
  return std::all_of(a->args.begin(), a->args.end(), [&](const Expr& f) { return collect_factors(f, factors); });
}

struct OperandAxis {
  size_t operand = 0;
  int axis = 0;
  auto operator<=>(const OperandAxis&) const = default;
};

/// Axes of operands that are added up together: those behind one index of a stage.
using Summed = std::vector<std::set<OperandAxis>>;

/// Where the axes of buffers come from. Only of elements that are read by the stages' own indices.
class Origins {
 public:
  explicit Origins(const TensorFn& fn) {
    for (size_t k = 0; k < fn.inputs.size(); k++)
      for (size_t d = 0; d < fn.inputs[k]->shape.size(); d++)
        from_[{fn.inputs[k].get(), d}].insert({size_t(fn.operands.empty() ? int(k) : fn.operands[k]), int(d)});
  }

  /// The axes behind each index that the stage adds over; nothing where it adds what is no product.
  std::optional<Summed> see(const Stage& s) {
    std::vector<const Load*> factors;
    if (s.values.size() != 1 || s.nest || !collect_factors(s.values[0], factors)) return std::nullopt;
    if (s.kind == Stage::Kind::Reduce && s.combiner.op != Op::Add) return std::nullopt;
    const auto behind = [&](const Var& v) {
      std::set<OperandAxis> all;
      for (const Load* l : factors)
        for (size_t d = 0; d < l->index.size(); d++)
          if (const VarRef* r = as<VarRef>(l->index[d]); r && r->var == v)
            if (const auto it = from_.find({l->buffer.get(), d}); it != from_.end())
              all.insert(it->second.begin(), it->second.end());
      return all;
    };
    for (size_t d = 0; d < s.axes.size(); d++) from_[{s.outputs.at(0).get(), d}] = behind(s.axes[d].var);
    Summed summed;
    for (const Axis& r : s.raxes) summed.push_back(behind(r.var));
    return summed;
  }

 private:
  std::map<std::pair<const BufferDef*, size_t>, std::set<OperandAxis>> from_;  // looked up only
};

/// Is it one of the operators whose sums are looked at? Others have many stages, and rewrites of their own.
bool is_sum_of_products(const Node& n) { return n.is("MatMul") || n.is("Gemm") || n.is("Einsum"); }

/// The operands of a product of matrices of integers that stand for real numbers.
struct IntegerProduct {
  size_t a = 0, b = 0, a_zero = 0, b_zero = 0;
};

std::optional<IntegerProduct> integer_product(const Node& n) {
  if (n.is("MatMulInteger")) return IntegerProduct{0, 1, 2, 3};
  if (n.is("QLinearMatMul")) return IntegerProduct{0, 3, 2, 5};
  if (n.domain == "com.microsoft" && n.op == "MatMulIntegerToFloat") return IntegerProduct{0, 1, 4, 5};
  return std::nullopt;
}

bool is_single(const Value* v) { return !v || (v->type.is_static_tensor() && has_one_element(dims_of(v))); }

}  // namespace

// Where one factor is its zero point, the product is none.
void BoundedSizes::contract_integers(Graph& g, Node* n) {
  const auto p = integer_product(*n);
  if (!p) return;
  Value *a = operand(*n, p->a), *b = operand(*n, p->b);
  if (!a || !b || rank_of(a) < 1 || rank_of(b) < 1) return;
  const auto along_a = find(a, rank_of(a) - 1), along_b = find(b, std::max(rank_of(b) - 2, 0));
  if (!along_a || !along_b || along_a->count != along_b->count) return;
  Value *a_zero = operand(*n, p->a_zero), *b_zero = operand(*n, p->b_zero);
  if (!is_single(a_zero) && !is_single(b_zero)) return;
  const auto fill = [&](size_t k, Value* x, const BoundedSize& size, Value* zero) {
    g.set_input(n, k, filled(g, n, x, size, "zero", is_single(zero) ? zero : nullptr));
  };
  fill(p->a, a, *along_a, a_zero);
  fill(p->b, b, *along_b, b_zero);
}

void BoundedSizes::contract(Graph& g, Node* n) {
  contract_integers(g, n);
  if (!is_sum_of_products(*n) ||
      std::none_of(n->inputs.begin(), n->inputs.end(), [&](const Value* v) { return v && is_counted(v); }))
    return;
  const TensorFn& fn = tensor_fn(*n);
  Origins origins(fn);
  std::set<OperandAxis> zeroed;
  for (const Stage& s : fn.stages) {
    const auto summed = origins.see(s);
    if (!summed) continue;  // a bias, say: follow() refuses it if it adds up
    for (const std::set<OperandAxis>& together : *summed) {
      std::set<const Value*> counts;
      for (const OperandAxis& a : together) {
        const auto size = find(n->inputs[a.operand], a.axis);
        counts.insert(size ? size->count : nullptr);
      }
      if (counts.size() == 1 && *counts.begin()) zeroed.insert(together.begin(), together.end());
    }
  }
  for (const OperandAxis& a : zeroed) {
    Value* x = n->inputs[a.operand];
    const auto size = find(x, a.axis);
    if (size) g.set_input(n, a.operand, filled(g, n, x, *size, "zero"));
  }
}

}  // namespace tc
