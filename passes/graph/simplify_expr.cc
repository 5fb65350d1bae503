// Algebra on single operators and pairs of them.
//   x * 1, x / 1, x ^ 1, x + 0, --x, Relu(Relu(x))     ->   x, x, x, x, x, Relu(x)
//   x ^ 2, x ^ 3, x ^ -1                               ->   x * x, x * x * x, Reciprocal(x)
//   x ^ 0.5, x ^ -0.5                                  ->   r, Reciprocal(r)    r = x == -inf ? inf : Abs(Sqrt(x))
//   (x * c1) * c2, (x + c1) + c2                       ->   x * (c1 * c2), x + (c1 + c2)      c1, c2, c3 constants
//   x / c1 * c2, x * c1 / c2, x / c1 / c2              ->   x * (c2 / c1), x * (c1 / c2), x / (c1 * c2)
//   (x * c1 + c2) * c3                                 ->   x * (c1 * c3) + c2 * c3
//   -(x * c), -x * c, -(x / c), -x / c                 ->   x * -c, x * -c, x / -c, x / -c
//   x - -y, x + -y, -x + y                             ->   x + y, x - y, y - x
//   Clip(Clip(x)), Relu(Clip(x)), Clip(Relu(x))        ->   one Clip
//   Transpose(Transpose(x)), Reshape(Reshape(x))       ->   one of them
//   Cast(Cast(x)), where the inner one loses nothing   ->   one Cast         i64 -> i32 -> u8: only low bits count
//   f(Expand(x), y), where y has the full shape        ->   f(x, y)
// Rules that move a rounding (x ^ 3, x ^ -0.5, the pairs of constants) are left out under strict_fp, and so is x + 0, which turns
// -0 into 0.
//
// Preconditions: sizes are known; one result. Of
//   x * 1 ...           the result has the type and shape of x (a constant of shape [1,1,1] may raise its rank)
//   x ^ 2 ...           floats, and the same; x ^ -0.5: of 32 or 64 bits, for the root of a half is rounded to one
//   (x op c1) op c2     integers, or f32 and f64 whose constants are of a usual size, and for + of one sign or small (x +
//                       2^23 - 2^23 rounds to an integer); the inner result has no other user; x has the result's type
//                       and shape
//   x / c1 * c2 ...     f32 and f64; no number of a constant is zero or unusual; the inner result has no other user; x has
//                       the result's type and shape; what is between is not larger than both ends (x * 6 / 3), for
//                       it could be infinite alone; the joint constant has no more elements than the larger one
//   (x * c1 + c2) * c3  the same of c1 and c3, or integers
//   -(x * c) ...        the inner result has no other user; c a constant; quotients: floats
//   x - -y ...          the negation has no other user
//   Clip(Clip(x)) ...   the inner result has no other user; bounds are constants, none is NaN, and the lower one is not above
//                       the upper one
//   Reshape, Transpose  none
//   Cast(Cast(x))       the inner type holds every number of x, or all three are integers of 8 bits at least, of which the
//                       inner has no fewer bits than the result
//   f(Expand(x), y)     f broadcasts; y is another operand with the result's shape; not what PRelu does not broadcast
//
// Needs: types. Leaves: none of the forms on the left; new constants are folded by fold_constant.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/ops/op.h"
#include "passes/graph/constant_chains.h"
#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

bool same_type(const Value* a, const Value* b) { return a->type == b->type; }

/// The operand that the other one, a constant, leaves as it is; null: there is none.
Value* left_as_it_is(const Node& n, bool strict) {
  const bool mul = n.is("Mul"), add = n.is("Add");
  if ((mul || add) && n.inputs[1]) {
    if (add && strict && is_float(n.outputs[0]->type.dtype)) return nullptr;
    for (size_t k = 0; k < 2; ++k)
      if (is_scalar(n.inputs[1 - k], mul ? 1 : 0) && same_type(n.inputs[k], n.outputs[0])) return n.inputs[k];
    return nullptr;
  }
  if (!n.is("Div") && !n.is("Pow") && !n.is("Sub")) return nullptr;
  return is_scalar(n.inputs[1], n.is("Sub") ? 0 : 1) && same_type(n.inputs[0], n.outputs[0]) ? n.inputs[0] : nullptr;
}

