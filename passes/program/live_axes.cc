// From the outputs back to the inputs: the caller sees the first elements of an output only; a function needs of an operand,
// along an axis, what its results read of it, and what a condition lets through.
//   y[i, j] = x[i, j] + 1                          y needed below n along 0       ->   x, too
//   y[i] = sum(k) x[2 i + k] * w[k], k < 3         y needed below (n + 1) / 2     ->   x below 2 ((n + 1) / 2) + 1
//   s = sum(k) where(k < n, a[i, k], 0) * b[k, j]  a needed below n along 1, whatever s is
// What is tested as an index (and may raise the status word) is needed as a whole, and so is what it is made of: what lies
// behind the sizes could be anything. Ends are expressions over the sizes that the caller chooses, which all kernels can read,
// also those that run before a number is computed from them.
#include "passes/program/live_axes.h"

#include <algorithm>
#include <optional>

#include "ir/graph/views.h"
#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "ir/ops/top_k.h"

namespace tc {
namespace {

using List = std::vector<LiveAxis>;

/// Longer ends would cost more to compute and to read than they save.
constexpr int kLongest = 24;

int length(const Expr& e) {
  int n = 0;
  walk(e, [&](const Expr&) { return ++n <= kLongest; });
  return n;
}

bool has_symbol(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) { return !(found = found || as<VarRef>(x)); });
  return found;
}

/// The larger one; null where that is too long to say.
Expr larger(const Expr& a, const Expr& b, const Ranges& ranges) {
  if (structurally_equal(a, b)) return a;
  const Range apart = interval(simplify(a - b, ranges), ranges);
  if (apart.min >= 0) return a;
  if (apart.max <= 0) return b;
  const Expr e = max(a, b);
  return length(e) <= kLongest ? e : Expr();
}

/// A scalar of I64 that is not above `e`, which `leaf` knows the leaves of; null: not known.
template <class F>
Expr upper_bound(const Expr& e, const F& leaf, const Ranges& ranges) {
  if (const Expr known = leaf(e)) return known;
  const auto of = [&](const Expr& x) { return upper_bound(x, leaf, ranges); };
  if (const Cast* c = as<Cast>(e); c && e->dtype == DType::I64 && is_int(c->value->dtype)) return of(c->value);
  if (const Select* k = as<Select>(e)) {
    const Expr yes = of(k->yes), no = yes ? of(k->no) : Expr();
    return no ? max(yes, no) : no;
  }
  const Apply* a = as<Apply>(e);
  if (!a || a->args.size() != 2) return {};
  const Expr x = of(a->args[0]), &second = a->args[1];
  const auto c = as_const_int(second);
  switch (a->op) {
    case Op::Min: {
      const Expr y = of(second);
      return bool(x) && (!bool(y) || has_symbol(x)) ? x : y;
    }
    case Op::FloorMod: {
      const Expr n = of(second);
      return n ? n - Expr(1) : x;
    }
    case Op::Sub: {
      const Range r = interval(second, ranges);
      return bool(x) && r.min != INT64_MIN ? x - Expr(r.min) : Expr();
    }
    case Op::Mul: return bool(x) && c && *c >= 0 ? x * second : Expr();
    case Op::Div:
    case Op::FloorDiv: return bool(x) && c && *c > 0 && interval(x, ranges).min >= 0 ? floor_div(x, second) : Expr();
    default: break;
  }
  const Expr y = of(second);
  if (!bool(x) || !bool(y)) return {};
  return a->op == Op::Add ? x + y : a->op == Op::Max ? max(x, y) : Expr();
}

/// What the stages of one function need of its buffers.
class Function {
 public:
  using Sizes = std::map<const BufferDef*, Expr>;  // of scalars among the inputs; looked up only
  Function(const TensorFn& fn, Sizes sizes, const Ranges& ranges)
      : fn_(fn), sizes_(std::move(sizes)), symbols_(ranges) {}

  void need(const Buffer& b, const List& list) {
    const auto [it, first] = needed_.try_emplace(b.get(), list);
    if (!first) it->second = both(it->second, list);
  }
  const List* of(const Buffer& b) const {
    const auto it = needed_.find(b.get());
    return it == needed_.end() ? nullptr : &it->second;
  }

