// Sizes that the model computes from counts: lists of them for Expand and ConstantOfShape. The operator gets the list of the
// upper bounds, and its result is counted by the same number.
//   s = Shape(x)   x counted along 0   z = ConstantOfShape(s)   ->   z = ConstantOfShape([bound, 4]), counted
// Elements of such lists that are no counts are constants.
//   s = Shape(x)   x counted along 0   k = Gather(s, 1)   ->   k = 4
//
// Preconditions: every element of the list is a constant or a sum of counts with constant factors; a counted axis of an

#include <algorithm>
#include <cmath>

#include "ir/ops/op.h"
#include "passes/graph/counted_node.h"

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
  if (!v) return std::nullopt;
  if (const auto known = elements_.find({v->id, k}); known != elements_.end()) return known->second;
  const auto f = traced(v, k, budget);
  return f ? std::optional(elements_[{v->id, k}] = counts_.simplest(*f)) : std::nullopt;
}

std::optional<SizeForm> BoundedSizes::traced(const Value* v, int64_t k, int& budget) {
  if (--budget < 0) return std::nullopt;
  if (const Constant& c = v->constant) {  // one number goes with all
    if (!is_int(c->dtype) || c->size() == 0) return std::nullopt;
    if (c->size() > 1 && k >= c->size()) return std::nullopt;
    return fixed_size(c->as_int(c->size() == 1 ? 0 : k));
  }
  if (const auto count = counts_.find(v)) return count;
  const Node* n = v->producer;
  if (!n || !n->domain.empty() || n->inputs.empty() || !n->inputs[0]) return std::nullopt;
  if (v->type.is_static_tensor() && has_one_element(dims_of(v))) k = 0;
  return n->is("Split") ? part_of_split(*v, k, budget) : element_of(*n, k, budget);
}

std::optional<SizeForm> BoundedSizes::element_of(const Node& n, int64_t k, int& budget) {
  const auto operand = [&](size_t i) { return i < n.inputs.size() ? element(n.inputs[i], k, budget) : std::nullopt; };
  if (has_trait(n, OpTrait::KeepsElements)) return operand(0);
  if (n.is("Cast")) {
    const Value* y = n.outputs[0];
    const bool to_ints = y && y->type.is_tensor() && (y->type.dtype == DType::I64 || y->type.dtype == DType::I32);
    if (!to_ints || is_int(n.inputs[0]->type.dtype)) return to_ints ? operand(0) : std::nullopt;
    const auto exact = real(n.inputs[0], k, budget);
    if (!exact || counts_.least(exact->form) < 0) return std::nullopt;
    return counts_.quotient(exact->form, exact->divisor);
  }
  if (n.is("Neg")) {
    const auto a = operand(0);
    return a ? std::optional(*a * -1) : std::nullopt;
  }
  if (n.is("ReduceProd")) return product_of_list(n, budget);
  if (n.is("OneHot")) {  // a list of one size among ones
    const auto at = ints_at(n, 0), depth = ints_at(n, 1);
    if (!at || at->size() != 1 || !depth || n.inputs.size() < 3 || !n.inputs[2]) return std::nullopt;
    const int64_t hit = (*at)[0] < 0 ? (*at)[0] + depth->at(0) : (*at)[0];
    return element(n.inputs[2], k == hit ? 1 : 0, budget);
  }
  for (const char* op : {"Add", "Mul", "Sub", "Div", "Mod", "Max", "Min"}) {
    if (!n.is(op) || n.inputs.size() != 2) continue;
    const auto a = operand(0), b = a ? operand(1) : std::nullopt;
    return b ? computed(n, *a, *b) : std::nullopt;
  }
  if (n.is("Clip")) {  // min(max(size, least), most), either of which may be missing
    auto size = operand(0);
    for (const size_t i : {1, 2})
      if (size && i < n.inputs.size() && n.inputs[i]) {
        const auto bound = operand(i);
        size = bound ? extreme(*size, *bound, i == 1) : std::nullopt;
      }
    return size;
  }
  if (n.is("Where")) {  // exporters' Where(Equal(sizes, -1), 1, sizes): a count is no negative number
    if (const Constant& known = n.inputs[0]->constant) {
      if (known->size() == 0 || (known->size() > 1 && k >= known->size())) return std::nullopt;
      return operand(known->as_int(known->size() == 1 ? 0 : k) != 0 ? 1 : 2);
    }
    const Node* equal = made_by(n.inputs[0], "Equal");
    const auto compared = equal ? element(equal->inputs[0], k, budget) : std::nullopt;
    if (!compared || compared != operand(2)) return std::nullopt;
    const auto size = operand(2), other = size ? element(equal->inputs[1], k, budget) : std::nullopt;
    if (!other || !other->fixed() || (!size->fixed() && other->addend >= 0)) return std::nullopt;
    return !size->fixed() || size->addend != other->addend ? size : operand(1);
  }
  return part_of_list(n, k, budget);
}

