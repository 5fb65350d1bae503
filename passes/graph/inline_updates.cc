// Computes what a scatter writes where it is written: the updates of a sum over edges, the rows that a cache is given.
//   p = tc.fused(g, w)       mul[e, i, j] = g[e, i] * w[e, j]
//   y = tc.fused(z, t, p)    for e, i, j: y[index(t[e]), i, j] += p[e, i, j]
//                                                             ->    for e, i, j: y[index(t[e]), i, j] += g[e, i] * w[e, j]
// Updates need not be stored then, which are often larger than what they go to.
//
// Preconditions: nobody else reads them; they are a few sums, products and moves of elements of operands, each read once, by loops
// that take neighbours as vectors where these lie side by side. On C: blocks of a GPU search for the updates of their results.
//
// Needs: to_functions. Leaves: the same nodes, without those whose results are computed elsewhere.
#include <algorithm>
#include <optional>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "passes/analysis/inlined.h"
#include "passes/graph/join.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

constexpr int kMostTerms = 40;  // of the expression for an update
constexpr int kMostLoads = 4;   // in it: what runs along streams of memory at once

/// The only read of a buffer in a nest, by the loops around it.
struct OnlyRead {
  Exprs index;
  std::vector<const For*> loops;
};

/// Reads of `b` in `nest`, with the loops around each.
class Reads {
 public:
  Reads(const Stmt& nest, const Buffer& b) : b_(b) { look(nest); }
  /// Null: there are several, or a loop repeats it.
  std::optional<OnlyRead> only() const {
    if (found_.size() != 1) return {};
    const OnlyRead& r = found_[0];
    for (const For* loop : r.loops) {
      const auto is_var = [&](const Expr& e) { return as<VarRef>(e) && as<VarRef>(e)->var == loop->var; };
      if (std::count_if(r.index.begin(), r.index.end(), is_var) != 1) return {};
    }
    return r;
  }

 private:
  void look(const Stmt& s) {
    walk(
        s,
        [&](const Stmt& x) {
          const For* loop = as<For>(x);
          if (!loop) return true;
          look_in(loop->begin), look_in(loop->extent);
          loops_.push_back(loop);
          look(loop->body);
          loops_.pop_back();
          return false;
        },
        [&](const Expr& e) {
          look_in(e);
          return false;
        });
  }
  void look_in(const Expr& e) {
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      if (l && l->buffer == b_) found_.push_back({l->index, loops_});
      return true;
    });
  }

  const Buffer& b_;
  std::vector<const For*> loops_;
  std::vector<OnlyRead> found_;
};

/// Does data say where a nest stores?
bool stores_where_data_says(const Stmt& nest) {
  bool found = false;
  walk(
      nest, [&](const Stmt&) { return !found; },
      [&](const Expr& e) {
        const Apply* a = as<Apply>(e);
        found = found || (a && a->op == Op::Index);
        return !found;
      });
  return found;
}

bool is_plain(const TensorFn& fn) {
  return fn.outputs.size() == 1 && std::all_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) {
           return s.kind == Stage::Kind::Compute && s.scan < 0 && s.outputs.size() == 1;
         });
}

bool is_quick(Op op) {
  constexpr Op kQuick[] = {Op::Neg, Op::Abs, Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::Index, Op::Eq,
                           Op::Ne,  Op::Lt,  Op::Le,  Op::Gt,  Op::Ge,  Op::And, Op::Or,  Op::Not};
  return std::find(std::begin(kQuick), std::end(kQuick), op) != std::end(kQuick);
}

