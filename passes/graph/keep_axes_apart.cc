// Axes of sizes that the run chooses stay apart where a model joins them for a product of matrices only, as PyTorch's addmm does.
//   r = tc.regroup(x, n, m, nm) {axes = [0, 1], to = [0]}   p = MatMul(r, w)   a = Add(p, b)
//   y = tc.regroup(a, nm, n, m) {axes = [0], to = [0, 1]}                                      ->   p = MatMul(x, w)   y = Add(p, b)
// Joined, rows have to be moved together, and back; apart, each loop ends where its size says.
//
// Preconditions: nobody else reads what is between the two; it is products with matrices and elementwise work, whose other operands
// have one axis at most, the last one; the last axis is neither joined nor counted; both name the same counts and sizes.
//
// Needs: types, dynamic_to_static; canonicalize_ops, which writes a Gemm as a product and a sum. Leaves: the same operators.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

bool is_regroup(const Node* n) { return n->domain == "tc" && n->op == "regroup"; }

/// Work on the rows of its first operand that needs no other of them.
bool works_on_rows(Node& n) {
  if (!n.domain.empty() || n.outputs.size() != 1 || n.inputs.empty() || !n.regions.empty()) return false;
  const Value *x = n.inputs[0], *y = n.outputs[0];
  if (!x || !x->type.is_static_tensor() || !y->type.is_static_tensor() || rank_of(x) != rank_of(y)) return false;
  if (n.is("MatMul")) return rank_of(n.inputs[1]) == 2;
  if (n.attrs.contains("axis") || n.is("QuantizeLinear") || n.is("DequantizeLinear"))
    return false;  // counted from the front
  const auto along_last = [](const Value* v) { return v && v->type.is_static_tensor() && rank_of(v) <= 1; };
  return dims_of(x) == dims_of(y) && std::all_of(n.inputs.begin() + 1, n.inputs.end(), along_last) &&
         pattern_of(tensor_fn(n)) <= Pattern::Broadcast;
}

std::vector<const Value*> counts(const Node& regroup, size_t first, size_t number) {
  const auto begin = regroup.inputs.begin() + std::ptrdiff_t(1 + first);
  return {begin, begin + std::ptrdiff_t(number)};
}

/// Does `back` take apart what `joined` joins, whatever the last axis is by then?
bool undoes(const Node& back, const Node& joined) {
  const auto from = joined.attr_ints("axes"), to = joined.attr_ints("to");
  if (back.attr_ints("axes") != to || back.attr_ints("to") != from) return false;
  if (counts(back, 0, to.size()) != counts(joined, from.size(), to.size()) ||
      counts(back, to.size(), from.size()) != counts(joined, 0, from.size()))
    return false;
  Dims apart = dims_of(joined.inputs[0]), again = back.attr_ints("shape"), rows = joined.attr_ints("shape"),
       same = dims_of(back.inputs[0]);
  const auto is_inner = [](const std::vector<int64_t>& axes, const Dims& dims) {
    return std::all_of(axes.begin(), axes.end(), [&](int64_t a) { return a + 1 < int64_t(dims.size()); });
  };
  if (apart.size() != again.size() || rows.size() != same.size() || !is_inner(from, apart) || !is_inner(to, rows))
    return false;
  if (apart.back() != rows.back()) return false;
  for (Dims* d : {&apart, &again, &rows, &same}) d->pop_back();
  return apart == again && rows == same;
}

void keep_apart(Graph& g, Node* back) {
  std::vector<Node*> work;  // from the last to the first
  Value* v = back->inputs[0];
  while (v->producer && !is_regroup(v->producer) && only_user(v) && works_on_rows(*v->producer)) {
    work.push_back(v->producer);
    v = v->producer->inputs[0];
  }
  const Node* joined = v->producer;
  if (work.empty() || !joined || !is_regroup(joined) || !only_user(work.front()->outputs[0]) || !undoes(*back, *joined))
    return;
  Value* x = joined->inputs[0];
  for (size_t k = work.size(); k-- > 0;) {
    std::vector<Value*> inputs = work[k]->inputs;
    inputs[0] = x;
    const ModelText name = k == 0 ? back->outputs[0]->name : derived(work[k]->outputs[0]->name, "_apart");
    Node* n = insert_for(g, *work[k], back, work[k]->op, std::move(inputs), {name}, work[k]->attrs);
    infer_types(g, *n);
    x = n->outputs[0];
  }
  replace_node(g, back, x);
}

}  // namespace

void keep_axes_apart(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) keep_axes_apart(*r, cx);
    if (is_regroup(n)) keep_apart(g, n);
  }
}

}  // namespace tc