bool neutral(Graph& g, Node* n, bool strict) {
  Value* x = left_as_it_is(*n, strict);
  if (x) replace_node(g, n, x);
  return x != nullptr;
}

/// The root that a power is: of -0 it is 0, of -infinity it is infinity (C11, F.10.4.4).
Value* power_of_half(Graph& g, Node* n, Value* x, const ModelText& base) {
  const DType t = x->type.dtype;
  const auto infinity = [&](double sign, const std::string& name) {
    return g.add_constant(derived(base, name), scalar_constant(t, sign * std::numeric_limits<double>::infinity()));
  };
  Value* end = add_op(g, n, "Equal", {x, infinity(-1, "_lowest")}, derived(base, "_end"));
  Value* root = add_op(g, n, "Abs", {add_op(g, n, "Sqrt", {x}, derived(base, "_root"))}, derived(base, "_abs"));
  return add_op(g, n, "Where", {end, infinity(1, "_infinity"), root}, derived(base, "_half"));
}

bool power(Graph& g, Node* n, bool strict) {
  if (!n->is("Pow") || !is_float(n->outputs[0]->type.dtype) || !same_type(n->inputs[0], n->outputs[0])) return false;
  const auto e = scalar_of(n->inputs[1]);
  Value* x = n->inputs[0];
  const ModelText base = n->outputs[0]->name;
  if (!e) return false;
  if (*e == 2)
    replace_node(g, n, add_op(g, n, "Mul", {x, x}, base));
  else if (*e == 3 && !strict)
    replace_node(g, n, add_op(g, n, "Mul", {add_op(g, n, "Mul", {x, x}, derived(base, "_square")), x}, base));
  else if (*e == -1)
    replace_node(g, n, add_op(g, n, "Reciprocal", {x}, base));
  else if (*e == 0.5)
    replace_node(g, n, power_of_half(g, n, x, base));
  else if (*e == -0.5 && !strict && info(x->type.dtype).bits >= 32)
    replace_node(g, n, add_op(g, n, "Reciprocal", {power_of_half(g, n, x, base)}, base));
  else
    return false;
  return true;
}

/// f(f(x)) = x for Neg and Not, f(x) for Relu, Abs and the roundings.
bool repeated(Graph& g, Node* n) {
  const Node* inner = n->inputs.empty() || !n->inputs[0] ? nullptr : made_by(n->inputs[0], n->op);
  if (!inner || !n->domain.empty()) return false;
  if (n->op == "Neg" || n->op == "Not")
    replace_node(g, n, inner->inputs[0]);
  else if (n->op == "Relu" || n->op == "Abs" || n->op == "Floor" || n->op == "Ceil" || n->op == "Round")
    replace_node(g, n, inner->outputs[0]);
  else
    return false;
  return true;
}

std::vector<int64_t> permutation(const Node& n) {
  const size_t rank = n.inputs[0]->type.shape.size();
  std::vector<int64_t> reversed(rank);
  for (size_t d = 0; d < rank; ++d) reversed[d] = int64_t(rank - 1 - d);
  return n.attr_ints("perm", reversed);
}

bool merge_transposes(Graph& g, Node* n) {
  if (!n->is("Transpose")) return false;
  const Node* inner = made_by(n->inputs[0], "Transpose");
  if (!inner) return false;
  const auto first = permutation(*inner), second = permutation(*n);
  std::vector<int64_t> both;
  bool identity = true;
  for (size_t d = 0; d < second.size(); ++d) {
    both.push_back(first.at(size_t(second[d])));
    identity = identity && both.back() == int64_t(d);
  }
  Value* x = inner->inputs[0];
  replace_node(g, n, identity ? x : add_op(g, n, "Transpose", {x}, n->outputs[0]->name, {{"perm", both}}));
  return true;
}

