// Computes layers of halves in single precision: on C, where vectors are of f32.
//   y: f16 = Conv(x: f16, w: f16)        x_f32 = Cast(x) {to = 1}   w_f32: f32 = const   y_f32 = Conv(x_f32, w_f32)
//   z: f16 = Relu(y)               ->    z_f32 = Relu(y_f32)
//                                        z: f16 = Cast(z_f32) {to = 10}
// Sums and extremes begin it: their operands become f32, constants among them while compiling. What follows on such a result and
// computes, or only moves it, goes on with it. A value is rounded where somebody needs the half: an output of the model, a
// body, an operator that stays. Between layers nothing is rounded, as ONNX Runtime, which computes so, does not: results
// are closer to exact ones, and what would overflow between two layers does not.
//
// Preconditions: C, and not --fp strict, which rounds wherever the model says so. A node stays as it is that is no row of the
// tool, has bodies or a type among its attributes, or touches a state: caches stay halves, in place.
//
// Needs: dynamic_to_static. Leaves: the same operators, and casts where types meet.
#include <algorithm>
#include <map>
#include <set>

#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

bool is_half(const Value* v) { return v && v->type.is_tensor() && is_half(v->type.dtype); }

bool computes_with_halves(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const Apply* k = as<Apply>(x);
    const Cast* c = as<Cast>(x);
    found = found || (k && is_half(k->args[0]->dtype)) || (c && (is_half(x->dtype) || is_half(c->value->dtype)));
    return !found;
  });
  return found;
}

enum class Kind { Joins, Computes, Moves };
Kind kind_of(const TensorFn& fn) {
  bool computes = false;
  for (const Stage& s : fn.stages) {
    if (s.kind == Stage::Kind::Reduce) return Kind::Joins;
    for (const Expr& e : s.values) computes = computes || computes_with_halves(e);
  }
  return computes ? Kind::Computes : Kind::Moves;
}

class Widening {
 public:
  explicit Widening(Graph& g) : g_(g) {
    for (const StatePair& s : g.sizes().states) states_.insert({g.inputs()[s.input], g.outputs()[s.output]});
  }

  void run() {
    std::vector<Node*> nodes;
    for (const auto& n : g_.nodes()) nodes.push_back(n.get());
    for (Node* n : nodes) {
      for (const auto& body : n->regions) Widening(*body).run();
      if (takes_part(*n) && pays(*n)) widen(*n);
    }
    for (auto it = roundings_.rbegin(); it != roundings_.rend(); ++it)
      if (!(*it)->outputs[0]->is_used()) erase_unused(g_, *it);
  }

 private:
  bool takes_part(const Node& n) const {
    // Fills and joined axes stand between layers, where sizes are chosen at run time.
    const bool is_own = n.domain == "tc" && n.op != "fill_behind" && n.op != "regroup";
    if (!n.regions.empty() || n.row || is_own || n.is("Cast") || n.is("CastLike") || n.is("BitCast")) return false;
    for (const char* type : {"to", "dtype", "output_dtype"})
      if (const auto it = n.attrs.find(type);
          it != n.attrs.end() && !std::holds_alternative<std::monostate>(it->second))
        return false;
    bool halves = false;
    for (const auto* list : {&n.inputs, &n.outputs})
      for (const Value* v : *list) {
        if (!v) continue;
        if (!v->type.is_tensor() || states_.contains(v)) return false;
        halves = halves || is_half(v);
      }
    return halves && !is_random(n) &&
           std::any_of(n.inputs.begin(), n.inputs.end(), [](const Value* v) { return is_half(v); });
  }

  bool pays(Node& n) const {
    size_t halves = 0, wide = 0;
    for (const Value* v : n.inputs) {
      if (!is_half(v) || v->is_constant()) continue;
      halves++, wide += is_made_wide(v);
    }
    const Kind kind = kind_of(tensor_fn(n));
    const bool result = std::any_of(n.outputs.begin(), n.outputs.end(), [](const Value* v) { return is_half(v); });
    if (kind == Kind::Joins) return result || wide > 0;
    return wide > 0 && (kind == Kind::Computes || wide == halves);
  }

  // Rounded from a result in single precision.
  bool is_made_wide(const Value* v) const { return v->producer && rounded_.contains(v->producer); }

  void widen(Node& n) {
    for (size_t i = 0; i < n.inputs.size(); i++)
      if (is_half(n.inputs[i])) g_.set_input(&n, i, single(n, n.inputs[i]));
    n.fn.reset();
    const auto next = std::next(n.self);
    Node* const behind = next == g_.nodes().end() ? nullptr : next->get();
    const std::vector<Value*> outputs = n.outputs;
    for (Value* v : outputs)
      if (is_half(v)) round(v, behind);
  }

  // The value in single precision, made before n where it is not there.
  Value* single(Node& n, Value* v) {
    Value*& wide = wide_[v];
    if (!wide) wide = constant_op(g_, &n, "Cast", {v}, derived(v->name, "_f32"), {{"to", int64_t(DType::F32)}});
    return wide;
  }

  // The result becomes f32; who needs the half, reads it rounded, under the result's name.
  void round(Value* v, Node* behind) {
    const DType half = v->type.dtype;
    const ModelText name = v->name;
    Node* cast = g_.insert(behind, "Cast", {v}, {name}, {{"to", int64_t(half)}});
    Value* rounded = cast->outputs[0];
    g_.set_type(rounded, v->type);
    g_.replace_uses(v, rounded);
    g_.set_input(cast, 0, v);
    ValueType wide = v->type;
    wide.dtype = DType::F32;
    g_.set_type(v, wide);
    v->name = derived(name, "_f32");
    cast->origins = v->producer->origins;
    wide_[rounded] = v;
    rounded_.insert(cast);
    roundings_.push_back(cast);
  }

  Graph& g_;
  std::set<const Value*> states_;
  std::map<const Value*, Value*> wide_;  // looked up only
  std::set<const Node*> rounded_;
  std::vector<Node*> roundings_;
};

}  // namespace

void widen_halves(Graph& g, PassContext& cx) {
  if (cx.target.picks_precision || cx.options.strict_fp) return;
  Widening(g).run();
}

}  // namespace tc