  void run() {
    for (size_t k = fn_.stages.size(); k-- > 0;) stage(fn_.stages[k]);
  }

  List both(const List& a, const List& b) const {
    List list;
    for (const LiveAxis& x : a)
      for (const LiveAxis& y : b)
        if (x.axis == y.axis)
          if (const Expr end = larger(x.end, y.end, symbols_)) list.push_back({x.axis, end});
    return list;
  }

 private:
  /// An index expression that is below an end, and the ranges of variables.
  struct Known {
    struct Below {
      Expr index, end;
    };
    std::vector<Below> below;
    Ranges ranges;
  };

  void stage(const Stage& s) {
    bool needed = false;
    List list;
    for (const Buffer& b : s.outputs) {
      const List* of_output = of(b);
      if (!of_output) continue;
      list = needed ? both(list, *of_output) : *of_output;
      needed = true;
    }
    if (!needed) return;
    Known known{{}, symbols_};
    for (const auto* axes : {&s.axes, &s.raxes})
      for (const Axis& a : *axes) known.ranges[a.var.get()] = {0, a.extent.value - 1};
    for (const LiveAxis& l : list)
      if (!s.nest && s.scan < 0 && size_t(l.axis) < s.axes.size())
        known.below.push_back({Expr(s.axes[size_t(l.axis)].var), l.end});
    for (const Exprs* values : {&s.values, &s.init})
      for (const Expr& e : *values)
        if (e) loads(e, known);
    if (s.nest && !sorted(s, list)) nest(s.nest, known);
  }

  /// What is sorted along an axis is needed along others as far as the results are.
  bool sorted(const Stage& s, const List& results) {
    const auto top = match_top_k(s);
    if (!top) return false;
    List list;
    for (const LiveAxis& l : results)
      if (l.axis != top->axis) list.push_back(l);
    need(top->x, list);
    return true;
  }

  /// Loops that end at a count say which elements are read.
  void nest(const Stmt& s, const Known& known) {
    walk(
        s,
        [&](const Stmt& x) {
          const For* loop = as<For>(x);
          if (!loop) return true;
          Known inside = known;
          inside.ranges[loop->var.get()] = loop_range(*loop, known.ranges);
          const Expr end = is_const(loop->begin, 0) ? end_of(loop->extent, known) : Expr();
          if (bool(end) && has_symbol(end)) inside.below.push_back({Expr(loop->var), end});
          loads(loop->begin, known);
          loads(loop->extent, known);
          nest(loop->body, inside);
          return false;
        },
        [&](const Expr& e) {
          loads(e, known);
          return false;
        });
  }

  void loads(const Expr& e, const Known& known) {
    walk(e, [&](const Expr& x) {
      if (const Select* k = as<Select>(x)) {
        Known inside = known;
        learn(k->condition, inside);
        loads(k->condition, known);
        loads(k->yes, inside);
        loads(k->no, known);
        return false;
      }
      if (const Apply* test = as<Apply>(x); test && test->op == Op::Index) {
        for (const Expr& a : test->args) whole(a);
        return false;
      }
      const Load* l = as<Load>(x);
      if (!l) return true;
      List list;
      for (size_t a = 0; a < l->index.size(); a++)
        if (const Expr end = end_of(l->index[a] + Expr(1), known); bool(end) && has_symbol(end))
          list.push_back({int(a), end});
      need(l->buffer, list);
      return true;
    });
  }

