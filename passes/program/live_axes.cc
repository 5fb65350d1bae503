// From the outputs back to the inputs: the caller sees the first elements of an output only; a function needs of an operand,
// along an axis, what its results read of it, and what a condition lets through.
//   y[i, j] = x[i, j] + 1                          y needed below n along 0       ->   x, too
//   y[i] = sum(k) x[2 i + k] * w[k], k < 3         y needed below (n + 1) / 2     ->   x below 2 ((n + 1) / 2) + 1
//   s = sum(k) where(k < n, a[i, k], 0) * b[k, j]  a needed below n along 1, whatever s is
// Positions are bounded by the sizes from the front to the back first:
//   p = index(x, n)   y = x[p]                     x needed below n
// What is tested as an index (and may raise the status word) is needed as a whole, and so is what it is made of: what lies
// behind the sizes could be anything. Ends are expressions over the sizes that the caller chooses, which all kernels can read,
// also those that run before a number is computed from them.
#include "passes/program/live_axes.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/graph/views.h"
#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "passes/program/live_function.h"
#include "passes/program/size_ends.h"

namespace tc {
namespace {

using List = std::vector<LiveAxis>;

}  // namespace

Expr LiveAxes::size(const Value* v, int depth) {
  if (const auto it = sizes_.find(v); it != sizes_.end()) return it->second;
  Expr e;
  Node* n = v->producer;
  if (v->constant && v->constant->size() == 1 && v->type.dtype == DType::I64) {
    e = Expr(v->constant->as_int(0));
  } else if (n && depth > 0 && n->regions.empty() && is_view(*n)) {
    e = size(n->inputs[0], depth - 1);
  } else if (n && depth > 0 && n->regions.empty() && v->type.dtype == DType::I64) {
    const TensorFn& fn = tensor_fn(*n);
    std::map<const BufferDef*, Expr> known;
    const std::vector<int> operands = fn_operands(*n);
    for (size_t k = 0; k < operands.size(); k++)
      if (const Value* x = n->inputs.at(size_t(operands[k]));
          x->type.is_static_tensor() && has_one_element(static_dims(x->type.shape)))
        known[fn.inputs[k].get()] = size(x, depth - 1);
    for (const Stage& s : fn.stages) {
      const bool one = s.kind == Stage::Kind::Compute && s.outputs.size() == 1 && s.scan < 0 &&
                       has_one_element(static_dims(s.outputs[0]->shape)) && s.outputs[0]->dtype == DType::I64;
      if (one) known[s.outputs[0].get()] = exact(s.values[0], known);
    }
    for (size_t k = 0; k < fn.outputs.size() && k < n->outputs.size(); k++)
      if (n->outputs[k] == v)
        if (const auto it = known.find(fn.outputs[k].get()); it != known.end()) e = it->second;
  }
  if (e) e = if_short(e, ranges_);
  return sizes_[v] = e;
}

// Sums, products and quotients of what is known.
Expr LiveAxes::exact(const Expr& e, const std::map<const BufferDef*, Expr>& known) const {
  if (as_const_int(e)) return e;
  if (const Load* l = as<Load>(e)) {
    const auto it = known.find(l->buffer.get());
    return it == known.end() ? Expr() : it->second;
  }
  const Apply* a = as<Apply>(e);
  if (!a || a->args.size() != 2 || e->dtype != DType::I64) return {};
  const Expr x = exact(a->args[0], known), y = x ? exact(a->args[1], known) : Expr();
  if (!y) return {};
  switch (a->op) {
    case Op::Add: return x + y;
    case Op::Sub: return x - y;
    case Op::Mul: return x * y;
    case Op::Min: return min(x, y);
    case Op::Max: return max(x, y);
    case Op::Div:
    case Op::FloorDiv:
      return as_const_int(y).value_or(0) > 0 && interval(x, ranges_).min >= 0 ? floor_div(x, y) : Expr();
    default: return {};
  }
}

void LiveAxes::need(const Value* v, List list) {
  const Shape& shape = v->type.shape;
  std::erase_if(list, [&](const LiveAxis& l) {
    return !v->type.is_static_tensor() || interval(l.end, ranges_).min >= shape.at(size_t(l.axis)).value;
  });
  const auto [it, first] = needed_.try_emplace(v, list);
  if (!first) it->second = needed_by_both(it->second, list, ranges_);
}

std::vector<LiveAxis> LiveAxes::of(const Value* v) const {
  const auto it = needed_.find(v);
  List list = it == needed_.end() ? List() : it->second;
  drop_constant_ends(list);
  return list;
}

Expr LiveAxes::number_of(const Graph& g, const SizeSum& s) const {
  Expr n = s.addend;
  for (const SizeSum::Term& t : s.terms) {
    const auto size = sizes_.find(g.inputs()[t.input]);
    if (size == sizes_.end() || !size->second) return {};
    n = n + size->second * Expr(t.factor);
  }
  return simplify(n, ranges_);
}

bool LiveAxes::needed_within(const Value* v, int axis, const Expr& end) const {
  const auto it = needed_.find(v);
  if (it == needed_.end()) return true;  // nobody does
  return std::any_of(it->second.begin(), it->second.end(),
                     [&](const LiveAxis& l) { return l.axis == axis && never_more(l.end, end, ranges_); });
}

// What there is lies densely: as rows in front of others, or as the first elements of a list, as which all nodes take it then.
bool LiveAxes::reads_behind(const Graph& g, const Value* v, const std::vector<IoSize>& sizes) const {
  const Dims dims = static_dims(v->type.shape);
  Expr elements = 1;
  for (int a = 0; a < int(dims.size()) && bool(elements); a++) {
    const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const IoSize& s) { return s.axis == a; });
    const Expr n = size == sizes.end() ? Expr(dims[size_t(a)]) : number_of(g, size->sum);
    elements = n ? elements * n : n;
  }
  if (!elements) return true;
  if (sizes.size() == 1 && num_elements(Dims(dims.begin(), dims.begin() + sizes[0].axis)) == 1)
    return !needed_within(v, sizes[0].axis, number_of(g, sizes[0].sum));
  elements = simplify(elements, ranges_);
  return v->output_uses > 0 || std::any_of(v->users.begin(), v->users.end(), [&](const Node* n) {
           const bool is_list = n->regions.empty() && is_view(*n) && n->outputs[0]->type.shape.size() == 1;
           return !is_list || !needed_within(n->outputs[0], 0, elements);
         });
}

