// Replaces every operator by its meaning: a node "tc.fused" whose `fn` is its TensorFn. From here on the compiler knows
// no operators, only stages of tensor expressions.
//   y = Mul(x, c)  (c = 0.5, a scalar)   ->   y = tc.fused(x)   mul[i] = x[i] * 0.5
//   y = Flatten(x)                       ->   y = Reshape(x, [1, 64])
//   y = MatMul(a, b)  (a of one column)  ->   y = tc.fused(a, b)   matmul[i, j] = a[i, 0] * b[0, j]
//   y = MaxPool(x)    (of 9, x of 4)     ->   y = tc.fused(x)   max_pool[i, j, o] = max(k: 4) x[i, j, k]
// Operands that the meaning does not read disappear, one that is read twice is one input, and constants of one element
// become literals. What moves no data stays a Reshape, which costs nothing when the two tensors share their memory.
//
// Needs: types. Leaves: tc.fused, Reshape, Identity and control flow; every output of the graph has a producer of its
// own.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/op_rules.h"
#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "passes/graph/cut_reduction.h"
#include "passes/graph/open_layout.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/to_function.h"

namespace tc {

namespace {

Expr literal(const TensorData& t) {
  check(t.dtype != DType::String, "a string is no literal");
  return is_float(t.dtype) ? make_float(t.dtype, t.as_double(0)) : make_int(t.dtype, t.as_int(0));
}

/// How operands change: a buffer that another one replaces, or a literal for each of its loads.
struct OperandMap {
  BufferMap buffers;
  std::map<const BufferDef*, Expr> literals;  // looked up only

  Expr operator()(const Expr& e) const {
    if (!e) return e;
    const Expr replaced = rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      if (!l) return {};
      auto it = literals.find(l->buffer.get());
      return it == literals.end() ? Expr() : it->second;
    });
    return substitute_buffers(replaced, buffers);
  }
};

void apply_to(const OperandMap& map, TensorFn& fn) {
  for (Stage& s : fn.stages) {
    for (Exprs* list : {&s.values, &s.init, &s.combiner.result})
      for (Expr& e : *list) e = map(e);
    if (!s.nest) continue;
    s.nest = rewrite(s.nest, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      auto it = l ? map.literals.find(l->buffer.get()) : map.literals.end();
      return it == map.literals.end() ? Expr() : it->second;
    });
    s.nest = substitute_buffers(s.nest, map.buffers);
  }
}

bool reads_as_literal(const TensorFn& fn, const Buffer& b, const Value& v) {
  if (!scalar_of(&v)) return false;
  // An output of the function needs memory, and a nest may name a buffer outside of expressions.
  return std::find(fn.outputs.begin(), fn.outputs.end(), b) == fn.outputs.end() &&
         std::none_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) { return bool(s.nest); });
}

/// A sum over one element is that element, in every template and for every neighbour: MatMul of k = 1 is an outer product.
void keep_only_element(Stage& s) {
  const auto one = [](const Axis& r) { return r.extent.is_const() && r.extent.value == 1; };
  if (!identity_at_start(s) || !std::all_of(s.raxes.begin(), s.raxes.end(), one)) return;
  VarMap first;
  for (const Axis& r : s.raxes) first[r.var.get()] = 0;
  s.values[0] = substitute(s.values[0], first);
  s.kind = Stage::Kind::Compute;
  s.raxes = {};
  s.combiner = {};
  s.init = {};
}

/// The function of a node with its operands: each once, constants of one element as literals.
std::pair<TensorFn, std::vector<Value*>> bind_operands(Node& n) {
  const TensorFn& meaning = tensor_fn(n);
  const std::vector<int> operands = fn_operands(n);
  TensorFn fn;
  fn.stages = meaning.stages;
  fn.outputs = meaning.outputs;
  for (Stage& s : fn.stages) {
    cut_reduction(s);
    keep_only_element(s);
  }
  std::vector<Value*> values;
  OperandMap map;
  for (size_t i = 0; i < operands.size(); ++i) {
    Value* v = n.inputs[size_t(operands[i])];
    const Buffer& b = meaning.inputs[i];
    if (reads_as_literal(meaning, b, *v)) {
      map.literals[b.get()] = literal(*v->constant);
      continue;
    }
    auto twin = std::find(values.begin(), values.end(), v);
    if (twin != values.end()) {
      map.buffers[b.get()] = fn.inputs[size_t(twin - values.begin())];
      continue;
    }
    values.push_back(v);
    fn.inputs.push_back(b);
  }
  if (map.literals.empty() && map.buffers.empty()) return {std::move(fn), std::move(values)};
  apply_to(map, fn);
  for (Buffer& b : fn.outputs)
    if (auto it = map.buffers.find(b.get()); it != map.buffers.end()) b = it->second;
  return {std::move(fn), std::move(values)};
}

