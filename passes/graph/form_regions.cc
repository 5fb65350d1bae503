// Puts several contractions into one kernel, where what lies between them would not stay in the caches and a template
// computes them piece by piece.
//   e = tc.fused(x, we, be)  expand, bias, clip, pad
//   d = tc.fused(e, wd, bd)  filter, bias, clip         ->   y = tc.fused(x, we, be, wd, bd, wp, bp)  all of these
//   y = tc.fused(d, wp, bp)  project, bias
// A region is a chain of three kernels, each of which reads the result of the one before it, that nobody else reads;
// the first and the last one are sums of products. The target (passes/backend.h) says whether a template knows the
// function of the three together, and whether it pays; what none takes stays as it is.
//
// What no memory holds, a bias for each pair of words of a text without an upper bound, is computed in the kernel that reads it, however
// much work that is.
//
// Preconditions: the first and the middle kernel have one result each, which is no output of the model and which only the
// next kernel reads; a kernel may read it several times.
//
// Needs: fuse_ops. Leaves: the same kinds of nodes, fewer of them.
#include <algorithm>

#include "ir/graph/origin.h"
#include "ir/graph/views.h"
#include "ir/ops/op.h"
#include "passes/backend.h"
#include "passes/graph/join.h"
#include "passes/graph/open_layout.h"
#include "passes/graph/passes.h"
#include "passes/graph/region.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/to_function.h"

namespace tc {

namespace {

/// The nodes whose results n alone reads, in the order of its operands.
std::vector<Node*> private_producers(const Node* n) {
  std::vector<Node*> list;
  for (const Value* v : n->inputs) {
    Node* p = v->producer;
    if (!is_fused(p) || p->outputs.size() != 1 || v->output_uses > 0) continue;
    if (!std::all_of(v->users.begin(), v->users.end(), [&](const Node* u) { return u == n; })) continue;
    if (std::find(list.begin(), list.end(), p) == list.end()) list.push_back(p);
  }
  return list;
}

bool pays(const JointFunction& joint, const PassContext& cx) {
  std::vector<bool> constant;
  for (const Value* v : joint.operands) constant.push_back(root_of(v)->is_constant());
  const ScheduleOptions o{.strict_fp = cx.options.strict_fp, .precision = cx.options.precision};
  return cx.backend->region_pays(joint.fn, constant, o);
}

/// Makes the region that ends with `last`, if there is one.
void form(Graph& g, Node* last, const PassContext& cx) {
  for (Node* middle : private_producers(last)) {
    if (!may_stand_between(*middle->fn)) continue;
    for (Node* first : private_producers(middle)) {
      if (!is_contraction(first)) continue;
      const std::vector<Node*> nodes = {first, middle, last};
      JointFunction joint = joint_function(nodes);
      if (!pays(joint, cx)) continue;
      join_nodes(g, nodes, std::move(joint));
      return;
    }
  }
}

/// Does n make them element by element, for one reader?
bool is_joined(const Node& n) {
  const Value* y = n.outputs[0];
  const bool one = std::all_of(y->users.begin(), y->users.end(), [&](const Node* u) { return u == y->users[0]; });
  return y->output_uses == 0 && !y->users.empty() && one && is_fused(y->users[0]) &&
         (n.is("Reshape") || (is_fused(&n) && pattern_of(*n.fn) <= Pattern::Injective));
}

void join_pairs(Graph& g) {
  std::vector<Node*> list;
  for (auto it = g.nodes().rbegin(); it != g.nodes().rend(); ++it)
    if (makes_pairs(**it)) list.push_back(it->get());
  for (Node* n : list) {  // readers first: what they are joined with reads the rest
    if (!is_joined(*n)) continue;
    if (n->is("Reshape")) {
      Node* f = insert_function(g, *n, n, tensor_fn(*n), {n->inputs[0]}, output_names(*n));
      g.replace_uses(n->outputs[0], f->outputs[0]);
      g.erase(n);
      n = f;
    }
    join_nodes(g, {n, n->outputs[0]->users[0]});
  }
  if (!list.empty()) sort_nodes(g);
}

}  // namespace

void form_regions(Graph& g, PassContext& cx) {
  check(cx.backend != nullptr, "form_regions: no target");
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) form_regions(*r, cx);
    if (is_contraction(n)) form(g, n, cx);
  }
  join_pairs(g);
}

}  // namespace tc
