// What a body of a Loop or Scan computes from captured values only is the same in every iteration: it is computed
// before.
//   y = Loop(m, , x, k) { s' = Add(s, MatMul(k, w)) }   ->   p = MatMul(k, w)   y = Loop(m, , x, p) { s' = Add(s, p) }
// Hoisted are nodes with sums and the like, and those whose result is no larger than what they read: a result that is
// larger (Expand) would be read from memory instead of being computed on the way. A node that may find an index out of
// range stays, unless an iteration is certain. Bodies are handled from the inside out.
//
// Preconditions: sizes are known; no bodies, nothing random; every operand is a constant of the body, a capture, or
// hoisted already, and one of them is no constant (states, iteration numbers and scanned parts are none of these); the
// work is sums, or its result is no larger than what it reads; it tests no index, or an iteration is certain.
//
// Needs: types; simplify_expr and fold_constant before it, so that what is left is work. Leaves: no captures that the
// body does not read.
#include <algorithm>

#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "ir/ops/regions.h"
#include "passes/analysis/index_tests.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

bool always_runs(const Node& n) {
  if (n.is("Loop")) {
    const LoopFacts f = loop_facts(n);
    return f.exact() && f.limit > 0;
  }
  const Value* scanned = n.inputs.at(own_inputs(n) - 1);
  return !has_no_elements(dims_of(scanned));
}

bool has_sums(const TensorFn& fn) {
  return std::any_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) { return s.kind == Stage::Kind::Reduce; });
}

class Hoist {
 public:
  Hoist(Graph& g, Node* n) : g_(g), n_(n), body_(*n->regions.at(0)), outside_(size_t(body_.value_ids()), nullptr) {
    const size_t own = own_inputs(*n);
    for (size_t k = 0; k < size_t(n->captures); ++k) outside_[size_t(body_.inputs()[own + k]->id)] = n->inputs[own + k];
    certain_ = always_runs(*n);
  }

  bool run() {
    std::vector<Node*> moved;
    for (const auto& m : body_.nodes())
      if (is_invariant(*m)) {
        copy_out(*m);
        moved.push_back(m.get());
      }
    for (auto it = moved.rbegin(); it != moved.rend(); ++it) {
      for (Value* v : (*it)->outputs)
        if (v && v->is_used()) capture(v);
      body_.erase(*it);
    }
    return !moved.empty();
  }

 private:
  Value* outside(const Value* v) const {
    return size_t(v->id) < outside_.size() ? outside_[size_t(v->id)] : nullptr;  // later ids are new captures
  }

  bool is_invariant(Node& m) const {
    if (!m.regions.empty() || is_random(m)) return false;
    int64_t read = 0, made = 0;
    for (const Value* v : m.inputs) {
      if (!v || v->is_constant()) continue;
      if (!outside(v) || !v->type.is_static_tensor()) return false;
      read = std::max(read, num_elements(dims_of(v)));
    }
    for (const Value* v : m.outputs) {
      if (v && !v->type.is_static_tensor()) return false;
      if (v) made = std::max(made, num_elements(dims_of(v)));
    }
    if (read == 0) return false;
    const TensorFn& fn = tensor_fn(m);
    return (made <= read || has_sums(fn)) && (certain_ || !tests_indices(fn));
  }

  void copy_out(const Node& m) {
    std::vector<Value*> inputs;
    for (const Value* v : m.inputs)
      inputs.push_back(!v ? nullptr : v->is_constant() ? g_.add_constant(v->name, v->constant) : outside(v));
    Node* c = insert_for(g_, m, n_, m.op, std::move(inputs), output_names(m), m.attrs, m.domain);
    for (size_t k = 0; k < m.outputs.size(); ++k) {
      if (m.outputs[k]) {
        g_.set_type(c->outputs[k], m.outputs[k]->type);
        outside_[size_t(m.outputs[k]->id)] = c->outputs[k];
      } else if (c->outputs[k]) {
        g_.drop_output(c, k);
      }
    }
  }

  void capture(Value* v) {
    g_.add_node_input(n_, outside(v));
    ++n_->captures;
    body_.replace_uses(v, body_.add_input(v->name, v->type));
  }

  Graph& g_;
  Node* n_;
  Graph& body_;
  std::vector<Value*> outside_;  // by id of the body's values: the same value in g_
  bool certain_ = false;
};

bool hoist(Graph& g) {
  bool changed = false;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) changed = hoist(*r) || changed;
    if (n->is("Loop") || n->is("Scan")) changed = Hoist(g, n).run() || changed;
  }
  return changed;
}

}  // namespace

void hoist_from_loops(Graph& g, PassContext& cx) {
  if (hoist(g)) dead_code(g, cx);
}

}  // namespace tc