  /// What decides whether an index is out of range: behind the sizes it could be anything.
  void whole(const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) need(l->buffer, {});
      return true;
    });
  }

  /// i < count, and what else an && says.
  void learn(const Expr& condition, Known& known) const {
    const Apply* a = as<Apply>(condition);
    if (!a) return;
    if (a->op == Op::And)
      for (const Expr& e : a->args) learn(e, known);
    if (a->op == Op::Lt)
      if (const Expr end = end_of(a->args[1], known); bool(end) && has_symbol(end))
        known.below.push_back({a->args[0], end});
  }

  /// An expression over the symbols that `e` is never above; null: not known.
  Expr end_of(const Expr& e, const Known& known) const {
    if (e->dtype != DType::I64) return {};
    const Expr end = upper_bound(
        e,
        [&](const Expr& x) {
          // The condition that stands nearest: what lies behind a fill has been told.
          for (auto b = known.below.rbegin(); b != known.below.rend(); ++b)
            if (structurally_equal(x, b->index)) return b->end - Expr(1);
          if (const Load* l = as<Load>(x)) {
            const auto it = sizes_.find(l->buffer.get());
            return it == sizes_.end() ? Expr() : it->second;
          }
          if (as_const_int(x)) return x;
          const VarRef* v = as<VarRef>(x);
          const auto r = v ? known.ranges.find(v->var.get()) : known.ranges.end();
          return r == known.ranges.end() || r->second.max == INT64_MAX ? Expr() : Expr(r->second.max);
        },
        symbols_);
    return bool(end) && length(end) <= kLongest ? simplify(end, symbols_) : Expr();
  }

  const TensorFn& fn_;
  const Sizes sizes_;
  const Ranges& symbols_;
  std::map<const BufferDef*, List> needed_;  // looked up only
};

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
          x->type.is_static_tensor() && num_elements(static_dims(x->type.shape)) == 1)
        known[fn.inputs[k].get()] = size(x, depth - 1);
    for (const Stage& s : fn.stages) {
      const bool one = s.kind == Stage::Kind::Compute && s.outputs.size() == 1 && s.scan < 0 &&
                       num_elements(static_dims(s.outputs[0]->shape)) == 1 && s.outputs[0]->dtype == DType::I64;
      if (one) known[s.outputs[0].get()] = exact(s.values[0], known);
    }
    for (size_t k = 0; k < fn.outputs.size() && k < n->outputs.size(); k++)
      if (n->outputs[k] == v)
        if (const auto it = known.find(fn.outputs[k].get()); it != known.end()) e = it->second;
  }
  if (e) e = length(e) <= kLongest ? simplify(e, ranges_) : Expr();
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
  if (!first) it->second = Function({}, {}, ranges_).both(it->second, list);
}

std::vector<LiveAxis> LiveAxes::of(const Value* v) const {
  const auto it = needed_.find(v);
  return it == needed_.end() ? List() : it->second;
}

LiveAxes::LiveAxes(Graph& g) {
  if (g.sizes().chosen.empty()) return;
  for (const SizeInput& s : g.sizes().chosen) {
    const Value* input = g.inputs()[s.input];
    symbols_.push_back({make_var("n"), input, {s.next ? 0 : s.least, s.most}});
    ranges_[symbols_.back().var.get()] = symbols_.back().range;
    sizes_[input] = Expr(symbols_.back().var);
  }
  for (size_t k = 0; k < g.outputs().size(); k++) {
    // A dense output of several sizes has nothing to spare along any axis.
    std::vector<OutputSize> sizes;
    for (const OutputSize& s : g.sizes().outputs)
      if (s.output == k) sizes.push_back(s);
    List list;
    const Shape& shape = g.outputs()[k]->type.shape;
    if (sizes.size() == 1 &&
        std::all_of(shape.begin(), shape.begin() + sizes[0].axis, [](const Dim& d) { return d.value == 1; }))
      if (const Expr end = size(sizes[0].of_input ? g.inputs()[sizes[0].count] : g.outputs()[sizes[0].count]))
        list.push_back({sizes[0].axis, end});
    need(g.outputs()[k], list);
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

void LiveAxes::function(Node& n) {
  const TensorFn& fn = tensor_fn(n);
  std::vector<const Value*> operands;
  Function::Sizes sizes;
  for (const int i : fn_operands(n)) operands.push_back(n.inputs.at(size_t(i)));
  for (size_t k = 0; k < operands.size(); k++)
    if (fn.inputs[k]->shape.empty() && fn.inputs[k]->dtype == DType::I64)
      if (const Expr e = size(operands[k])) sizes[fn.inputs[k].get()] = e;
  Function f(fn, std::move(sizes), ranges_);
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