// The larger of two, or the lesser.
std::optional<SizeForm> BoundedSizes::extreme(const SizeForm& a, const SizeForm& b, bool larger) {
  const bool a_is_more = counts_.least(a - b) >= 0, b_is_more = counts_.least(b - a) >= 0;
  if (a_is_more || b_is_more) return a_is_more == larger ? a : b;
  const int64_t least_a = counts_.least(a), least_b = counts_.least(b);
  if (larger) return least_a < 0 && least_b < 0 ? std::nullopt : std::optional(counts_.larger(a, b));
  return least_a < 0 || least_b < 0 ? std::nullopt : std::optional(counts_.lesser(a, b));
}

// Operators cut a quotient towards 0, forms downwards: the same where nothing is negative.
std::optional<SizeForm> BoundedSizes::computed(const Node& n, const SizeForm& a, const SizeForm& b) {
  if (n.is("Add")) return a + b;
  if (n.is("Sub")) return a - b;
  if (n.is("Mul")) return a * b;
  if (n.is("Max") || n.is("Min")) return extreme(a, b, n.is("Max"));
  if (!b.fixed() && counts_.least(b) > 0 && (n.is("Mod") || n.is("Div"))) {  // the quotient is 0, 1 or -1
    const bool within = counts_.least(a) >= 0 && counts_.least(b - a) > 0;
    if (within) return n.is("Mod") ? a : fixed_size(0);
    const bool once = counts_.least(a - b) >= 0 && counts_.least(b * 2 - a) > 0;
    if (once) return n.is("Mod") ? a - b : fixed_size(1);
    const bool below = counts_.bound(a) < 0 && counts_.least(a + b) >= 0 && n.attr_int("fmod", 0) == 0;
    if (below && n.is("Mod")) return a + b;
  }
  const bool floor = b.fixed() && b.addend > 0 && counts_.least(a) >= 0;
  if (n.is("Div") && b.fixed() && b.addend > 0 && counts_.bound(a) <= 0) return counts_.quotient(a * -1, b.addend) * -1;
  if (n.is("Div")) return floor ? counts_.quotient(a, b.addend) : exact_quotient(a, b);
  return floor ? std::optional(a - counts_.quotient(a, b.addend) * b) : std::nullopt;
}

// As far as floating point gives the exact number, or one that is rounded to the same whole number: products with whole numbers
// divided by powers of two, quotients by whole numbers.
std::optional<BoundedSizes::RealSize> BoundedSizes::real(const Value* v, int64_t k, int& budget) {
  if (!v || v->constant || --budget < 0 || !v->producer || !v->type.is_tensor()) return std::nullopt;
  if (v->type.dtype != DType::F32 && v->type.dtype != DType::F64) return std::nullopt;
  const Node& n = *v->producer;
  if (v->type.is_static_tensor() && has_one_element(dims_of(v))) k = 0;
  const auto small = [&](const SizeForm& f) { return counts_.least(f) >= 0 && counts_.bound(f) < (1 << 24); };
  if (n.is("Cast") && is_int(n.inputs[0]->type.dtype)) {
    const auto whole = element(n.inputs[0], k, budget);
    return whole && small(*whole) ? std::optional(RealSize{*whole, 1}) : std::nullopt;
  }
  if (has_trait(n, OpTrait::KeepsElements)) return real(n.inputs[0], k, budget);
  if (n.is("Floor") || n.is("Ceil")) {
    const auto x = real(n.inputs[0], k, budget);
    if (!x) return std::nullopt;
    return RealSize{counts_.quotient(x->form + fixed_size(n.is("Ceil") ? x->divisor - 1 : 0), x->divisor), 1};
  }
  if (n.is("Add") || n.is("Sub")) {  // of a whole number
    const auto x = real(n.inputs[0], k, budget);
    const auto more = x ? scalar_of(n.inputs[1]) : std::nullopt;
    if (!more || *more != std::floor(*more) || std::abs(*more) > 4096) return std::nullopt;
    const RealSize y = {x->form + fixed_size(int64_t(n.is("Add") ? *more : -*more) * x->divisor), x->divisor};
    return small(y.form * 4) ? std::optional(y) : std::nullopt;
  }
  if (!n.is("Mul") && !n.is("Div")) return std::nullopt;
  const size_t at = n.is("Mul") && n.inputs[0] && n.inputs[0]->constant ? 0 : 1;
  const Constant& c = n.inputs.at(at) ? n.inputs[at]->constant : nullptr;
  if (!c || c->size() == 0 || (c->size() > 1 && k >= c->size())) return std::nullopt;
  const double number = c->as_double(c->size() == 1 ? 0 : k);
  const auto x = real(n.inputs[1 - at], k, budget);
  if (!x || !(number > 0 && number <= 4096)) return std::nullopt;
  int64_t q = 1;
  while (q < 64 && number * double(q) != std::floor(number * double(q))) q *= 2;
  if (number * double(q) != std::floor(number * double(q))) return std::nullopt;
  const auto p = int64_t(number * double(q));
  const bool exact = (x->divisor & (x->divisor - 1)) == 0;  // nothing has been rounded
  if (!exact || (n.is("Div") && (q != 1 || x->divisor != 1))) return std::nullopt;
  const RealSize y = n.is("Mul") ? RealSize{x->form * p, x->divisor * q} : RealSize{x->form, p};
  return small(y.form) && y.divisor <= 4096 ? std::optional(y) : std::nullopt;
}

