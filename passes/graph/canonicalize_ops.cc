// Writes operators that say the same thing in one way, so that later passes look for one form.
//   Flatten, Squeeze, Unsqueeze            ->   Reshape with a constant shape
//   Gemm(a, b, c) {alpha, beta, trans}     ->   MatMul(a, b) * alpha + c * beta, operands transposed first
//   GlobalAveragePool, GlobalMaxPool       ->   ReduceMean, ReduceMax over the spatial axes
//   Split(x)                               ->   one Slice for each part that is read
//   Sum(a, b, c), Mean(a, b, c)            ->   Adds, Adds / 3
//   Sub(x, constant)                       ->   Add(x, -constant)
//   Div(x, power of two)                   ->   Mul(x, its reciprocal), which is exact
//
// Preconditions: sizes are known. Of
//   Gemm       floats; narrow ones (halves) only where the product is the result, which would otherwise be rounded, and
//              might overflow, before it is scaled or the bias joins
//   Split      no part is absent
//   Sum, Mean  no narrow floats, for the same reason
//   Sub, Div   floats; the constant does not raise the rank; the reciprocal is a normal number of the type
//
// Needs: types. Leaves: none of the forms on the left (of Gemm: those of floats with known sizes).
#include <cmath>

#include "passes/graph/match.h"
#include "passes/graph/passes.h"

namespace tc {

namespace {

/// Inserts operators before the node that they replace.
struct Rewriter {
  Graph& g;
  Node* n;