bool merge_reshapes(Graph& g, Node* n) {
  if (!n->is("Reshape")) return false;
  const Node* inner = made_by(n->inputs[0], "Reshape");
  Value* x = inner ? inner->inputs[0] : nullptr;
  if (!x) return false;
  if (same_type(x, n->outputs[0])) {
    replace_node(g, n, x);
    return true;
  }
  // The outer shape may hold 0 or -1, which mean sizes of the inner result.
  Value* shape = g.add_constant(derived(n->outputs[0]->name, "_shape"), int64_constant(dims_of(n->outputs[0])));
  replace_node(g, n, add_op(g, n, "Reshape", {x, shape}, n->outputs[0]->name, sizes_as_given(n->outputs[0])));
  return true;
}

/// Can every value of type `a` be held exactly by `b`?
bool widens(DType a, DType b) {
  if (a == b) return true;
  const DTypeInfo &x = info(a), &y = info(b);
  if (b == DType::F8E8M0) return false;  // has no 0
  if (a == DType::Bool) return y.is_float || y.is_signed_int || y.is_unsigned_int;
  if (x.is_unsigned_int)
    return (y.is_unsigned_int && y.bits >= x.bits) || (y.is_signed_int && y.bits > x.bits) ||
           (b == DType::F64 && x.bits <= 32) || (b == DType::F32 && x.bits <= 16);
  if (x.is_signed_int)
    return (y.is_signed_int && y.bits >= x.bits) || (b == DType::F64 && x.bits <= 32) ||
           (b == DType::F32 && x.bits <= 16);
  if (x.is_float) return b == DType::F64 || (b == DType::F32 && is_narrow_float(a));
  return false;
}

/// Do integers of type `a` become the same ones of type `c` with and without `b` between? All three wrap, so that only
/// the lowest bits count.
bool keeps_low_bits(DType a, DType b, DType c) {
  for (DType t : {a, b, c})
    if (t == DType::Bool || !is_int(t) || info(t).bits < 8) return false;
  return info(b).bits >= info(c).bits;
}

bool merge_casts(Graph& g, Node* n) {
  if (!n->is("Cast")) return false;
  const Node* inner = made_by(n->inputs[0], "Cast");
  if (!inner) return false;
  const DType from = inner->inputs[0]->type.dtype, between = n->inputs[0]->type.dtype;
  if (!widens(from, between) && !keeps_low_bits(from, between, n->outputs[0]->type.dtype)) return false;
  Value* x = inner->inputs[0];
  replace_node(g, n, same_type(x, n->outputs[0]) ? x : add_op(g, n, "Cast", {x}, n->outputs[0]->name, n->attrs));
  return true;
}

/// Operands that an Expand has made large, though another operand gives the size.
bool drop_expand(Graph& g, Node* n) {
  if (!has_trait(*n, OpTrait::Broadcasts)) return false;
  bool changed = false;
  for (size_t k = 0; k < n->inputs.size(); ++k) {
    Node* expand = made_by(n->inputs[k], "Expand");
    if (!expand || (n->is("PRelu") && k == 0)) continue;
    bool sized = false;
    for (size_t j = 0; j < n->inputs.size(); ++j)
      sized = sized || (j != k && n->inputs[j]->type.shape == n->outputs[0]->type.shape);
    if (!sized) continue;
    g.set_input(n, k, expand->inputs[0]);
    if (!expand->outputs[0]->is_used()) erase_unused(g, expand);
    changed = true;
  }
  return changed;
}

bool typed(const Node& n) {
  for (const auto* list : {&n.inputs, &n.outputs})
    for (const Value* v : *list)
      if (v && !v->type.is_static_tensor()) return false;
  return n.outputs.size() == 1 && n.outputs[0] && n.regions.empty() && n.domain.empty();
}

}  // namespace

void simplify_expr(Graph& g, PassContext& cx) {
  const bool strict = cx.options.strict_fp;
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) simplify_expr(*r, cx);
    if (!typed(*n)) continue;
    (void)(neutral(g, n, strict) || power(g, n, strict) || repeated(g, n) || join_negation(g, n) ||
           join_constants(g, n, strict) || join_bounds(g, n) || merge_transposes(g, n) || merge_reshapes(g, n) ||
           merge_casts(g, n) || drop_expand(g, n));
  }
}

}  // namespace tc
