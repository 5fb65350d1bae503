// Lets sums of products read weights as they are stored, in few bits, where the target's loops can; else each run would
// first write the floats that they stand for.
//   w = tc.fused(packed, scales)   unpacked[k, n] = (f32(packed[...] >> ... & 15) - 8) * scales[n, k / 32]
//   y = tc.fused(x, w)             matmul[m, n] = sum(k) x[m, k] * w[k, n]
//                                                        ->
//   y = tc.fused(x, packed, scales)   unpacked[k, n] = ...   matmul[m, n] = sum(k) x[m, k] * unpacked[k, n]
// The two are one function then, like any that fuse_ops makes; what it looks like decides how it is computed. Likewise a
// Gather of some rows of such a table dequantises these rows, on every target.
//
// Preconditions: w is computed from constants alone, by one node, or several in a row; the sum of products reads it once; the
// target says that its loops take the joint function. A gather takes fewer elements than w has, and w is no elementwise work, which
// fuse_ops joins. Others may read w, too: for them it stays.
//
// Needs: to_functions. Leaves: the same kinds of nodes.
#include <algorithm>

#include "ir/graph/views.h"
#include "ir/loop/visit.h"
#include "passes/backend.h"
#include "passes/graph/groups.h"
#include "passes/graph/join.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

constexpr size_t kLongest = 4;  // nodes between the constants and the product

/// The nodes that make v of constants, in order; empty if it is made otherwise.
std::vector<Node*> made_of_constants(const Value* v) {
  std::vector<Node*> nodes;
  while (v->producer) {
    Node* n = v->producer;
    if (!is_fused(n) || n->outputs.size() != 1 || nodes.size() == kLongest) return {};
    nodes.insert(nodes.begin(), n);
    const Value* computed = nullptr;
    for (const Value* in : n->inputs) {
      if (root_of(in)->is_constant()) continue;
      if (computed) return {};
      computed = in;
    }
    if (!computed) return nodes;
    v = computed;
  }
  return {};
}

bool is_gather(const Node* n) {
  if (!is_fused(n)) return false;
  const NodeTraits t = traits_of(*n);
  return t.kind == GroupKind::Move && !t.affine;
}

/// Does the gather n read v, which fuse_ops would let nothing join, and take only some of it?
bool gathers_few(const Node* n, const Value* v, const Node* made) {
  const Load* l = as<Load>(n->fn->stages[0].values[0]);
  const size_t operand = size_t(std::find(n->inputs.begin(), n->inputs.end(), v) - n->inputs.begin());
  return l && n->fn->operands.empty() && n->fn->inputs.at(operand) == l->buffer &&
         traits_of(*made).kind == GroupKind::Opaque && num_elements(dims_of(n->outputs[0])) < num_elements(dims_of(v));
}

bool reads_few_bits(const JointFunction& joint, const PassContext& cx) {
  std::vector<bool> constant;
  for (const Value* v : joint.operands) constant.push_back(root_of(v)->is_constant());
  const ScheduleOptions o{.strict_fp = cx.options.strict_fp, .precision = cx.options.precision};
  return cx.backend->reads_few_bits(joint.fn, constant, o);
}

/// Puts the joint function in place of the sum of products n; what made its operand stays for others who read it.
void replace(Graph& g, Node* n, const std::vector<Node*>& made, JointFunction joint) {
  Value* y = n->outputs[0];
  std::vector<ModelText> origins;
  for (const Node* m : made) add_origins(origins, m->origins);
  add_origins(origins, n->origins);
  Node* f = g.insert(n, "fused", std::move(joint.operands), {y->name}, {}, "tc");
  f->name = n->name;
  f->origins = std::move(origins);
  f->fn = std::make_shared<const TensorFn>(std::move(joint.fn));
  g.set_type(f->outputs[0], y->type);
  g.replace_uses(y, f->outputs[0]);
  g.erase(n);
  Node* last = made.back();
  if (last->outputs[0]->users.empty() && last->outputs[0]->output_uses == 0) erase_unused(g, last);
}

/// Joins n with what makes one of its operands, if few bits are read then.
void join_weights(Graph& g, Node* n, const PassContext& cx) {
  if (n->outputs.size() != 1) return;
  for (const Value* v : n->inputs) {
    const std::vector<Node*> made = made_of_constants(v);
    if (made.empty()) continue;
    std::vector<Node*> nodes = made;
    nodes.push_back(n);
    JointFunction joint = joint_function(nodes);
    joint.results = {n->outputs[0]};
    joint.fn.outputs = {joint.fn.outputs.back()};
    if (is_contraction(n) ? reads_few_bits(joint, cx) : gathers_few(n, v, made.back()))
      return replace(g, n, made, std::move(joint));
  }
}

}  // namespace

void read_few_bits(Graph& g, PassContext& cx) {
  check(cx.backend != nullptr, "read_few_bits: no target");
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) read_few_bits(*r, cx);
    if (is_contraction(n) || is_gather(n)) join_weights(g, n, cx);
  }
}

}  // namespace tc
