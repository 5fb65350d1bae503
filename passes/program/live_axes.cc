// From the outputs back to the inputs: the caller sees the first elements of an output only; a function needs of an operand,
// along an axis, what its result is needed of, if the index there is the result's own; and what a condition lets through.
//   y[i, j] = x[i, j] + 1                          y needed below n along 0   ->   x, too
//   s = sum(k) where(k < n, a[i, k], 0) * b[k, j]  a needed below n along 1, whatever s is
// What is tested as an index (and may raise the status word) is needed as a whole, and so is what it is made of: what lies
// behind the sizes could be anything.
#include "passes/program/live_axes.h"

#include <algorithm>

#include "ir/graph/views.h"
#include "ir/loop/visit.h"
#include "ir/ops/op.h"

namespace tc {
namespace {

using List = std::vector<LiveAxis>;

List intersection(const List& a, const List& b) {
  List both;
  for (const LiveAxis& x : a)
    if (std::find(b.begin(), b.end(), x) != b.end()) both.push_back(x);
  return both;
}

/// What the stages of one function need of its buffers.
class Function {
 public:
  Function(const TensorFn& fn, const std::vector<const Value*>& operands) : fn_(fn) {
    for (size_t k = 0; k < operands.size(); k++)
      if (fn.inputs[k]->shape.empty() && fn.inputs[k]->dtype == DType::I64) counts_[fn.inputs[k].get()] = operands[k];
  }

  void need(const Buffer& b, const List& list) {
    const auto [it, first] = needed_.try_emplace(b.get(), list);
    if (!first) it->second = intersection(it->second, list);
  }
  const List* of(const Buffer& b) const {
    const auto it = needed_.find(b.get());
    return it == needed_.end() ? nullptr : &it->second;
  }

  void run() {
    for (size_t k = fn_.stages.size(); k-- > 0;) stage(fn_.stages[k]);
  }

 private:
  /// An index expression that is below a count.
  struct Below {
    Expr index;
    const Value* count;
  };

  void stage(const Stage& s) {
    std::vector<Below> known;
    bool needed = false;
    List list;
    for (const Buffer& b : s.outputs) {
      const List* of_output = of(b);
      if (!of_output) continue;
      list = needed ? intersection(list, *of_output) : *of_output;
      needed = true;
    }
    if (!needed) return;
    const bool plain = !s.nest && s.scan < 0;
    for (const LiveAxis& l : list)
      if (plain && size_t(l.axis) < s.axes.size()) known.push_back({Expr(s.axes[size_t(l.axis)].var), l.count});
    for (const Exprs* values : {&s.values, &s.init})
      for (const Expr& e : *values)
        if (e) loads(e, known);
    if (s.nest) nest(s.nest, {});
  }

  /// Loops that end at a count say which elements are read.
  void nest(const Stmt& s, const std::vector<Below>& known) {
    walk(
        s,
        [&](const Stmt& x) {
          const For* loop = as<For>(x);
          const Value* count = loop && is_const(loop->begin, 0) ? count_of(loop->extent) : nullptr;
          if (!count) return true;
          loads(loop->extent, known);
          std::vector<Below> inside = known;
          inside.push_back({Expr(loop->var), count});
          nest(loop->body, inside);
          return false;
        },
        [&](const Expr& e) {
          loads(e, known);
          return false;
        });
  }

  void loads(const Expr& e, const std::vector<Below>& known) {
    walk(e, [&](const Expr& x) {
      if (const Select* k = as<Select>(x)) {
        std::vector<Below> inside = known;
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
        for (const Below& b : known)
          if (is_below(l->index[a], b)) list.push_back({int(a), b.count});
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
  void learn(const Expr& condition, std::vector<Below>& known) const {
    const Apply* a = as<Apply>(condition);
    if (!a) return;
    if (a->op == Op::And)
      for (const Expr& e : a->args) learn(e, known);
    if (a->op == Op::Lt)
      if (const Value* count = count_of(a->args[1])) known.push_back({a->args[0], count});
  }

  /// The count that an expression is at most.
  const Value* count_of(const Expr& e) const {
    if (const Load* l = as<Load>(e)) {
      const auto it = counts_.find(l->buffer.get());
      return it == counts_.end() ? nullptr : it->second;
    }
    const Apply* a = as<Apply>(e);
    if (a && a->op == Op::Max && is_const(a->args[1], 0)) return count_of(a->args[0]);
    if (!a || a->op != Op::Min) return nullptr;
    const Value* first = count_of(a->args[0]);
    return first ? first : count_of(a->args[1]);
  }

  bool is_below(const Expr& index, const Below& b) const {
    if (structurally_equal(index, b.index)) return true;
    const Apply* a = as<Apply>(index);
    return a && a->op == Op::Min && (is_below(a->args[0], b) || is_below(a->args[1], b));
  }

  const TensorFn& fn_;
  std::map<const BufferDef*, const Value*> counts_;  // looked up only
  std::map<const BufferDef*, List> needed_;          // looked up only
};

}  // namespace

void LiveAxes::need(const Value* v, const List& list) {
  const auto [it, first] = needed_.try_emplace(v, list);
  if (!first) it->second = intersection(it->second, list);
}

std::vector<LiveAxis> LiveAxes::of(const Value* v) const {
  const auto it = needed_.find(v);
  return it == needed_.end() ? List() : it->second;
}

LiveAxes::LiveAxes(Graph& g) {
  if (g.sizes().chosen.empty()) return;
  for (size_t k = 0; k < g.outputs().size(); k++) {
    // A dense output of several sizes has nothing to spare along any axis.
    std::vector<OutputSize> sizes;
    for (const OutputSize& s : g.sizes().outputs)
      if (s.output == k) sizes.push_back(s);
    List list;
    if (sizes.size() == 1 && sizes[0].of_input) {
      const Shape& shape = g.outputs()[k]->type.shape;
      if (std::all_of(shape.begin(), shape.begin() + sizes[0].axis, [](const Dim& d) { return d.value == 1; }))
        list.push_back({sizes[0].axis, g.inputs()[sizes[0].count]});
    }
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

// The same elements in front of the axis, and as many along it.
void LiveAxes::view(const Node& n) {
  if (needed_.count(n.outputs[0]) == 0) return;
  const Dims to = static_dims(n.outputs[0]->type.shape), from = static_dims(n.inputs[0]->type.shape);
  List list;
  for (const LiveAxis& l : of(n.outputs[0])) {
    int64_t ahead = 1, before = 1;
    for (int a = 0; a < l.axis; a++) ahead = checked_mul(ahead, to[size_t(a)]);
    for (size_t a = 0; a < from.size(); a++) {
      if (before == ahead && from[a] == to[size_t(l.axis)]) {
        list.push_back({int(a), l.count});
        break;
      }
      before = checked_mul(before, from[a]);
    }
  }
  need(n.inputs[0], list);
}

void LiveAxes::function(Node& n) {
  const TensorFn& fn = tensor_fn(n);
  std::vector<const Value*> operands;
  for (const int i : fn_operands(n)) operands.push_back(n.inputs.at(size_t(i)));
  Function f(fn, operands);
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
