// Computes of every tensor what somebody reads of it.
//   y = LayerNorm(x): f32[1, 128, 768]   c = tanh(y[0, 0, k])   ->   y: f32[1, 1, 768], of x[0, 0, k]
// Classifiers read one row behind their last layer, detectors and U-Nets cut borders away, halves of a Split have no reader: the
// bounds go from the readers to the operands, through every formula, as far as indices tell. A softmax of one row of scores
// still reads all keys.
//
// Preconditions: all readers are formulas or Reshapes that keep the axis; what may raise a status is computed as a whole, so that
// a run that fails fails as before; less than three quarters of an axis are read, else rows of vectors would become rests for little.
//
// What is left of a Concat, say, may not read an operand at all: nobody computes that, then.
//
// Needs: to_functions. Leaves: the same nodes with shorter axes, but those that nobody reads.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "ir/graph/views.h"
#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "ir/loop/named_buffers.h"
#include "ir/loop/raises.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

/// Along each axis the elements [min, max].
using Bounds = std::vector<Range>;

Bounds whole_of(const Dims& dims) {
  Bounds b;
  for (const int64_t n : dims) b.push_back({0, n - 1});
  return b;
}

Bounds whole_of(const Buffer& b) { return whole_of(static_dims(b->shape)); }

Bounds hull(Bounds a, const Bounds& b) {
  for (size_t d = 0; d < a.size(); d++) a[d] = {std::min(a[d].min, b[d].min), std::max(a[d].max, b[d].max)};
  return a;
}

int64_t length(const Range& r) { return r.max - r.min + 1; }

Dims lengths(const Bounds& b) {
  Dims dims;
  for (const Range& r : b) dims.push_back(length(r));
  return dims;
}

/// `read` along the axes that it makes shorter by enough.
Bounds worth(const Bounds& read, const Dims& dims) {
  Bounds b = whole_of(dims);
  if (has_no_elements(dims)) return b;
  for (size_t d = 0; d < dims.size(); d++) {
    const int64_t n = length(read[d]);
    // A part of a size without an upper bound is no size; a few elements of it are.
    if (is_open(dims[d]) ? !is_open(n) : n < dims[d] - dims[d] / 4) b[d] = read[d];
  }
  return b;
}

/// What of its buffers a function computes, from its results to its operands.
class FunctionBounds {
 public:
  explicit FunctionBounds(const TensorFn& fn) : fn_(fn) {}

  void read(const Buffer& b, const Bounds& bounds) {
    const auto [it, first] = read_.try_emplace(b.get(), bounds);
    if (!first) it->second = hull(it->second, bounds);
  }
  /// Of a result or, after run(), of any buffer. As a whole where nobody has said anything.
  Bounds of(const Buffer& b) const {
    const auto it = read_.find(b.get());
    return it == read_.end() ? whole_of(b) : it->second;
  }

  void run() {
    for (size_t k = fn_.stages.size(); k-- > 0;) stage(fn_.stages[k]);
  }

  /// Behind run(): the function of what is computed alone. Its operands are as `of_operands` says.
  TensorFn shorter(const std::vector<Bounds>& of_operands) const {
    TensorFn fn = fn_;
    std::map<const BufferDef*, Bounds> all;  // looked up only
    BufferMap to;
    const auto take = [&](Buffer& b, const Bounds& bounds) {
      all[b.get()] = bounds;
      if (lengths(bounds) == static_dims(b->shape)) return;
      BufferDef def = *b;
      def.shape = to_shape(lengths(bounds));
      const Buffer less = std::make_shared<const BufferDef>(std::move(def));
      to[b.get()] = less;
      b = less;
    };
    for (size_t k = 0; k < fn.inputs.size(); k++) take(fn.inputs[k], of_operands[k]);
    for (Stage& s : fn.stages) {
      if (is_formula(s)) {
        const Bounds bounds = of(s.outputs[0]);
        VarMap moved;
        Ranges ranges;
        for (size_t d = 0; d < s.axes.size(); d++) {
          s.axes[d].extent = Dim(length(bounds[d]));
          ranges[s.axes[d].var.get()] = {0, length(bounds[d]) - 1};
          if (bounds[d].min > 0) moved[s.axes[d].var.get()] = Expr(s.axes[d].var) + Expr(bounds[d].min);
        }
        for (const Axis& a : s.raxes) ranges[a.var.get()] = {0, a.extent.value - 1};
        for (Exprs* list : {&s.values, &s.init})
          for (Expr& e : *list)
            if (e) e = simplify(loads_moved(substitute(e, moved), all), ranges);
      }
      for (Buffer& b : s.outputs) take(b, of(b));
    }
    for (Stage& s : fn.stages) {
      for (Exprs* list : {&s.values, &s.init})
        for (Expr& e : *list)
          if (e) e = substitute_buffers(e, to);
      if (s.nest) s.nest = substitute_buffers(s.nest, to);
    }
    for (Buffer& b : fn.outputs)
      if (const auto it = to.find(b.get()); it != to.end()) b = it->second;
    return fn;
  }