Expr LiveAxes::size_of(Graph& g, const OutputSize& s) {
  if (!s.of_inputs()) return size(g.outputs()[s.count]);
  const Expr all = number_of(g, s.sum);
  return all ? if_short(all, ranges_) : Expr();
}

/// Of an output that lies densely in its sizes: the first along the first axis of its memory that hold all elements.
std::optional<LiveAxis> LiveAxes::dense_part(Graph& g, const Dims& dims, const std::vector<OutputSize>& sizes) {
  int axis = 0;
  while (size_t(axis) < dims.size() && dims[size_t(axis)] == 1) axis++;
  if (sizes.empty() || size_t(axis) == dims.size()) return {};
  int64_t known = 1, slice = 1;  // elements of all axes whose sizes are constants; of those behind the first
  Expr all = 1;
  for (int a = 0; a < int(dims.size()); a++) {
    const auto chosen = std::find_if(sizes.begin(), sizes.end(), [&](const OutputSize& s) { return s.axis == a; });
    const Expr n = chosen == sizes.end() ? Expr() : size_of(g, *chosen);
    if (chosen != sizes.end() && !n) return {};
    if (n) all = all * n;
    if (!n) known = checked_mul(known, dims[size_t(a)]);
    if (a > axis) slice = checked_mul(slice, dims[size_t(a)]);
  }
  const int64_t common = std::gcd(known, slice);
  if (common == 0) return {};
  const Expr end =
      if_short(floor_div(all * Expr(known / common) + Expr(slice / common - 1), Expr(slice / common)), ranges_);
  return end ? std::optional(LiveAxis{axis, end}) : std::nullopt;
}

LiveAxes::LiveAxes(Graph& g) {
  if (g.sizes().chosen.empty()) return;
  for (const SizeInput& s : g.sizes().chosen) {
    const Value* input = g.inputs()[s.input];
    symbols_.push_back({make_var("n"), input, {s.next ? 0 : s.least, s.most}});
    ranges_[symbols_.back().var.get()] = symbols_.back().range;
    sizes_[input] = Expr(symbols_.back().var);
  }
  for (const auto& n : g.nodes()) bound(*n);
  for (size_t k = 0; k < g.outputs().size(); k++) {
    std::vector<OutputSize> sizes;
    for (const OutputSize& s : g.sizes().outputs)
      if (s.output == k) sizes.push_back(s);
    List list;
    const Value* all = g.outputs()[k];
    const Shape& shape = all->type.shape;
    // What is packed element by element is one axis.
    const Node* made = all->producer;
    const bool flat = made && is_view(*made) && made->inputs[0]->type.shape.size() == 1;
    if (sizes.size() == 1 &&
        std::all_of(shape.begin(), shape.begin() + sizes[0].axis, [](const Dim& d) { return d.value == 1; })) {
      if (const Expr end = size_of(g, sizes[0])) list.push_back({sizes[0].axis, end});
    } else if (flat && !sizes.empty()) {
      Expr elements = 1;
      for (int a = 0; a < int(shape.size()) && bool(elements); a++) {
        const auto chosen = std::find_if(sizes.begin(), sizes.end(), [&](const OutputSize& s) { return s.axis == a; });
        const Expr n = chosen == sizes.end() ? Expr(shape[size_t(a)]) : size_of(g, *chosen);
        elements = n ? elements * n : n;
      }
      if (const Expr end = elements ? if_short(elements, ranges_) : elements) list.push_back({0, end});
      all = made->inputs[0];
    } else if (const auto first = dense_part(g, static_dims(shape), sizes)) {
      list.push_back(*first);
    }
    need(all, list);
  }
  for (auto it = g.nodes().rbegin(); it != g.nodes().rend(); ++it) {
    Node& n = **it;
    if (is_view(n)) {
      view(n);
    } else if (!n.regions.empty()) {
      for (const Value* v : n.inputs)
        if (v) need(v, {});
    } else {
      function(n);
    }
  }
}