/// A few quick operations, all of whose loads go along `inner` by one element, or not at all?
bool is_quick(const Expr& e, const Var& inner) {
  int terms = 0, loads = 0;
  bool quick = true;
  walk(e, [&](const Expr& x) {
    terms++;
    if (const Apply* a = as<Apply>(x)) quick = quick && (is_quick(a->op) || (is_int(x->dtype) && !uses_var(x, inner)));
    const Load* l = as<Load>(x);
    if (!l) return quick;
    loads++;
    for (size_t k = 0; k < l->index.size() && quick; k++) {
      const auto f = affine_in(l->index[k], {inner});
      const int64_t most = k + 1 == l->index.size() ? 1 : 0;
      quick = f && f->coefficients[0] >= 0 && f->coefficients[0] <= most && !uses_var(f->rest, inner);
    }
    return quick;
  });
  return quick && terms <= kMostTerms && loads <= kMostLoads;
}

/// Does the nest of `reader` read each element of what `made` computes once, as its loops' vectors do?
bool may_compute(const Node& reader, size_t operand, const Node& made) {
  const Stmt& nest = reader.fn->stages[0].nest;
  const auto read = Reads(nest, reader.fn->inputs[operand]).only();
  if (!read || read->loops.empty()) return false;
  const Var& inner = read->loops.back()->var;
  const VarRef* last = as<VarRef>(read->index.back());
  return last && last->var == inner && is_quick(inlined(*made.fn, load(made.fn->outputs[0], read->index)), inner);
}

/// The nest with the elements' formulas in place of the elements, and no other stage.
TensorFn computed_inside(TensorFn fn) {
  Stage s = fn.stages.back();
  s.nest = rewrite(s.nest, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    return l && l->buffer != s.outputs[0] && producer(fn, l->buffer) ? inlined(fn, x) : Expr();
  });
  fn.stages = {std::move(s)};
  return fn;
}

/// The operands of `n` first, in its order: what it may take the place of comes first.
void put_first(JointFunction& joint, const Node& n) {
  std::vector<size_t> order;
  for (const Value* v : n.inputs)
    for (size_t k = 0; k < joint.operands.size(); k++)
      if (joint.operands[k] == v && std::find(order.begin(), order.end(), k) == order.end()) order.push_back(k);
  for (size_t k = 0; k < joint.operands.size(); k++)
    if (std::find(order.begin(), order.end(), k) == order.end()) order.push_back(k);
  JointFunction sorted = joint;
  for (size_t k = 0; k < order.size(); k++) {
    sorted.operands[k] = joint.operands[order[k]];
    sorted.fn.inputs[k] = joint.fn.inputs[order[k]];
  }
  joint = std::move(sorted);
}

Node* computing(Graph& g, Node* n) {
  if (!is_fused(n) || n->outputs.size() != 1 || n->fn->stages.size() != 1 || n->fn->stages[0].kind != Stage::Kind::Nest)
    return nullptr;
  if (!stores_where_data_says(n->fn->stages[0].nest) || !n->fn->operands.empty()) return nullptr;
  for (size_t k = 0; k < n->inputs.size(); k++) {
    const Value* v = n->inputs[k];
    Node* made = v ? v->producer : nullptr;
    if (!made || !is_fused(made) || v->output_uses > 0 || v->users.size() != 1 || v->type.dtype == DType::String ||
        !made->fn->operands.empty())
      continue;
    if (!is_plain(*made->fn) || !may_compute(*n, k, *made)) continue;
    JointFunction joint = joint_function({made, n});
    joint.fn = computed_inside(std::move(joint.fn));
    put_first(joint, *n);
    return join_nodes(g, {made, n}, std::move(joint));
  }
  return nullptr;
}

}  // namespace

void inline_updates(Graph& g, PassContext& cx) {
  if (cx.target.device_memory) return;
  std::vector<Node*> nests;
  for (const auto& n : g.nodes()) {
    nests.push_back(n.get());
    for (const auto& r : n->regions) inline_updates(*r, cx);
  }
  bool joined = false;
  for (Node* n : nests)
    for (Node* next = computing(g, n); next; next = computing(g, next)) joined = true;
  if (joined) sort_nodes(g);
}

}  // namespace tc