// All elements of a list, multiplied.
std::optional<SizeForm> BoundedSizes::product_of_list(const Node& n, int& budget) {
  const Value* x = n.inputs[0];
  if (!is_list(x) || n.attr_int("noop_with_empty_axes", 0) != 0) return std::nullopt;
  SizeForm product = fixed_size(1);
  for (int64_t k = 0; k < dims_of(x)[0]; k++) {
    const auto e = element(x, k, budget);
    if (!e) return std::nullopt;
    product = product * *e;
  }
  return product;
}

// Element k of one of the parts of a list.
std::optional<SizeForm> BoundedSizes::part_of_split(const Value& v, int64_t k, int& budget) {
  const Node& n = *v.producer;
  if (!is_list(n.inputs[0])) return std::nullopt;
  for (size_t before = 0; before < size_t(v.index); before++) {
    const Value* part = n.outputs[before];
    if (!part || !part->type.is_static_tensor()) return std::nullopt;
    k += dims_of(part)[0];
  }
  return k < dims_of(n.inputs[0])[0] ? element(n.inputs[0], k, budget) : std::nullopt;
}

// Element k of what a Transpose or a Slice gives of lists of lists, or backwards.
std::optional<SizeForm> BoundedSizes::moved_element(const Node& n, int64_t k, int& budget) {
  const Value *x = n.inputs[0], *y = n.outputs.at(0);
  if (!x->type.is_static_tensor() || !y || !y->type.is_static_tensor() || rank_of(x) != rank_of(y)) return std::nullopt;
  const Dims in = dims_of(x), out = dims_of(y);
  Dims axes = in_order(in.size()), first(in.size(), 0), step(in.size(), 1);  // by axis of the result
  if (n.is("Transpose")) {
    axes = n.attr_ints("perm");
    if (axes.empty()) {
      axes = in_order(in.size());
      std::reverse(axes.begin(), axes.end());
    }
  } else {
    const auto starts = ints_at(n, 1), along = ints_at(n, 3), steps = ints_at(n, 4);
    if (!starts || (n.inputs.size() > 3 && n.inputs[3] && !along) || (n.inputs.size() > 4 && n.inputs[4] && !steps))
      return std::nullopt;
    for (size_t i = 0; i < starts->size(); i++) {
      const auto d = size_t(along ? axis_from_front((*along)[i], x) : int64_t(i));
      if (d >= in.size()) return std::nullopt;
      step[d] = steps ? (*steps)[i] : 1;
      const int64_t at = (*starts)[i] < 0 ? (*starts)[i] + in[d] : (*starts)[i];
      first[d] = std::clamp<int64_t>(at, 0, step[d] < 0 ? std::max<int64_t>(in[d] - 1, 0) : in[d]);
    }
  }
  int64_t from = 0;
  std::vector<int64_t> strides(in.size(), 1);
  for (size_t d = in.size(); d-- > 1;) strides[d - 1] = strides[d] * in[d];
  for (size_t d = out.size(); d-- > 0;) {
    const auto axis = size_t(axes[d]);
    const int64_t at = out[d] > 0 ? first[d] + k % out[d] * step[d] : -1;
    if (at < 0 || at >= in[axis]) return std::nullopt;
    from += at * strides[axis];
    k /= out[d];
  }
  return element(x, from, budget);
}

