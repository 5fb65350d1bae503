// Axes of sizes that the run chooses stay apart where a model joins them for work on rows only, as PyTorch's addmm and OPT's layers do.
//   r = tc.regroup(x, n, m, nm) {axes = [0, 1], to = [0]}   p = MatMul(r, w)   a = Add(p, r)
//   y = tc.regroup(a, nm, n, m) {axes = [0], to = [0, 1]}                                      ->   p = MatMul(x, w)   y = Add(p, x)
// Joined, rows have to be moved together, and back; apart, each loop ends where its size says.
//
// Preconditions: nobody else reads what is between; it is products with matrices, normalisation of rows and elementwise work, whose
// operands are rows or have one axis at most, the last one; the last axis is neither joined nor counted; all that join and take apart
// name the same counts and sizes.
//
// Needs: types, dynamic_to_static; canonicalize_ops, which writes a Gemm as a product and a sum. Leaves: the same operators.
#include <algorithm>
#include <map>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/passes.h"
#include "passes/graph/pointwise.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

bool is_along_last(const Value* v) { return v && v->type.is_static_tensor() && rank_of(v) <= 1; }

/// Is it normalised along the last axis, row by row?
bool normalises_rows(const Node& n) {
  for (const char* op : {"LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax"})
    if (n.is(op)) return axis_from_front(n.attr_int("axis", -1), n.inputs[0]) == rank_of(n.inputs[0]) - 1;
  return false;
}

/// Operands that are rows, where the node makes each row of its result of these rows alone; none where it needs others.
std::vector<size_t> row_operands(Node& n) {
  if (!n.domain.empty() || n.outputs.size() != 1 || n.inputs.empty() || !n.regions.empty()) return {};
  const Value *x = n.inputs[0], *y = n.outputs[0];
  if (!x || !x->type.is_static_tensor() || !y->type.is_static_tensor() || rank_of(x) != rank_of(y)) return {};
  if (n.is("MatMul")) return rank_of(n.inputs[1]) == 2 ? std::vector<size_t>{0} : std::vector<size_t>();
  std::vector<size_t> rows;
  for (size_t k = 0; k < n.inputs.size(); k++) {
    const Value* v = n.inputs[k];
    if (v && v->type.is_static_tensor() && dims_of(v) == dims_of(y))
      rows.push_back(k);
    else if (!is_along_last(v))
      return {};
  }
  if (normalises_rows(n)) return rows == std::vector<size_t>{0} ? rows : std::vector<size_t>();
  if (n.is("QuantizeLinear") || n.is("DequantizeLinear")) return {};  // their axis is counted from the front
  if (n.is("Einsum")) return {};                                      // names every axis
  return is_pointwise(n) ? rows : std::vector<size_t>();
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

struct RowWork {
  Node* node = nullptr;
  std::vector<size_t> rows;  // operands
};

/// What lies between views that join axes and the one that takes them apart.
class Between {
 public:
  explicit Between(const Node& back) : back_(back) {}

  /// Is `v` made of rows that are apart? In an order in which operands come first.
  bool collect(Value* v) {
    Node* n = v->producer;
    if (!n || work_.size() > kMost) return false;
    if (is_regroup(n)) return undoes(back_, *n);
    if (holds(n)) return true;
    std::vector<size_t> rows = row_operands(*n);
    if (rows.empty()) return false;
    for (const size_t k : rows)
      if (!collect(n->inputs[k])) return false;
    work_.push_back({n, std::move(rows)});
    return true;
  }

  /// Does nobody else read any of it?
  bool is_closed() const {
    const auto stays_inside = [&](const RowWork& w) {
      const Value* y = w.node->outputs[0];
      return y->output_uses == 0 && std::all_of(y->users.begin(), y->users.end(),
                                                [&](const Node* user) { return user == &back_ || holds(user); });
    };
    return !work_.empty() && std::all_of(work_.begin(), work_.end(), stays_inside);
  }

  const std::vector<RowWork>& work() const { return work_; }

 private:
  static constexpr size_t kMost = 64;
  bool holds(const Node* n) const {
    return std::any_of(work_.begin(), work_.end(), [&](const RowWork& w) { return w.node == n; });
  }
  const Node& back_;
  std::vector<RowWork> work_;
};

void keep_apart(Graph& g, Node* back) {
  Between between(*back);
  if (!between.collect(back->inputs[0]) || !between.is_closed()) return;
  std::map<const Value*, Value*> apart;  // looked up only
  for (const auto& [n, rows] : between.work()) {
    std::vector<Value*> inputs = n->inputs;
    for (const size_t k : rows) {
      const Node* made = n->inputs[k]->producer;
      inputs[k] = is_regroup(made) ? made->inputs[0] : apart.at(n->inputs[k]);
    }
    const bool last = n->outputs[0] == back->inputs[0];
    const ModelText name = last ? back->outputs[0]->name : derived(n->outputs[0]->name, "_apart");
    Attrs attrs = n->attrs;
    if (normalises_rows(*n)) attrs["axis"] = int64_t(-1);
    Node* made = insert_for(g, *n, back, n->op, std::move(inputs), {name}, std::move(attrs));
    infer_types(g, *made);
    apart[n->outputs[0]] = made->outputs[0];
  }
  replace_node(g, back, apart.at(back->inputs[0]));
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