/// The only output of a node that anybody reads; those in front of it may be absent.
Value* only_output(const Node& n) {
  return *std::find_if(n.outputs.begin(), n.outputs.end(), [](const Value* v) { return v != nullptr; });
}

Node* to_reshape(Graph& g, Node* n, Value* from) {
  if (n->is("Reshape")) return n;
  Value* y = only_output(*n);
  Value* shape = g.add_constant(derived(y->name, "_shape"), int64_constant(dims_of(y)));
  Node* r = insert_for(g, *n, n, "Reshape", {from, shape}, {y->name}, sizes_as_given(y));
  g.set_type(r->outputs[0], y->type);
  g.replace_uses(y, r->outputs[0]);
  g.erase(n);
  return r;
}

/// An output that is an input, a constant or another output gets an Identity: a copy is its producer.
void own_outputs(Graph& g) {
  std::vector<bool> taken(size_t(g.value_ids()), false);
  for (size_t k = 0; k < g.outputs().size(); ++k) {
    Value* v = g.outputs()[k];
    if (v->producer && !taken[size_t(v->id)]) {
      taken[size_t(v->id)] = true;
      continue;
    }
    Node* copy = g.append("Identity", {v}, {v->name});
    g.set_type(copy->outputs[0], v->type);
    g.set_output(k, copy->outputs[0]);
  }
}

}  // namespace

Node* insert_function(Graph& g, const Node& of, Node* before, TensorFn fn, std::vector<Value*> inputs,
                      std::vector<ModelText> names) {
  Node* f = insert_for(g, of, before, "fused", std::move(inputs), std::move(names), {}, "tc");
  for (size_t k = 0; k < fn.outputs.size(); k++)
    g.set_type(f->outputs[k], ValueType::tensor(fn.outputs[k]->dtype, fn.outputs[k]->shape));
  f->fn = std::make_shared<const TensorFn>(std::move(fn));
  return f;
}

Node* to_function(Graph& g, Node* n) {
  const bool typed = std::all_of(n->outputs.begin(), n->outputs.end(),
                                 [](const Value* v) { return !v || v->type.is_static_tensor(); });
  if (!typed || is_fused(n)) return n;
  auto [fn, values] = bind_operands(*n);
  if (values.size() == 1 && fn.outputs.size() == 1 && pattern_of(fn) == Pattern::View)
    return to_reshape(g, n, values[0]);
  std::vector<ModelText> names;
  for (const Value* v : n->outputs)
    if (v) names.push_back(v->name);
  Node* f = insert_for(g, *n, n, "fused", std::move(values), std::move(names), {}, "tc");
  f->fn = std::make_shared<const TensorFn>(std::move(fn));
  size_t k = 0;
  for (Value* v : n->outputs) {
    if (!v) continue;
    g.set_type(f->outputs[k], v->type);
    g.replace_uses(v, f->outputs[k++]);
  }
  g.erase(n);
  return f;
}

namespace {

/// tc.pack by loops over what there is, where a formula of each element would divide by the sizes; a GPU has its threads by element.
Node* packed_by_loops(Graph& g, Node* n) {
  Value *x = n->inputs[0], *y = n->outputs[0];
  TensorFn fn = packed_function(x->type.dtype, dims_of(x), OpenLayout{0}, n->attr_ints("axes"), false);
  Node* f = insert_function(g, *n, n, std::move(fn), n->inputs, {derived(y->name, "_packed")});
  return to_reshape(g, n, f->outputs[0]);
}

bool packs_whole_bytes(const Node& n) {
  return n.domain == "tc" && n.op == "pack" && info(n.inputs[0]->type.dtype).bits % 8 == 0 &&
         n.inputs[0]->type.dtype != DType::String;
}

}  // namespace

void to_functions(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) to_functions(*r, cx);
    if (!n->regions.empty() || n->is("Identity")) continue;
    if (!cx.target.device_memory && packs_whole_bytes(*n))
      packed_by_loops(g, n);
    else
      to_function(g, n);
  }
  dead_code(g, cx);  // what computed an operand of which only the type was read
  own_outputs(g);
  g.drop_unused_constants();
}

}  // namespace tc