std::optional<SizeForm> BoundedSizes::part_of_list(const Node& n, int64_t k, int& budget) {
  const auto by = n.is("Slice") ? ints_at(n, 4) : std::nullopt;
  if (n.is("Transpose") || (n.is("Slice") && (!is_list(n.inputs[0]) || (by && *by != std::vector<int64_t>{1}))))
    return moved_element(n, k, budget);
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

std::optional<bool> BoundedSizes::compared(const Node& n) {
  const Value *x = n.inputs.at(0), *y = n.outputs.at(0);
  if (!x || !is_int(x->type.dtype) || !y || !y->type.is_static_tensor() || !has_one_element(dims_of(y)))
    return std::nullopt;
  const auto a = element(x, 0), b = a ? element(n.inputs.at(1), 0) : std::nullopt;
  if (!b) return std::nullopt;
  const bool less = n.is("Less") || n.is("LessOrEqual"), more = n.is("Greater") || n.is("GreaterOrEqual");
  const SizeForm above = more ? *a - *b : *b - *a;  // by how much the one is above that should be
  const bool strict = n.is("Less") || n.is("Greater");
  if (less || more) {
    if (counts_.least(above) >= (strict ? 1 : 0)) return true;
    return counts_.bound(above) <= (strict ? 0 : -1) ? std::optional(false) : std::nullopt;
  }
  if (counts_.simplest(above) == fixed_size(0)) return true;
  return counts_.least(above) > 0 || counts_.bound(above) < 0 ? std::optional(false) : std::nullopt;
}

bool BoundedSizes::fold_sizes(Graph& g, Node* n) {
  const auto is_one_of = [&](std::initializer_list<const char*> ops) {
    return std::any_of(ops.begin(), ops.end(), [&](const char* op) { return n->is(op); });
  };
  const bool compares = is_one_of({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"});
  if (!compares && !is_one_of({"Gather", "Slice", "Concat", "Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Clip"}))
    return false;
  const Value *x = n->inputs.at(0), *y = n->outputs.at(0);
  if (!x || x->type.dtype != DType::I64 || !y || !y->type.is_static_tensor()) return false;
  if ((n->is("Gather") || n->is("Slice")) && (x->constant || !is_list(x))) return false;
  if (std::all_of(n->inputs.begin(), n->inputs.end(), [](const Value* v) { return v && v->constant; })) return false;
  if (y->type.shape.size() > 1 || num_elements(dims_of(y)) > 64 || is_counted(y)) return false;
  const auto known = [&]() -> Constant {
    if (compares) {
      const auto holds = compared(*n);
      return holds ? make_constant(DType::Bool, dims_of(y), &*holds) : nullptr;
    }
    std::vector<int64_t> sizes;
    for (int64_t k = 0, length = num_elements(dims_of(y)); k < length; k++) {
      const auto e = element(y, k);
      if (!e || !e->fixed()) return nullptr;
      sizes.push_back(e->addend);
    }
    return make_constant(DType::I64, dims_of(y), sizes.data());
  };
  Constant c;
  try {
    c = known();
  } catch (const Error&) {  // beyond 64 bits: no size
    return false;
  }
  if (!c) return false;
  replace_node(g, n, g.add_constant(derived(y->name, "_known"), c));
  return true;
}

Node* BoundedSizes::bound_sizes(Graph& g, Node* n) {
  if (n->is("Slice")) return bound_slice(g, n);
  if (n->is("Range")) return bound_range(g, n), n;
  if (n->is("AffineGrid")) return bound_grid(g, n), n;
  if (!n->is("Expand") && !n->is("ConstantOfShape")) return n;
  const size_t operand = n->is("ConstantOfShape") ? 0 : 1;
  if (operand >= n->inputs.size() || !n->inputs[operand] || n->inputs[operand]->constant) return n;
  const Value* sizes = n->inputs[operand];
  if (!sizes->type.is_static_tensor() || (n->outputs.at(0) && n->outputs[0]->type.is_static_tensor())) return n;
  if (sizes->type.shape.size() != 1) return n;
  const int64_t length = dims_of(sizes).at(0);
  std::vector<int64_t> bounds;
  std::vector<std::pair<int, SizeForm>> counted;  // by axis
  for (int64_t k = 0; k < length; k++) {
    const auto e = element(sizes, k);
    if (!e || (!e->fixed() && counts_.least(*e) < 0)) return n;
    if (!e->fixed()) counted.push_back({int(k), *e});
    bounds.push_back(counts_.bound(*e));
  }
  const ModelText& name = n->outputs.at(0)->name;
  Value* constant = g.add_constant(derived(name, "_bounds"), int64_constant(bounds));
  // Broadcasting adds axes in front, never behind.
  const int64_t rank = n->is("Expand") ? rank_of(n->inputs[0]) : length, ahead = std::max<int64_t>(0, rank - length);
  if (n->is("Expand"))  // what is counted of the operand is what it is broadcast to, or goes with a 1
    for (const BoundedSize& own : this->sizes(n->inputs[0])) {
      const int64_t k = own.axis + std::max<int64_t>(0, length - rank) - ahead;
      const auto e = k < 0 ? std::optional(fixed_size(1)) : element(sizes, k);
      if (*e == fixed_size(1) || *e == *counts_.find(own.count)) continue;
      forbid_table_ends(*n, n->inputs[0], *counts_.find(own.count), *e);
      return n;
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
