// Moves a Reshape behind elementwise work, so that the sum of products before it finds what belongs to its epilogue.
//   c = tc.fused(x, w)  matmul                    c = tc.fused(x, w)  matmul
//   r = Reshape(c, [1, 197, 768])                 s = Reshape(y, [197, 768])
//   z = tc.fused(r, y)  add               ->      a = tc.fused(c, s)  add
//                                                 z = Reshape(a, [1, 197, 768])
// A Reshape moves no data, whatever it stands behind; but fuse_ops joins only nodes whose values are passed directly.
// Taken are Reshapes between a sum of products (or elementwise work on one) and its only reader, whose other operands
// have the same shape or one element.
//
// Preconditions: the work is one stage of one value, which loads the element at its own index or the only one, and
// depends on the index in no other way; the Reshape's result has the shape of the work's; nobody else reads the sum or
// its Reshape.
//
// Needs: to_functions. Leaves: Reshapes of Reshapes and of operands, for compose_moves.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

bool has_one_result(const Node* n) { return is_fused(n) && n->outputs.size() == 1; }

// Does every load of the stage read the element of its own point, or the only one?
bool is_elementwise(const Node* n) {
  if (!has_one_result(n) || n->fn->stages.size() != 1 || !n->outputs[0]->type.is_static_tensor()) return false;
  const Stage& s = n->fn->stages[0];
  if (s.kind != Stage::Kind::Compute || s.scan >= 0 || s.values.size() != 1) return false;
  bool ok = true;
  walk(s.values[0], [&](const Expr& e) {
    const Load* l = as<Load>(e);
    if (!l) return ok = ok && !as<VarRef>(e);
    if (!is_static(l->buffer->shape)) return ok = false;
    const bool single = has_one_element(static_dims(l->buffer->shape));
    ok = ok && (single || l->buffer->shape == s.outputs[0]->shape);
    for (size_t d = 0; ok && !single && d < l->index.size(); ++d) {
      const VarRef* v = as<VarRef>(l->index[d]);
      ok = (v && v->var == s.axes[d].var) || l->buffer->shape[d] == Dim(1);
    }
    return false;
  });
  return ok;
}

// Values that are sums of products, or elementwise work on one that nothing else reads. Nodes are shown to it in order.
class Epilogues {
 public:
  bool has(const Value* v) const { return size_t(v->id) < known_.size() && known_[size_t(v->id)]; }

  void add(const Node* n) {
    if (!has_one_result(n)) return;
    const Value* v = n->outputs[0];
    const Pattern pattern = pattern_of(*n->fn);
    const bool elementwise = pattern == Pattern::Elementwise || pattern == Pattern::Broadcast;
    const bool goes_on = elementwise && std::any_of(n->inputs.begin(), n->inputs.end(), [&](const Value* x) {
                           return only_user(x) == n && x->type == v->type && has(x);
                         });
    if (size_t(v->id) >= known_.size()) known_.resize(size_t(v->id) + 1);
    known_[size_t(v->id)] = goes_on || pattern == Pattern::Contraction;
  }

 private:
  std::vector<bool> known_;  // by id
};

// The Reshape among n's operands that may go behind n.
Node* reshape_before(const Node* n, const Epilogues& epilogues) {
  for (const Value* v : n->inputs) {
    Node* r = made_by(v, "Reshape");
    if (!r || only_user(v) != n || only_user(r->inputs[0]) != r || !r->inputs[0]->type.is_static_tensor()) continue;
    const Dims from = dims_of(r->inputs[0]), to = dims_of(v);
    if (from != to && to == dims_of(n->outputs[0]) && epilogues.has(r->inputs[0])) return r;
  }
  return nullptr;
}

// The elementwise function on tensors of another shape.
std::shared_ptr<const TensorFn> reshaped(const TensorFn& fn, const Shape& shape) {
  TensorFn to;
  Stage s = fn.stages[0];
  s.axes.clear();
  Exprs point;
  for (const Dim& d : shape) {
    s.axes.push_back({make_var("i" + to_text(int64_t(s.axes.size()))), d});
    point.emplace_back(s.axes.back().var);
  }
  BufferMap buffers;
  for (const Buffer& b : fn.inputs) {
    const bool whole = b->shape == s.outputs[0]->shape && !has_one_element(static_dims(b->shape));
    to.inputs.push_back(whole ? make_buffer(b->name, b->dtype, shape) : b);  // what nothing reads has any shape
    buffers[b.get()] = to.inputs.back();
  }
  s.values[0] = rewrite(s.values[0], [&](const Expr& e) -> Expr {
    const Load* l = as<Load>(e);
    if (!l) return {};
    const Buffer b = buffers.at(l->buffer.get());
    return b == l->buffer ? load(b, Exprs(l->index.size(), Expr(0))) : load(b, point);
  });
  s.outputs = {make_buffer(s.outputs[0]->name, s.outputs[0]->dtype, shape)};
  to.outputs = s.outputs;
  to.stages = {std::move(s)};
  to.operands = fn.operands;
  return std::make_shared<const TensorFn>(instantiate(to, to.inputs));
}

Value* reshape(Graph& g, Node* before, Value* v, const ValueType& type, const ModelText& name) {
  Value* shape = g.add_constant(derived(name, "_shape"), int64_constant(static_dims(type.shape)));
  Node* r = g.insert(before, "Reshape", {v, shape}, {name}, sizes_as_given(v));
  r->origins = before->origins;
  ValueType t = v->type;
  t.shape = type.shape;
  g.set_type(r->outputs[0], t);
  return r->outputs[0];
}

// Returns the node that takes the place of n.
Node* sink(Graph& g, Node* n, Node* before) {
  Value *z = n->outputs[0], *c = before->inputs[0];
  std::vector<Value*> inputs;
  for (Value* v : n->inputs) {
    const Node* r = made_by(v, "Reshape");
    if (dims_of(v) == dims_of(z) && !has_one_element(dims_of(v)))
      v = r && dims_of(r->inputs[0]) == dims_of(c) ? r->inputs[0]
                                                   : reshape(g, n, v, c->type, derived(v->name, "_flat"));
    inputs.push_back(v);
  }
  Node* a = g.insert(n, "fused", inputs, {derived(z->name, "_flat")}, {}, "tc");
  a->fn = reshaped(*n->fn, c->type.shape);
  a->name = n->name;
  add_origins(a->origins, n->origins);
  ValueType t = z->type;
  t.shape = c->type.shape;
  g.set_type(a->outputs[0], t);
  g.replace_uses(z, reshape(g, n, a->outputs[0], z->type, z->name));
  erase_unused(g, n);
  return a;
}

}  // namespace

void sink_reshape(Graph& g, PassContext& cx) {
  Epilogues epilogues;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) sink_reshape(*r, cx);
    Node* before = is_elementwise(n) ? reshape_before(n, epilogues) : nullptr;
    epilogues.add(before ? sink(g, n, before) : n);
  }
  g.drop_unused_constants();
}

}  // namespace tc