 private:
  /// May it be computed in part?
  static bool is_formula(const Stage& s) {
    if (s.kind == Stage::Kind::Nest || s.scan >= 0) return false;
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (bool(e) && raises_status(e)) return false;
    return std::all_of(s.outputs.begin(), s.outputs.end(), [](const Buffer& b) { return b->strides.empty(); });
  }

  void stage(const Stage& s) {
    if (s.nest) {  // may touch anything
      for (const Buffer& b : fn_.inputs) read(b, whole_of(b));
      for (const Stage& other : fn_.stages)
        for (const Buffer& b : other.outputs) read(b, whole_of(b));
      return;
    }
    Bounds bounds = whole_of(s.outputs[0]);
    if (is_formula(s)) {
      bounds = of(s.outputs[0]);
      for (const Buffer& b : s.outputs) bounds = hull(bounds, of(b));
      bounds = worth(bounds, static_dims(s.outputs[0]->shape));
    }
    for (const Buffer& b : s.outputs) read_[b.get()] = bounds;
    Ranges ranges;
    for (size_t d = 0; d < s.axes.size(); d++) ranges[s.axes[d].var.get()] = bounds[d];
    for (const Axis& a : s.raxes) ranges[a.var.get()] = {0, a.extent.value - 1};
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (e)
          walk(e, [&](const Expr& x) {
            if (const Load* l = as<Load>(x)) read(l->buffer, read_by(*l, ranges, s.scan >= 0));
            return true;
          });
  }

  /// Conditions around the load say nothing: indices that they keep out of the tensor are cut off.
  static Bounds read_by(const Load& l, const Ranges& ranges, bool all) {
    Bounds bounds = whole_of(l.buffer);
    if (all || !l.buffer->strides.empty()) return bounds;
    for (size_t d = 0; d < bounds.size(); d++) {
      const Range r = interval(l.index[d], ranges);
      const Range cut = {std::max(r.min, bounds[d].min), std::min(r.max, bounds[d].max)};
      if (cut.min <= cut.max) bounds[d] = cut;
    }
    return bounds;
  }

  /// Loads at indices of tensors that begin later.
  static Expr loads_moved(const Expr& e, const std::map<const BufferDef*, Bounds>& all) {
    return rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      const auto it = l ? all.find(l->buffer.get()) : all.end();
      if (it == all.end()) return {};
      Exprs index = l->index;
      for (size_t d = 0; d < index.size(); d++)
        if (const int64_t first = it->second[d].min; first != 0) index[d] = index[d] - Expr(first);
      return load(l->buffer, std::move(index));
    });
  }

  const TensorFn& fn_;
  std::map<const BufferDef*, Bounds> read_;  // looked up only
};

class InferBounds {
 public:
  explicit InferBounds(Graph& g) : g_(g) {}

  /// Does a node not read an operand that it has read before?
  bool run() {
    for (const Value* v : g_.outputs())
      if (is_fixed(v)) read(v, whole(v));
    for (auto it = g_.nodes().rbegin(); it != g_.nodes().rend(); ++it) readers(**it);
    for (const auto& n : g_.nodes())
      if (is_reshape(*n)) follow(*n);
    for (const auto& n : g_.nodes()) {
      if (is_reshape(*n)) shorten_view(*n);
      if (is_function(*n)) shorten(*n);
    }
    bool dropped = false;
    if (fails_alike())
      for (Node* n : shorter_) dropped = drop_unread(*n) || dropped;
    g_.drop_unused_constants();
    return dropped;
  }

 private:
  static Bounds whole(const Value* v) { return whole_of(dims_of(v)); }
  static bool is_fixed(const Value* v) { return v && v->type.is_static_tensor(); }

