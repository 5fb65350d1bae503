// Makes one move of several. A move copies each element of its result from one element of its operand; two moves in a
// row are one move whose index is the composition, if that stays a sum of axes times constants, or, for CUDA, repeats
// heads for a sum of products (whose templates split an axis that is divided).
//   q = Reshape(x, [1, 128, 12, 64])   t = transpose(q)   s = slice(t)   ->   s = tc.fused(x)   slice[i, j, k] = x[...]
// A move of a move reads the first operand, so the moves between are dropped once nobody else reads them; a contraction
// then reads its operand where the kernel before has put it (fuse_ops). What moves nothing becomes a Reshape.
//
// Preconditions: both are moves: one result with elements, of one stage that is one load, or a Reshape; all three tensors
// have one type; the composed index is affine (or divides, for a product on CUDA that alone reads the result).
//
// Needs: to_functions. Leaves: no affine move of a move.
#include <algorithm>

#include "ir/axis_ranges.h"
#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "ir/ops/helpers.h"
#include "passes/graph/groups.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// result[axes] = operand[index]
struct Move {
  Value* operand = nullptr;
  std::vector<Axis> axes;
  Exprs index;
  std::string name;
};

Expr linear(const Exprs& index, const Dims& dims) {
  Expr e = 0;
  for (size_t d = 0; d < dims.size(); ++d) e = e * Expr(dims[d]) + index[d];
  return e;
}

Exprs vars_of(const std::vector<Axis>& axes) {
  Exprs v;
  for (const Axis& a : axes) v.emplace_back(a.var);
  return v;
}

/// Element `at` (in row-major order) of a tensor of these dims.
Exprs delinearized(Expr at, const Dims& dims, const Ranges& ranges) {
  Exprs index(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    index[d] = d == 0 ? simplify(at, ranges) : simplify(floor_mod(at, dims[d]), ranges);
    at = simplify(floor_div(at, dims[d]), ranges);
  }
  return index;
}

std::optional<Move> move_of(const Node& n) {
  if (n.outputs.size() != 1 || !n.outputs[0]->type.is_static_tensor()) return std::nullopt;
  if (has_no_elements(dims_of(n.outputs[0]))) return std::nullopt;
  Move m;
  if (n.is("Reshape")) {
    m.operand = n.inputs[0];
    for (int64_t d : dims_of(n.outputs[0])) m.axes.push_back({make_var("i" + to_text(int64_t(m.axes.size()))), Dim(d)});
    const Dims from = dims_of(m.operand), to = dims_of(n.outputs[0]);
    m.index = has_several_open(to) ? reshape_index(vars_of(m.axes), to, from)
                                   : delinearized(linear(vars_of(m.axes), to), from, ranges_of({&m.axes}));
    return m;
  }
  if (!is_fused(&n) || n.fn->stages.size() != 1 || n.fn->inputs.size() != 1) return std::nullopt;
  const Stage& s = n.fn->stages[0];
  const Load* l = s.kind == Stage::Kind::Compute && s.scan < 0 ? as<Load>(s.values[0]) : nullptr;
  if (!l || l->buffer != n.fn->inputs[0] || n.fn->outputs[0] != s.outputs[0]) return std::nullopt;
  m.operand = n.inputs[0];
  m.axes = s.axes;
  m.index = l->index;
  m.name = s.name;
  return m;
}

bool is_affine(const Move& m, bool quotients = false) {
  return std::all_of(m.index.begin(), m.index.end(),
                     [&](const Expr& e) { return is_affine_index(e, m.axes, quotients); });
}

/// Does a move repeat its operand for a sum of products: keys that heads share? The product then reads it in place.
bool repeats_for_product(const Move& m, const Node& n) {
  const Node* user = only_user(n.outputs[0]);
  return std::is_lt(compare_elements(dims_of(m.operand), dims_of(n.outputs[0]))) && is_fused(user) &&
         pattern_of(*user->fn) == Pattern::Contraction && is_affine(m, true);
}

/// outer after inner: result[axes of outer] = inner's operand[...]
Move composed(const Move& outer, const Move& inner) {
  Move m = outer;
  m.operand = inner.operand;
  m.index.clear();
  VarMap at;
  for (size_t d = 0; d < inner.axes.size(); ++d) at[inner.axes[d].var.get()] = outer.index[d];
  const Ranges ranges = ranges_of({&outer.axes});
  for (const Expr& e : inner.index) m.index.push_back(simplify(substitute(e, at), ranges));
  if (m.name.empty()) m.name = inner.name;
  return m;
}

bool moves_nothing(const Move& m, const Dims& result) {
  const Dims from = dims_of(m.operand);
  return std::is_eq(compare_elements(from, result)) && keeps_order(m.index, from, m.axes, result);
}

std::shared_ptr<const TensorFn> function_of(const Move& m, const ValueType& result) {
  TensorFn fn;
  fn.inputs = {make_buffer("x", result.dtype, m.operand->type.shape)};
  Stage s;
  s.name = m.name;
  s.axes = m.axes;
  s.values = {load(fn.inputs[0], m.index)};
  s.outputs = {make_buffer(m.name, result.dtype, result.shape)};
  fn.outputs = s.outputs;
  fn.stages = {std::move(s)};
  return std::make_shared<const TensorFn>(instantiate(fn, fn.inputs));
}

void replace_by(Graph& g, Node* n, const Move& m) {
  Value* y = n->outputs[0];
  Node* r = nullptr;
  if (moves_nothing(m, dims_of(y))) {
    Value* shape = g.add_constant(derived(y->name, "_shape"), int64_constant(dims_of(y)));
    r = g.insert(n, "Reshape", {m.operand, shape}, {y->name}, sizes_as_given(y));
  } else {
    r = g.insert(n, "fused", {m.operand}, {y->name}, {}, "tc");
    r->fn = function_of(m, y->type);
  }
  r->name = n->name;
  add_origins(r->origins, n->inputs[0]->producer->origins);
  add_origins(r->origins, n->origins);
  g.set_type(r->outputs[0], y->type);
  g.replace_uses(y, r->outputs[0]);
  erase_unused(g, n);
}

}  // namespace

void compose_moves(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) compose_moves(*r, cx);
    const auto outer = move_of(*n);
    const Node* producer = outer ? outer->operand->producer : nullptr;
    const auto inner = producer ? move_of(*producer) : std::nullopt;
    if (!inner || inner->operand->type.dtype != n->outputs[0]->type.dtype) continue;
    const Move m = composed(*outer, *inner);
    if (is_affine(m) || (cx.target.splits_axes && repeats_for_product(m, *n))) replace_by(g, n, m);
  }
  g.drop_unused_constants();
}

}  // namespace tc
