#include "passes/graph/constant_chains.h"

#include <algorithm>
#include <cmath>

#include "passes/graph/match.h"

namespace tc {

namespace {

bool is_constant(const Value* v) { return v && v->constant; }

/// y = x op c, where op is Mul or Add in any order, or Div by c. x null: n is no such step, or x is constant, too.
struct Step {
  Value *x = nullptr, *c = nullptr;
};

Step step_of(const Node* n, std::string_view op) {
  if (!n || !n->is(op) || n->inputs.size() != 2) return {};
  Value* x = op == "Div" ? (is_constant(n->inputs[1]) ? n->inputs[0] : nullptr) : other_operand(n, is_constant);
  if (!x || x->constant) return {};
  return {x, n->inputs[0] == x ? n->inputs[1] : n->inputs[0]};
}

/// The step that makes v for one user.
Step private_step(const Value* v, std::string_view op) { return only_user(v) ? step_of(v->producer, op) : Step(); }

struct Range {
  double least = INFINITY, largest = 0;  // of the magnitudes
  double least_but_zero = INFINITY;
  bool positive = false, negative = false;
};

Range range_of(const Constant& c) {
  Range r;
  for (int64_t i = 0; i < c->size(); ++i) {
    const double v = c->as_double(i);
    r.positive = r.positive || v > 0;
    r.negative = r.negative || v < 0;
    r.least = std::min(r.least, std::abs(v));
    if (v != 0) r.least_but_zero = std::min(r.least_but_zero, std::abs(v));
    r.largest = std::max(r.largest, std::abs(v));
  }
  return r;
}

/// Constants that may be applied to x together as well as one after the other.
bool may_join(const Node& n, const Constant& a, const Constant& b) {
  if (!is_float(n.outputs[0]->type.dtype)) return true;
  if (!is_moderate(a, 32) || !is_moderate(b, 32)) return false;
  const Range x = range_of(a), y = range_of(b);
  // Each element of a product is a number like any other: it must not become 0 where x times the one, times the other, would not.
  if (n.is("Mul")) return std::min(x.least_but_zero, y.least_but_zero) >= 0x1p-50;
  return !((x.positive || y.positive) && (x.negative || y.negative)) || std::max(x.largest, y.largest) <= 0x1p8;
}

/// A factor or divisor none of whose numbers is zero or of an unusual size.
bool is_proper(const Constant& c) { return is_moderate(c, 32) && c->size() > 0 && range_of(c).least >= 0x1p-32; }

/// Does x times `first` reach no higher than x, or the result no lower than x times `first`? Else an x of the upper
/// end would be infinite between the two only. `by` says whether a constant multiplies or divides.
bool stays_in_range(const Constant& first, bool first_divides, const Constant& second, bool second_divides) {
  const Range a = range_of(first), b = range_of(second);
  const bool grows = first_divides ? a.least < 1 : a.largest > 1;
  const bool shrinks = second_divides ? b.largest > 1 : b.least < 1;
  return !grows || !shrinks;
}

/// (x op c1) op c2 -> x op (c1 op c2)
bool same_steps(Graph& g, Node* n, bool strict) {
  if (strict && is_float(n->outputs[0]->type.dtype)) return false;
  const Step outer = step_of(n, n->op);
  const Step inner = outer.x ? private_step(outer.x, n->op) : Step();
  if (!inner.x || inner.x->type != n->outputs[0]->type) return false;
  const Constant &first = inner.c->constant, &second = outer.c->constant;
  if (!may_join(*n, first, second)) return false;
  if (n->is("Mul") && is_float(inner.x->type.dtype) && !stays_in_range(first, false, second, false)) return false;
  const ModelText base = n->outputs[0]->name;
  Value* c = constant_op(g, n, n->op, {inner.c, outer.c}, derived(base, "_constant"));
  replace_node(g, n, add_op(g, n, n->op, {inner.x, c}, base));
  return true;
}

/// x / c1 * c2 -> x * (c2 / c1), x * c1 / c2 -> x * (c1 / c2), x / c1 / c2 -> x / (c1 * c2)
bool with_quotients(Graph& g, Node* n) {
  const bool divides = n->is("Div");
  const Step outer = step_of(n, n->op);
  Step inner = outer.x ? private_step(outer.x, "Div") : Step();
  const bool inner_divides = inner.x != nullptr;
  if (!inner_divides && divides && outer.x) inner = private_step(outer.x, "Mul");
  if (!inner.x || inner.x->type != n->outputs[0]->type) return false;
  const Constant &first = inner.c->constant, &second = outer.c->constant;
  if (!is_proper(first) || !is_proper(second) || !stays_in_range(first, inner_divides, second, divides) ||
      grows_together(inner.c, outer.c))
    return false;
  const ModelText base = n->outputs[0]->name;
  const bool both = inner_divides && divides;
  Value* c =
      both ? constant_op(g, n, "Mul", {inner.c, outer.c}, derived(base, "_divisor"))
           : constant_op(g, n, "Div",
                         inner_divides ? std::vector<Value*>{outer.c, inner.c} : std::vector<Value*>{inner.c, outer.c},
                         derived(base, "_constant"));
  replace_node(g, n, add_op(g, n, both ? "Div" : "Mul", {inner.x, c}, base));
  return true;
}

/// (x * a + b) * c -> x * (a * c) + b * c
bool over_a_sum(Graph& g, Node* n) {
  const Step outer = step_of(n, "Mul");
  const Step sum = outer.x ? private_step(outer.x, "Add") : Step();
  const Step inner = sum.x ? private_step(sum.x, "Mul") : Step();
  if (!inner.x || inner.x->type != n->outputs[0]->type || grows_together(inner.c, outer.c) ||
      grows_together(sum.c, outer.c))
    return false;
  const Constant &a = inner.c->constant, &b = sum.c->constant, &c = outer.c->constant;
  if (is_float(n->outputs[0]->type.dtype) &&
      (!is_proper(a) || !is_moderate(b, 32) || !is_proper(c) || !stays_in_range(a, false, c, false)))
    return false;
  const ModelText base = n->outputs[0]->name;
  Value* factor = constant_op(g, n, "Mul", {inner.c, outer.c}, derived(base, "_constant"));
  Value* shift = constant_op(g, n, "Mul", {sum.c, outer.c}, derived(base, "_shift"));
  Value* scaled = add_op(g, n, "Mul", {inner.x, factor}, derived(base, "_scaled"));
  scaled->producer->origins = sum.x->producer->origins;
  Value* y = add_op(g, n, "Add", {scaled, shift}, base);
  add_origins(y->producer->origins, outer.x->producer->origins);
  replace_node(g, n, y);
  return true;
}

/// v = -x for one user, x no constant: x, else null.
Value* negated(const Value* v) {
  const Node* n = v && only_user(v) ? made_by(v, "Neg") : nullptr;
  return n && !n->inputs[0]->constant ? n->inputs[0] : nullptr;
}

Value* bound(const Node* n, size_t k) { return n->inputs.size() > k ? n->inputs[k] : nullptr; }

/// A Relu, or a Clip between known numbers, the lower of which is not the larger.
bool has_known_bounds(const Node* n) {
  if (n->is("Relu")) return true;
  if (!n->is("Clip")) return false;
  const DType t = n->outputs[0]->type.dtype;
  for (size_t k = 1; k <= 2; ++k)
    if (const Value* v = bound(n, k);
        v && (!v->constant || v->constant->size() != 1 || std::isnan(v->constant->as_double(0))))
      return false;
  if (!bound(n, 1) || !bound(n, 2)) return true;
  const Constant &low = bound(n, 1)->constant, &high = bound(n, 2)->constant;
  if (!is_float(t)) return t != DType::U64 && low->as_int(0) <= high->as_int(0);
  return low->as_double(0) <= high->as_double(0);
}

}  // namespace

bool join_constants(Graph& g, Node* n, bool strict) {
  const bool floats = is_float(n->outputs[0]->type.dtype);
  if (n->is("Add")) return same_steps(g, n, strict);
  if (n->is("Mul") && same_steps(g, n, strict)) return true;
  if (floats && strict) return false;
  if (n->is("Mul") && over_a_sum(g, n)) return true;
  return floats && (n->is("Mul") || n->is("Div")) && with_quotients(g, n);
}

bool join_negation(Graph& g, Node* n) {
  const ModelText base = n->outputs[0]->name;
  const bool floats = is_float(n->outputs[0]->type.dtype);
  auto opposite = [&](Value* c) { return constant_op(g, n, "Neg", {c}, derived(base, "_negated")); };
  auto becomes = [&](const char* op, Value* a, Value* b) {
    replace_node(g, n, add_op(g, n, op, {a, b}, base));
    return true;
  };
  if (n->is("Neg")) {  // -(x * c), -(x / c)
    for (const char* op : {"Mul", "Div"})
      if (const Step s = private_step(n->inputs[0], op); s.x && (floats || *op == 'M'))
        return becomes(op, s.x, opposite(s.c));
    return false;
  }
  if ((n->is("Mul") || n->is("Div")) && (floats || n->is("Mul"))) {  // -x * c, -x / c
    const Step s = step_of(n, n->op);
    Value* x = s.x ? negated(s.x) : nullptr;
    return x && becomes(n->op.c_str(), x, opposite(s.c));
  }
  const bool add = n->is("Add");
  if (!add && !n->is("Sub")) return false;
  if (Value* b = negated(n->inputs[1])) return becomes(add ? "Sub" : "Add", n->inputs[0], b);
  Value* a = add ? negated(n->inputs[0]) : nullptr;
  return a && becomes("Sub", n->inputs[1], a);
}

bool join_bounds(Graph& g, Node* n) {
  if (!n->is("Clip") && !n->is("Relu")) return false;
  const Node* before = n->inputs[0]->producer;
  if (!before || !only_user(n->inputs[0]) || !has_known_bounds(n) || !has_known_bounds(before)) return false;
  if (n->is("Relu") && before->is("Relu")) return false;  // the same twice
  const ModelText base = n->outputs[0]->name;
  auto zero = [&] { return g.add_constant(derived(base, "_zero"), scalar_constant(n->outputs[0]->type.dtype, 0)); };
  Value* low = n->is("Relu") ? zero() : bound(n, 1);
  Value* high = n->is("Relu") ? nullptr : bound(n, 2);
  // clip(clip(x, a, b), c, d) = clip(x, clip(a, c, d), clip(b, c, d)) where a <= b and c <= d.
  auto clipped = [&](Value* v, std::string_view suffix) {
    return constant_op(g, n, "Clip", {v, low, high}, derived(base, suffix));
  };
  Value* inner_low = before->is("Relu") ? zero() : bound(before, 1);
  Value* inner_high = before->is("Relu") ? nullptr : bound(before, 2);
  if (inner_low) inner_low = clipped(inner_low, "_low");
  if (inner_high) inner_high = clipped(inner_high, "_high");
  Value* x = before->inputs[0];
  replace_node(g, n, add_op(g, n, "Clip", {x, inner_low ? inner_low : low, inner_high ? inner_high : high}, base));
  return true;
}

}  // namespace tc