  void read(const Value* v, const Bounds& bounds) {
    const auto [it, first] = read_.try_emplace(v, bounds);
    if (!first) it->second = hull(it->second, bounds);
  }
  /// What is computed of a value, and begins where that does.
  Bounds of(const Value* v) const {
    const auto it = read_.find(v);
    return it == read_.end() || !v->producer ? whole(v) : it->second;
  }

  static bool is_function(const Node& n) {
    return is_fused(&n) && n.regions.empty() && n.fn && std::all_of(n.outputs.begin(), n.outputs.end(), is_fixed) &&
           n.outputs.size() == n.fn->outputs.size() &&
           std::all_of(n.fn->outputs.begin(), n.fn->outputs.end(),
                       [&](const Buffer& b) { return tc::producer(*n.fn, b) != nullptr; });
  }
  static const Value* operand(const Node& n, size_t k) {
    return n.inputs[n.fn->operands.empty() ? k : size_t(n.fn->operands[k])];
  }

  /// `b` of a tensor of sizes `from` as a part of the same elements in sizes `to`; null where an axis that is read in part is not
  /// among those.
  static std::optional<Bounds> viewed(const Bounds& b, const Dims& from, const Dims& to) {
    Bounds y = whole_of(to);
    const auto ahead = [](const Dims& dims, size_t d) { return Dims(dims.begin(), dims.begin() + std::ptrdiff_t(d)); };
    for (size_t d = 0; d < from.size(); d++) {
      if (length(b[d]) == from[d]) continue;
      size_t same = 0;
      while (same < to.size() &&
             (to[same] != from[d] || std::is_neq(compare_elements(ahead(from, d), ahead(to, same)))))
        same++;
      if (same == to.size()) return std::nullopt;
      y[same] = b[d];
    }
    return y;
  }
  static bool is_reshape(const Node& n) {
    return n.is("Reshape") && is_fixed(n.inputs[0]) && is_fixed(n.outputs[0]) && n.inputs[1]->constant;
  }

  FunctionBounds bounds_of(const Node& n) const {
    FunctionBounds f(*n.fn);
    for (size_t k = 0; k < n.outputs.size(); k++) f.read(n.fn->outputs[k], of(n.outputs[k]));
    f.run();
    return f;
  }

  /// From the results of a node to its operands.
  void readers(const Node& n) {
    if (is_function(n)) {
      const FunctionBounds f = bounds_of(n);
      for (size_t k = 0; k < n.outputs.size(); k++) read_[n.outputs[k]] = f.of(n.fn->outputs[k]);
      for (size_t k = 0; k < n.fn->inputs.size(); k++)
        if (const Value* v = operand(n, k); is_fixed(v)) read(v, f.of(n.fn->inputs[k]));
      return;
    }
    if (is_reshape(n))
      if (const auto b = viewed(of(n.outputs[0]), dims_of(n.outputs[0]), dims_of(n.inputs[0])))
        return read(n.inputs[0], *b);
    for (const Value* v : n.outputs)
      if (is_fixed(v)) read_[v] = whole(v);
    for (const Value* v : n.inputs)
      if (is_fixed(v)) read(v, whole(v));
  }

  /// A Reshape's result begins where its operand does.
  void follow(const Node& n) {
    const Bounds x = of(n.inputs[0]);
    const auto y = viewed(x, dims_of(n.inputs[0]), dims_of(n.outputs[0]));
    check(y.has_value(), "infer_bounds: a view keeps the axes that are read in part");
    read_[n.outputs[0]] = *y;
  }

  void shorten_view(Node& n) {
    const Dims dims = lengths(of(n.outputs[0]));
    if (dims == dims_of(n.outputs[0])) return;
    g_.set_input(&n, 1, g_.add_constant(derived(n.outputs[0]->name, "_sizes"), int64_constant(dims)));
    set_shape(n.outputs[0], to_shape(dims));
  }

  void set_shape(Value* v, Shape shape) {
    ValueType type = v->type;
    type.shape = std::move(shape);
    g_.set_type(v, type);
  }