  const ModelText& base() const { return n->outputs[0]->name; }
  Value* op(const char* name, std::vector<Value*> in, std::string_view suffix = "", Attrs attrs = {}) const {
    return add_op(g, n, name, std::move(in), derived(base(), suffix), std::move(attrs));
  }
  Value* scalar(double v, std::string_view suffix) const {
    return g.add_constant(derived(base(), suffix), scalar_constant(n->outputs[0]->type.dtype, v));
  }
  Value* ints(const std::vector<int64_t>& v, std::string_view suffix) const {
    return g.add_constant(derived(base(), suffix), int64_constant(v));
  }
  void finish(Value* v) const { replace_node(g, n, v); }
};

bool typed(const Node& n) {
  for (const Value* v : n.inputs)
    if (v && !v->type.is_static_tensor()) return false;
  for (const Value* v : n.outputs)
    if (v && !v->type.is_static_tensor()) return false;
  return !n.outputs.empty() && n.outputs[0];
}

void reshape(const Rewriter& r) {
  Value* y = r.n->outputs[0];
  r.finish(r.op("Reshape", {r.n->inputs[0], r.ints(dims_of(y), "_shape")}, "", sizes_as_given(y)));
}

void gemm(const Rewriter& r) {
  const Node& n = *r.n;
  auto transposed = [&](Value* v, const char* attr, std::string_view suffix) {
    return n.attr_int(attr, 0) ? r.op("Transpose", {v}, suffix, {{"perm", std::vector<int64_t>{1, 0}}}) : v;
  };
  const double alpha = double(n.attr_float("alpha", 1)), beta = double(n.attr_float("beta", 1));
  Value* c = n.inputs.size() > 2 ? n.inputs[2] : nullptr;
  if (beta == 0) c = nullptr;
  Value *a = transposed(n.inputs[0], "transA", "_a"), *b = transposed(n.inputs[1], "transB", "_b");
  Value* y = r.op("MatMul", {a, b}, alpha == 1 && !c ? "" : "_product");
  if (alpha != 1) y = r.op("Mul", {y, r.scalar(alpha, "_alpha")}, c ? "_scaled" : "");
  if (c && beta != 1) c = r.op("Mul", {c, r.scalar(beta, "_beta")}, "_bias");
  if (c) y = r.op("Add", {y, c});
  r.finish(y);
}

void global_pool(const Rewriter& r, const char* reduction) {
  std::vector<int64_t> axes;
  for (int d = 2; d < rank_of(r.n->inputs[0]); ++d) axes.push_back(d);
  r.finish(r.op(reduction, {r.n->inputs[0], r.ints(axes, "_axes")}, "", {{"keepdims", int64_t(1)}}));
}

void split(const Rewriter& r) {
  Value* x = r.n->inputs[0];
  int64_t axis = r.n->attr_int("axis", 0), at = 0;
  if (axis < 0) axis += rank_of(x);
  for (Value* part : r.n->outputs) {
    if (!part) return;  // an absent part would still take its share: leave the node alone
  }
  for (Value* part : r.n->outputs) {
    const int64_t size = dims_of(part).at(size_t(axis));
    auto number = [&](int64_t v, std::string_view suffix) {
      return r.g.add_constant(derived(part->name, suffix), int64_constant({v}));
    };
    Value* slice = add_op(r.g, r.n, "Slice",
                          {x, number(at, "_start"), number(at + size, "_end"), number(axis, "_axis")}, part->name);
    if (part->is_used())
      replace_value(r.g, r.n, part, slice);
    else
      r.g.erase(slice->producer);
    at += size;
  }
  erase_unused(r.g, r.n);
}

void variadic_sum(const Rewriter& r, bool mean) {
  const auto in = r.n->inputs;
  if (in.size() < 2 && !mean) return;
  Value* sum = in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    const bool last = i + 1 == in.size() && !mean;
    sum = r.op("Add", {sum, in[i]}, last ? "" : "_" + to_text(int64_t(i)));
  }
  r.finish(mean ? r.op("Div", {sum, r.scalar(double(in.size()), "_count")}) : sum);
}

bool is_power_of_two(double v, DType t) {
  int exponent = 0;
  const int most = t == DType::F16 ? 14 : 100;  // the reciprocal, too, is a normal number of the type
  return std::isfinite(v) && v != 0 && std::abs(std::frexp(v, &exponent)) == 0.5 && std::abs(exponent - 1) <= most;
}

/// Would the steps of the operator round a result that the operator itself does not round?
bool rounds_between(const Node& n) {
  if (is_wide(n.outputs[0]->type.dtype) || !is_float(n.outputs[0]->type.dtype)) return false;
  if (!n.is("Gemm")) return n.inputs.size() > 2 || n.is("Mean");
  return n.attr_float("alpha", 1) != 1 || (n.inputs.size() > 2 && n.inputs[2] && n.attr_float("beta", 1) != 0);
}

void rewrite_node(Graph& g, Node* n) {
  const Rewriter r{g, n};
  const bool is_float_op = is_float(n->outputs[0]->type.dtype);
  if (n->is("Flatten") || n->is("Squeeze") || n->is("Unsqueeze")) return reshape(r);
  if ((n->is("Gemm") || n->is("Sum") || n->is("Mean")) && rounds_between(*n)) return;
  if (n->is("Gemm") && is_float_op) return gemm(r);
  if (n->is("GlobalAveragePool")) return global_pool(r, "ReduceMean");
  if (n->is("GlobalMaxPool")) return global_pool(r, "ReduceMax");
  if (n->is("Split")) return split(r);
  if (n->is("Sum") || n->is("Mean")) return variadic_sum(r, n->is("Mean"));
  if (n->is("Sub") && is_float_op && n->inputs[1]->constant && is_float(n->inputs[1]->type.dtype))
    return r.finish(
        r.op("Add", {n->inputs[0], constant_op(g, n, "Neg", {n->inputs[1]}, derived(r.base(), "_negated"))}));
  if (n->is("Div") && is_float_op) {
    const auto divisor = scalar_of(n->inputs[1]);
    if (divisor && is_power_of_two(*divisor, n->outputs[0]->type.dtype) &&
        rank_of(n->inputs[1]) <= rank_of(n->inputs[0]))
      r.finish(r.op("Mul", {n->inputs[0], r.scalar(1 / *divisor, "_factor")}));
  }
}

}  // namespace

void canonicalize_ops(Graph& g, PassContext& cx) {
  for (auto it = g.nodes().begin(); it != g.nodes().end();) {
    Node* n = (it++)->get();
    for (const auto& r : n->regions) canonicalize_ops(*r, cx);
    if (n->regions.empty() && n->domain.empty() && typed(*n)) rewrite_node(g, n);
  }
}

}  // namespace tc
