// Sizes that the model computes from counts: lists of them for Expand and ConstantOfShape, the end of a Range. The
// operator gets the list of the upper bounds, and its result is counted by the same number.
//   s = Shape(x)   x counted along 0   z = ConstantOfShape(s)   ->   z = ConstantOfShape([bound, 4]), counted
// Elements of such lists that are no counts are constants.
//   s = Shape(x)   x counted along 0   k = Gather(s, 1)   ->   k = 4
//
// Preconditions: every element of the list is a constant or a sum of counts with constant factors; a counted axis of an
// Expand's operand keeps its count; a Range begins at 0 and has steps of 1.
#include <algorithm>

#include "ir/ops/op.h"
#include "passes/graph/bounded_sizes.h"

namespace tc {
namespace {

/// How many values a question about one size looks at. Bounds recursion.
constexpr int kBudget = 200;

std::optional<std::vector<int64_t>> ints_at(const Node& n, size_t i) {
  return i < n.inputs.size() && n.inputs[i] ? ints_of(n.inputs[i]) : std::nullopt;
}

bool is_list(const Value* v) { return v->type.is_static_tensor() && v->type.shape.size() == 1; }

}  // namespace

std::optional<SizeForm> BoundedSizes::element(const Value* v, int64_t k) {
  int budget = kBudget;
  return element(v, k, budget);
}

std::optional<SizeForm> BoundedSizes::element(const Value* v, int64_t k, int& budget) {
  if (!v || --budget < 0) return std::nullopt;
  if (const Constant& c = v->constant) {  // one number goes with all
    if (!is_int(c->dtype) || c->size() == 0) return std::nullopt;
    if (c->size() > 1 && k >= c->size()) return std::nullopt;
    return fixed_size(c->as_int(c->size() == 1 ? 0 : k));
  }
  if (const auto count = counts_.find(v)) return count;
  const Node* n = v->producer;
  if (!n || !n->domain.empty() || n->inputs.empty() || !n->inputs[0]) return std::nullopt;
  if (v->type.is_static_tensor() && num_elements(dims_of(v)) == 1) k = 0;
  return element_of(*n, k, budget);
}

std::optional<SizeForm> BoundedSizes::element_of(const Node& n, int64_t k, int& budget) {
  const auto operand = [&](size_t i) { return i < n.inputs.size() ? element(n.inputs[i], k, budget) : std::nullopt; };
  for (const char* op : {"Reshape", "Squeeze", "Unsqueeze", "Identity"})
    if (n.is(op)) return operand(0);
  if (n.is("Cast")) {
    const Value* y = n.outputs[0];
    const bool ints = is_int(n.inputs[0]->type.dtype) && y && y->type.is_tensor() &&
                      (y->type.dtype == DType::I64 || y->type.dtype == DType::I32);
    return ints ? operand(0) : std::nullopt;
  }
  for (const char* op : {"Add", "Mul", "Sub", "Div", "Mod", "Max", "Min"}) {
    if (!n.is(op) || n.inputs.size() != 2) continue;
    const auto a = operand(0), b = a ? operand(1) : std::nullopt;
    return b ? computed(n, *a, *b) : std::nullopt;
  }
  if (n.is("Where")) {  // exporters' Where(Equal(sizes, -1), 1, sizes): a count is no negative number
    const Node* equal = made_by(n.inputs[0], "Equal");
    if (!equal || equal->inputs[0] != n.inputs[2]) return std::nullopt;
    const auto size = operand(2), other = size ? element(equal->inputs[1], k, budget) : std::nullopt;
    if (!other || !other->fixed() || (!size->fixed() && other->addend >= 0)) return std::nullopt;
    return !size->fixed() || size->addend != other->addend ? size : operand(1);
  }
  return part_of_list(n, k, budget);
}

// Operators cut a quotient towards 0, forms downwards: the same where nothing is negative.
std::optional<SizeForm> BoundedSizes::computed(const Node& n, const SizeForm& a, const SizeForm& b) {
  if (n.is("Add")) return a + b;
  if (n.is("Sub")) return a - b;
  if (n.is("Mul")) return a * b;
  if (n.is("Max") || n.is("Min")) {
    const bool a_is_more = counts_.least(a - b) >= 0, b_is_more = counts_.least(b - a) >= 0;
    if (!a_is_more && !b_is_more) return std::nullopt;
    return a_is_more == n.is("Max") ? a : b;
  }
  const bool floor = b.fixed() && b.addend > 0 && counts_.least(a) >= 0;
  if (n.is("Div")) return floor ? counts_.quotient(a, b.addend) : exact_quotient(a, b);
  return floor ? std::optional(a - counts_.quotient(a, b.addend) * b) : std::nullopt;
}

std::optional<SizeForm> BoundedSizes::part_of_list(const Node& n, int64_t k, int& budget) {
  if (!is_list(n.inputs[0])) return std::nullopt;
  if (n.is("Concat")) {
    for (const Value* part : n.inputs) {
      if (!part || !is_list(part)) return std::nullopt;
      const int64_t size = dims_of(part)[0];
      if (k < size) return element(part, k, budget);
      k -= size;
    }
    return std::nullopt;
  }
  const int64_t length = dims_of(n.inputs[0])[0];
  if (n.is("Gather")) {
    const auto indices = ints_at(n, 1);
    if (!indices || k >= int64_t(indices->size())) return std::nullopt;
    const int64_t at = (*indices)[size_t(k)] + ((*indices)[size_t(k)] < 0 ? length : 0);
    return at >= 0 && at < length ? element(n.inputs[0], at, budget) : std::nullopt;
  }
  if (n.is("Slice")) {
    const auto starts = ints_at(n, 1), steps = ints_at(n, 4);
    if (!starts || starts->size() != 1 || (n.inputs.size() > 4 && n.inputs[4] && (!steps || (*steps)[0] != 1)))
      return std::nullopt;
    const int64_t first = std::clamp<int64_t>((*starts)[0] < 0 ? (*starts)[0] + length : (*starts)[0], 0, length);
    return first + k < length ? element(n.inputs[0], first + k, budget) : std::nullopt;
  }
  return std::nullopt;
}

bool BoundedSizes::fold_sizes(Graph& g, Node* n) {
  if ((!n->is("Gather") && !n->is("Slice")) || !n->inputs.at(0) || n->inputs[0]->constant) return false;
  const Value* y = n->outputs.at(0);
  if (!is_list(n->inputs[0]) || n->inputs[0]->type.dtype != DType::I64 || !y || !y->type.is_static_tensor())
    return false;
  std::vector<int64_t> sizes;
  for (int64_t k = 0, length = num_elements(dims_of(y)); k < length; k++) {
    const auto e = element(y, k);
    if (!e || !e->fixed() || k > 64) return false;
    sizes.push_back(e->addend);
  }
  const Constant c = make_constant(DType::I64, dims_of(y), sizes.data());
  replace_node(g, n, g.add_constant(derived(y->name, "_known"), c));
  return true;
}

Node* BoundedSizes::bound_sizes(Graph& g, Node* n) {
  if (n->is("Slice")) return bound_slice(g, n);
  const bool range = n->is("Range");
  if (!range && !n->is("Expand") && !n->is("ConstantOfShape")) return n;
  const size_t operand = n->is("ConstantOfShape") ? 0 : 1;
  if (operand >= n->inputs.size() || !n->inputs[operand] || n->inputs[operand]->constant) return n;
  const Value* sizes = n->inputs[operand];
  if (!sizes->type.is_static_tensor() || (n->outputs.at(0) && n->outputs[0]->type.is_static_tensor())) return n;
  if (!range && sizes->type.shape.size() != 1) return n;
  if (range && (!is_scalar(n->inputs[0], 0) || n->inputs.size() < 3 || !is_scalar(n->inputs[2], 1))) return n;
  const int64_t length = range ? 1 : dims_of(sizes).at(0);
  std::vector<int64_t> bounds;
  std::vector<std::pair<int, SizeForm>> counted;  // by axis
  for (int64_t k = 0; k < length; k++) {
    const auto e = element(sizes, k);
    if (!e || (!e->fixed() && counts_.least(*e) < 0)) return n;
    if (!e->fixed()) counted.push_back({int(k), *e});
    bounds.push_back(counts_.bound(*e));
  }
  if (counted.empty()) return n;
  const ModelText& name = n->outputs.at(0)->name;
  Value* constant = g.add_constant(
      derived(name, "_bounds"), range ? scalar_constant(sizes->type.dtype, double(bounds[0])) : int64_constant(bounds));
  // Broadcasting adds axes in front, never behind.
  const int64_t rank = n->is("Expand") ? rank_of(n->inputs[0]) : length, ahead = std::max<int64_t>(0, rank - length);
  if (n->is("Expand"))  // what is counted of the operand is what it is broadcast to, or goes with a 1
    for (const BoundedSize& own : this->sizes(n->inputs[0])) {
      const int64_t k = own.axis + std::max<int64_t>(0, length - rank) - ahead;
      const auto e = k < 0 ? std::optional(fixed_size(1)) : element(sizes, k);
      if (*e != fixed_size(1) && *e != *counts_.find(own.count)) return n;
    }
  g.set_input(n, operand, constant);
  for (const auto& [k, form] : counted)
    note(n->outputs[0], {int(k + ahead), counts_.value_of(g, n, form, derived(name, "_count")), bounds[size_t(k)]});
  if (n->is("Expand"))
    for (const BoundedSize& own : std::vector<BoundedSize>(this->sizes(n->inputs[0]))) {
      const BoundedSize moved = {int(own.axis + std::max<int64_t>(0, length - rank)), own.count, own.capacity};
      if (!find(n->outputs[0], moved.axis)) note(n->outputs[0], moved);
    }
  return n;
}

}  // namespace tc