  void shorten(Node& n) {
    const FunctionBounds f = bounds_of(n);
    std::vector<Bounds> of_operands;
    bool changed = false;
    for (size_t k = 0; k < n.fn->inputs.size(); k++) {
      const Value* v = operand(n, k);
      of_operands.push_back(is_fixed(v) ? of(v) : whole_of(n.fn->inputs[k]));
      changed = changed || lengths(of_operands.back()) != static_dims(n.fn->inputs[k]->shape);
    }
    for (const Stage& s : n.fn->stages)
      for (const Buffer& b : s.outputs) changed = changed || lengths(f.of(b)) != static_dims(b->shape);
    if (!changed) return;
    n.fn = std::make_shared<const TensorFn>(f.shorter(of_operands));
    for (size_t k = 0; k < n.outputs.size(); k++) set_shape(n.outputs[k], n.fn->outputs[k]->shape);
    shorter_.push_back(&n);
  }

  // --- operands that nobody reads any more
  static bool is_read(const TensorFn& fn, const Buffer& b) {
    const auto in = [&](const Exprs& list) {
      return std::any_of(list.begin(), list.end(), [&](const Expr& e) { return e ? uses_buffer(e, b) : false; });
    };
    return std::find(fn.outputs.begin(), fn.outputs.end(), b) != fn.outputs.end() ||
           std::any_of(fn.stages.begin(), fn.stages.end(), [&](const Stage& s) {
             return in(s.values) || in(s.init) || (s.nest && uses_buffer(s.nest, b));
           });
  }
  static bool is_read(const Node& n, size_t input) {
    for (size_t k = 0; k < n.fn->inputs.size(); k++)
      if (size_t(n.fn->operands.empty() ? int(k) : n.fn->operands[k]) == input && is_read(*n.fn, n.fn->inputs[k]))
        return true;
    return false;
  }
  static bool may_fail(const Node& n) {
    if (is_reshape(n)) return false;
    if (!is_fused(&n) || !n.fn || !n.regions.empty()) return true;
    return std::any_of(n.fn->stages.begin(), n.fn->stages.end(), [](const Stage& s) {
      const auto fails = [](const Expr& e) { return bool(e) && raises_status(e); };
      return s.kind == Stage::Kind::Nest || std::any_of(s.values.begin(), s.values.end(), fails) ||
             std::any_of(s.init.begin(), s.init.end(), fails);
    });
  }
  /// Does a run fail as before without what nobody would need then?
  bool fails_alike() const {
    std::set<const Node*> needed;  // looked up only
    for (const Value* v : g_.outputs())
      if (v->producer) needed.insert(v->producer);
    for (auto it = g_.nodes().rbegin(); it != g_.nodes().rend(); ++it) {
      const Node& n = **it;
      if (!needed.contains(&n)) {
        if (may_fail(n)) return false;
        continue;
      }
      const bool shorter = std::find(shorter_.begin(), shorter_.end(), &n) != shorter_.end();
      for (size_t k = 0; k < n.inputs.size(); k++)
        if (const Value* v = n.inputs[k]; v && v->producer && (!shorter || is_read(n, k))) needed.insert(v->producer);
    }
    return true;
  }
  /// Of a node; is there one?
  bool drop_unread(Node& n) {
    TensorFn fn = *n.fn;
    if (std::all_of(fn.inputs.begin(), fn.inputs.end(), [&](const Buffer& b) { return is_read(fn, b); })) return false;
    if (fn.operands.empty()) {
      fn.operands.resize(fn.inputs.size());
      std::iota(fn.operands.begin(), fn.operands.end(), 0);
    }
    for (size_t k = fn.inputs.size(); k-- > 0;) {
      if (is_read(fn, fn.inputs[k])) continue;
      const int operand = fn.operands[k];
      fn.inputs.erase(fn.inputs.begin() + std::ptrdiff_t(k));
      fn.operands.erase(fn.operands.begin() + std::ptrdiff_t(k));
      if (std::find(fn.operands.begin(), fn.operands.end(), operand) != fn.operands.end()) continue;
      g_.erase_node_input(&n, size_t(operand));
      for (int& o : fn.operands)
        if (o > operand) o--;
    }
    std::vector<int> all(fn.inputs.size());
    std::iota(all.begin(), all.end(), 0);
    if (fn.operands == all && n.inputs.size() == all.size()) fn.operands.clear();
    n.fn = std::make_shared<const TensorFn>(std::move(fn));
    return true;
  }

  Graph& g_;
  std::vector<Node*> shorter_;
  std::map<const Value*, Bounds> read_;  // looked up only
};

}  // namespace

void infer_bounds(Graph& g, PassContext& cx) {
  for (const auto& n : g.nodes())
    for (const auto& r : n->regions) infer_bounds(*r, cx);
  if (InferBounds(g).run()) dead_code(g, cx);
}

}  // namespace tc
