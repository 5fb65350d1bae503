// BoundedSizes::spell_out: operators that look along a size without an upper bound, written as reductions that end with what is there.
//   y = LogSoftmax(x)        ->   d = x - ReduceMax(x), y = d - Log(ReduceSum(Exp(d)))
//   y = ReduceLogSumExp(x)   ->   m = ReduceMax(x), infinite: 0;  y = Log(ReduceSum(Exp(x - m))) + m
//   y = ArgMax(x)            ->   y = ReduceMin(Where(x == ReduceMax(x), 0, 1, 2 ..., 2^62))
//   y = Hardmax(x)           ->   y = (0, 1, 2 ... == ArgMax(x))
// With a bound, something that changes nothing is put behind x instead (keep_axis, contract), and x is read once; no memory holds
// what stands behind x without a bound.
//
// Preconditions: the axis is known, and the count along it has no upper bound. NaN is the largest and the least of all, as the
// operators' own definitions have it.
#include "ir/open_size.h"
#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"
#include "passes/graph/counted_node.h"
#include "passes/graph/rewrite.h"

namespace tc {

namespace {

/// Its name with what the step is.
struct Names {
  const Value* y;
  ModelText operator()(std::string_view step) const { return derived(y->name, step); }
};

bool is_extreme(const Node& n) { return n.is("ArgMax") || n.is("ArgMin"); }

/// The axes that the operator looks along; none for other operators, and where they are not known.
std::vector<int64_t> axes_along(const Node& n) {
  const Value* x = n.inputs[0];
  if (is_extreme(n)) return {axis_from_front(n.attr_int("axis", 0), x)};
  if (n.is("LogSoftmax") || n.is("Hardmax")) return {axis_from_front(n.attr_int("axis", -1), x)};
  if (!n.is("ReduceLogSumExp")) return {};
  std::vector<int64_t> axes;
  const bool given = n.inputs.size() > 1 && n.inputs[1];
  if (given) {
    const auto known = ints_of(n.inputs[1]);
    if (!known) return {};
    for (const int64_t a : *known) axes.push_back(axis_from_front(a, x));
  }
  if (axes.empty() && n.attr_int("noop_with_empty_axes", 0) == 0)
    for (int d = 0; d < rank_of(x); d++) axes.push_back(d);
  return axes;
}

}  // namespace

/// 0, 1, 2 ... along `axis` of x, of size 1 along the others.
Value* BoundedSizes::places_along(Graph& g, Node* n, const Value* x, const BoundedSize& size) {
  const Names name{n->outputs[0]};
  Value* from = g.add_constant(name("_from"), scalar_constant(DType::I64, 0));
  Value* by = g.add_constant(name("_by"), scalar_constant(DType::I64, 1));
  Value* places = made(g, n, "Range", {from, size.count, by}, name("_places"));
  std::vector<int64_t> others;
  for (int d = size.axis + 1; d < rank_of(x); d++) others.push_back(d - size.axis);
  if (others.empty()) return places;
  return made(g, n, "Unsqueeze", {places, g.add_constant(name("_others"), int64_constant(others))}, name("_place"));
}

/// Where the extreme is, with the axis kept.
Value* BoundedSizes::place_of_extreme(Graph& g, Node* n, Value* x, const BoundedSize& size, bool largest, bool last) {
  const Names name{n->outputs[0]};
  Value* axes = g.add_constant(name("_axes"), int64_constant({size.axis}));
  Value* extreme =
      made(g, n, largest ? "ReduceMax" : "ReduceMin", {x, axes}, name("_extreme"), {{"keepdims", int64_t(1)}});
  Value* here = made(g, n, "Equal", {x, extreme}, name("_equal"));
  if (is_float(x->type.dtype)) here = made(g, n, "Or", {here, made(g, n, "IsNaN", {x}, name("_nan"))}, name("_here"));
  Value* none = g.add_constant(name("_none"), scalar_constant(DType::I64, last ? -1 : 0x1p62));
  Value* place = made(g, n, "Where", {here, places_along(g, n, x, size), none}, name("_places_here"));
  return made(g, n, last ? "ReduceMax" : "ReduceMin", {place, axes}, name("_at"), {{"keepdims", int64_t(1)}});
}

Node* BoundedSizes::spell_out(Graph& g, Node* n) {
  if (n->inputs.empty() || !n->inputs[0] || !n->domain.empty() || !n->outputs.at(0)) return n;
  Value* x = n->inputs[0];
  const std::vector<int64_t> along = axes_along(*n);
  std::optional<BoundedSize> size;
  for (const int64_t a : along)
    if (const auto s = a >= 0 && a < rank_of(x) ? find(x, int(a)) : std::nullopt; s && is_open(s->capacity)) size = s;
  if (!size) return n;
  const Names name{n->outputs[0]};
  const Attrs keep = {{"keepdims", int64_t(1)}};
  const DType type = x->type.dtype;
  const auto op = [&](const char* o, const std::vector<Value*>& in, std::string_view step, const Attrs& attrs = {}) {
    return made(g, n, o, in, name(step), attrs);
  };
  const auto without_axes = [&](Value* y, const char* step) {
    if (n->attr_int("keepdims", 1) != 0) return y;
    return op("Squeeze", {y, g.add_constant(name("_squeezed"), int64_constant(along))}, step);
  };
  if (is_extreme(*n)) {
    const bool last = n->attr_int("select_last_index", 0) != 0;
    return replaced(g, n, without_axes(place_of_extreme(g, n, x, *size, n->is("ArgMax"), last), "_y"));
  }
  if (n->is("Hardmax")) {
    Value* at = place_of_extreme(g, n, x, *size, true, false);
    Value* here = op("Equal", {places_along(g, n, x, *size), at}, "_chosen");
    return replaced(g, n, op("Cast", {here}, "_y", {{"to", int64_t(type)}}));
  }
  // The sum of many is more than a narrow type holds.
  const bool narrow = is_half(type);
  if (narrow) x = op("Cast", {x}, "_wide", {{"to", int64_t(DType::F32)}});
  Value* axes = g.add_constant(name("_axes"), int64_constant(along));
  Value* most = op("ReduceMax", {x, axes}, "_max", keep);
  const bool sum_only = n->is("ReduceLogSumExp");
  if (sum_only) {
    Value* zero = g.add_constant(name("_zero"), scalar_constant(x->type.dtype, 0));
    most = op("Where", {op("IsInf", {most}, "_inf"), zero, most}, "_shift");
  }
  Value* rest = op("Sub", {x, most}, "_rest");
  Value* sum = op("Log", {op("ReduceSum", {op("Exp", {rest}, "_exp"), axes}, "_sum", keep)}, "_log");
  Value* y = sum_only ? without_axes(op("Add", {sum, most}, "_lse"), "_y") : op("Sub", {rest, sum}, "_y");
  if (narrow) y = op("Cast", {y}, "_narrow", {{"to", int64_t(type)}});
  return replaced(g, n, y);
}

}  // namespace tc