namespace {

/// The first elements of a tensor, as many as `l` says of sizes `to`, as the first along an axis of sizes `from`.
std::optional<LiveAxis> first_elements(const LiveAxis& l, const Dims& to, const Dims& from) {
  int64_t of_slice = 1, of_own = 1;
  for (size_t a = 0; a < to.size(); a++) {
    if (int(a) < l.axis && to[a] != 1) return {};
    if (int(a) > l.axis) of_slice = checked_mul(of_slice, to[a]);
  }
  size_t axis = 0;
  while (axis < from.size() && from[axis] == 1) axis++;
  if (axis == from.size()) return {};
  for (size_t a = axis + 1; a < from.size(); a++) of_own = checked_mul(of_own, from[a]);
  if (of_own > 0 && of_slice % of_own == 0) return LiveAxis{int(axis), l.end * Expr(of_slice / of_own)};
  if (of_slice < 1 || of_own % of_slice != 0) return {};
  const int64_t slices = of_own / of_slice;
  return LiveAxis{int(axis), floor_div(l.end + Expr(slices - 1), Expr(slices))};
}

}  // namespace

// The same elements in front of the axis, and as many along it; or the first of all elements.
void LiveAxes::view(const Node& n) {
  if (needed_.count(n.outputs[0]) == 0) return;
  const Dims to = static_dims(n.outputs[0]->type.shape), from = static_dims(n.inputs[0]->type.shape);
  List list;
  for (const LiveAxis& l : of(n.outputs[0])) {
    int64_t ahead = 1, before = 1;
    std::optional<LiveAxis> same;
    for (int a = 0; a < l.axis; a++) ahead = checked_mul(ahead, to[size_t(a)]);
    for (size_t a = 0; a < from.size() && !same; a++) {
      if (before == ahead && from[a] == to[size_t(l.axis)]) same = LiveAxis{int(a), l.end};
      before = checked_mul(before, from[a]);
    }
    if (!same) same = first_elements(l, to, from);
    if (same && std::none_of(list.begin(), list.end(), [&](const LiveAxis& x) { return x.axis == same->axis; }))
      list.push_back(*same);
  }
  need(n.inputs[0], list);
}

LiveFunction LiveAxes::operands_of(Node& n, std::vector<const Value*>& operands) {
  const TensorFn& fn = tensor_fn(n);
  LiveFunction::Sizes sizes;
  LiveFunction::Bounds bounds;
  for (const int i : fn_operands(n)) operands.push_back(n.inputs.at(size_t(i)));
  for (size_t k = 0; k < operands.size(); k++) {
    const BufferDef* own = fn.inputs[k].get();
    if (own->dtype != DType::I64) continue;
    const Expr e = own->shape.empty() ? size(operands[k]) : Expr();
    if (e) sizes[own] = e;
    if (const auto it = most_.find(operands[k]); it != most_.end()) bounds[own] = it->second;
  }
  return {fn, std::move(sizes), std::move(bounds), ranges_};
}

void LiveAxes::bound(Node& n) {
  const auto is_list = [](const Value* v) { return v && v->type.is_static_tensor() && v->type.dtype == DType::I64; };
  if (!n.regions.empty() || std::none_of(n.outputs.begin(), n.outputs.end(), is_list)) return;
  if (is_view(n)) {
    if (const auto it = most_.find(n.inputs[0]); it != most_.end()) most_[n.outputs[0]] = it->second;
    return;
  }
  std::vector<const Value*> operands;
  const LiveFunction f = operands_of(n, operands);
  const TensorFn& fn = tensor_fn(n);
  for (size_t k = 0; k < fn.outputs.size() && k < n.outputs.size(); k++)
    if (is_list(n.outputs[k]))
      if (const auto known = f.bound_of(fn.outputs[k])) most_[n.outputs[k]] = *known;
}

void LiveAxes::function(Node& n) {
  const TensorFn& fn = tensor_fn(n);
  std::vector<const Value*> operands;
  LiveFunction f = operands_of(n, operands);
  for (size_t k = 0; k < fn.outputs.size() && k < n.outputs.size(); k++)
    if (n.outputs[k] && needed_.count(n.outputs[k]) != 0) f.need(fn.outputs[k], of(n.outputs[k]));
  f.run();
  // What the function itself reads of its results.
  for (size_t k = 0; k < fn.outputs.size() && k < n.outputs.size(); k++)
    if (const List* list = n.outputs[k] ? f.of(fn.outputs[k]) : nullptr) need(n.outputs[k], *list);
  for (size_t k = 0; k < operands.size(); k++)
    if (const List* list = f.of(fn.inputs[k])) need(operands[k], *list);
}

}  // namespace tc
