// Stores tensors with the axis of a size that has no upper bound outermost, wherever the model has it: memory of a size that is
// known when an instance is made has constant strides then.
//   x_unpacked: f32[6, n, 64] = tc.unpack(x, n)           ->   x_unpacked: f32[n, 6, 64]
//   y: f32[6, n, 32] = MatMul(x_unpacked, w)              ->   y: f32[n, 6, 32]
//   z: f32[n, 6, 32] = Transpose(y) {perm = [1, 0, 2]}    ->   y: nothing moves
// Nobody but the border of the model sees an order of axes: there tc.unpack and tc.pack copy what the caller has.
//
// A Reshape that joins what is in front of the axis to it leaves the two apart, until one that cuts them (tc.regroup in both cases):
//   f: f32[6 * n, 32] = tc.regroup(y, n, 6 * n)           ->   y: f32[n, 6, 32]
//   h: f32[6 * n, 8] = Gemm(f, v)                         ->   h: f32[n, 6, 8]
//   r: f32[6, n, 8] = tc.regroup(h, 6 * n, n)             ->   h
// What asks for more than an element of each gets them joined (a division by the size of the run).
//
// What has two such axes stays as it is: it becomes part of a kernel that stores none of it, or plan_open_sizes refuses it.
// Preconditions: none lies in a body: else nothing changes, and plan_open_sizes tells.
//
// Needs: types, operators in their last form. Leaves: functions of what is stored otherwise; operators of the rest.
#include <algorithm>
#include <map>

#include "ir/open_size.h"
#include "passes/graph/open_layout.h"
#include "passes/graph/passes.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/to_function.h"

namespace tc {
namespace {

int64_t product(const Dims& dims, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t d = first; d < last; d++) n = checked_mul(n, dims[d]);
  return n;
}

class OpenAxesFirst {
 public:
  /// `by_points`: copies of what the caller has are formulas of each element, which a GPU has a thread for.
  OpenAxesFirst(Graph& g, bool by_points) : g_(g), by_points_(by_points) {}

  void run() {
    for (auto it = g_.nodes().begin(); it != g_.nodes().end();) {
      Node* n = (it++)->get();
      if (concerns(*n)) node(n);
    }
    copy_what_no_memory_holds();
    for (size_t k = 0; k < g_.outputs().size(); k++)
      if (Value* v = g_.outputs()[k]; is_stored(v)) {
        Value* all = in_order(v, nullptr);
        std::swap(all->name, v->name);
        g_.set_output(k, all);
      }
    for (auto old = replaced_.rbegin(); old != replaced_.rend(); ++old) g_.erase(*old);
  }

 private:
  struct Stored {
    Value* value = nullptr;
    OpenLayout layout;
    Value* in_order = nullptr;  // made when it is asked for
  };

  bool is_stored(const Value* v) const { return v && stored_.contains(v); }
  Value* value_of(Value* v) const { return is_stored(v) ? stored_.at(v).value : v; }
  static bool has_inner(const Value* v) {
    if (!v || !v->type.is_static_tensor()) return false;
    const auto axis = only_open_axis(dims_of(v));
    return axis && is_inner(dims_of(v), *axis);
  }
  bool concerns(const Node& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const Value* v) { return is_stored(v); }) ||
           std::any_of(n.outputs.begin(), n.outputs.end(), has_inner);
  }
  /// Nothing of a tensor without an open axis, and of one that has it inside and is stored so.
  std::optional<OpenLayout> layout_of(const Value* v) const {
    if (is_stored(v)) return stored_.at(v).layout;
    const auto axis = only_open_axis(dims_of(v));
    return axis && !has_inner(v) ? std::optional(OpenLayout{*axis}) : std::nullopt;
  }

  void node(Node* n) {
    const bool own = n->domain == "tc", regroups = own && n->op == "regroup", packs = own && n->op == "pack";
    if (!n->regions.empty() || n->is("Identity")) return see_in_order(n);
    if (packs) return is_stored(n->inputs[0]) ? pack(n) : void();
    // Of other sizes what is behind them is read, too: tc.unpack says what is there.
    if (own && n->op == "unpack" && n->attr_ints("axes").size() == 1) return unpack(n);
    if (regroups && n->attr_ints("axes").size() == 1 && n->attr_ints("to").size() == 1 && view(n, n->inputs[1])) return;
    n = to_function(g_, n);
    if (!is_fused(n) ? !n->is("Reshape") || !view(n, nullptr) : !function(n)) see_in_order(n);
  }

  // --- what stands in the place of a node
  Value* reshaped(const Node& of, Value* x, const Dims& to, const ModelText& name) {
    if (dims_of(x) == to) return x;
    Node* before = of.self->get();
    Value* shape = g_.add_constant(derived(name, "_shape"), int64_constant(to));
    Node* r = insert_for(g_, of, before, "Reshape", {x, shape}, {name}, sizes_as_given(x));
    g_.set_type(r->outputs[0], ValueType::tensor(x->type.dtype, to_shape(to)));
    return r->outputs[0];
  }
  /// `v` is y, stored as `l` says; nothing: in the order of its axes.
  void replace(Node* n, Value* y, Value* v, const std::optional<OpenLayout>& l) {
    if (l)
      stored_[y] = {v, *l};
    else
      replace_value(g_, n, y, v);
  }

  // --- for who cannot read it where it is
  Value* in_order(Value* v, Node* before) {
    Stored& s = stored_.at(v);
    if (!s.in_order) s.in_order = moved(v, before, in_order_of_axes(v->type.dtype, dims_of(v), s.layout), "_in_order");
    return s.in_order;
  }
  void see_in_order(Node* n) {
    for (size_t k = 0; k < n->inputs.size(); k++)
      if (is_stored(n->inputs[k])) g_.set_input(n, k, in_order(n->inputs[k], n));
  }
  /// One axis for all parts.
  void join_parts(Value* v, Node* before) {
    Stored& s = stored_.at(v);
    if (s.layout.front > 1)
      s = {moved(v, before, with_joined_parts(v->type.dtype, dims_of(v), s.layout), "_joined"), {s.layout.axis}};
  }
  Value* moved(Value* v, Node* before, TensorFn fn, const char* suffix) {
    const Stored& s = stored_.at(v);
    std::vector<Value*> operands = {s.value};
    if (fn.inputs.size() > 1) operands.push_back(s.layout.count);
    const Node& of = *(s.value->producer ? s.value : v)->producer;  // an input may be stored as a view of it is
    return insert_function(g_, of, before, std::move(fn), std::move(operands), {derived(v->name, suffix)})->outputs[0];
  }

  bool function(Node* n) {
    const auto layouts = [&] {
      OpenLayouts list;
      for (const Value* v : n->inputs)
        list.push_back(is_stored(v) ? std::optional(stored_.at(v).layout) : std::nullopt);
      return list;
    };
    auto made = with_open_axes_first(*n->fn, layouts());
    if (!made) {
      for (Value* v : n->inputs)
        if (is_stored(v)) join_parts(v, n);
      made = with_open_axes_first(*n->fn, layouts());
    }
    if (!made) return false;
    std::vector<Value*> operands;
    for (Value* v : n->inputs) operands.push_back(value_of(v));
    if (operands.size() == 1 && made->fn.outputs.size() == 1 && pattern_of(made->fn) == Pattern::View) {
      Value* v = reshaped(*n, operands[0], static_dims(made->fn.outputs[0]->shape), n->outputs[0]->name);
      replace(n, n->outputs[0], v, made->outputs[0]);
    } else {
      Node* f = insert_function(g_, *n, n, std::move(made->fn), std::move(operands), output_names(*n));
      for (size_t k = 0; k < n->outputs.size(); k++) replace(n, n->outputs[k], f->outputs[k], made->outputs[k]);
    }
    replaced_.push_back(n);
    return true;
  }

  /// Reads the operand of n, which keeps the order of elements, in the result's sizes. `count`: how many there are along the operand's
  /// open axis; null: what is in front of it stays there.
  bool view(Node* n, Value* count) {
    Value *x = n->inputs[0], *y = n->outputs[0];
    const Dims from = dims_of(x), to = dims_of(y);
    const auto own = layout_of(x);
    const auto axis = only_open_axis(to);
    if (!own || !axis || num_elements(from) != num_elements(to)) return false;
    const int64_t ahead = product(from, 0, own->axis) * own->front, others = product(to, 0, *axis);
    const int64_t front = ahead / others, size = from[own->axis] / own->front, size_to = to[*axis] / front;
    if (front * others != ahead || front * size_to != to[*axis]) return false;
    OpenLayout l{*axis, front, own->front > 1 ? own->count : count};
    const int64_t more = size_to / size, less = size / size_to;  // one of them is 1, or 0
    if (more * size != size_to && less * size_to != size) return false;
    l.times = own->times * std::max<int64_t>(more, 1);
    l.divisor = own->divisor * std::max<int64_t>(less, 1);
    // Each part has to be so long whatever the size is: the rows of two of [2, n] may begin in one half and end in the other.
    if (front > 1 && (!l.count || l.times % l.divisor != 0)) return false;
    const int64_t rest = num_elements(to) / (std::max(size, size_to) * ahead);
    Value* v = value_of(x);
    if (ahead > 1 && size != size_to) {  // parts of the size change places with what is in front of it
      const Dims cut = more > 1 ? Dims{size, ahead, more, rest} : Dims{size_to, less, ahead, rest};
      v = reshaped(*n, v, cut, derived(y->name, "_parts"));
      v = insert_function(g_, *n, n, with_axes_swapped(y->type.dtype, cut), {v}, {derived(y->name, "_moved")})
              ->outputs[0];
    }
    const bool in_order = front == 1 && !is_inner(to, *axis);
    v = reshaped(*n, v, in_order ? to : stored_dims(to, l), y->name);
    replace(n, y, v, in_order ? std::nullopt : std::optional(l));
    replaced_.push_back(n);
    return true;
  }

  /// What the caller has.
  void unpack(Node* n) {
    Value* y = n->outputs[0];
    const OpenLayout l{*only_open_axis(dims_of(y))};
    TensorFn fn = unpacked_function(y->type.dtype, dims_of(y), l, n->attr_ints("axes"), by_points_);
    replace(n, y, insert_function(g_, *n, n, std::move(fn), n->inputs, {y->name})->outputs[0], l);
    replaced_.push_back(n);
  }
  /// What there is, as the caller has it.
  void pack(Node* n) {
    Value *x = n->inputs[0], *y = n->outputs[0];
    join_parts(x, n);
    std::vector<Value*> operands = n->inputs;
    operands[0] = value_of(x);
    TensorFn fn = packed_function(x->type.dtype, dims_of(x), stored_.at(x).layout, n->attr_ints("axes"), by_points_);
    Node* packed = insert_function(g_, *n, n, std::move(fn), std::move(operands), {derived(y->name, "_packed")});
    replace_value(g_, n, y, reshaped(*n, packed->outputs[0], dims_of(y), y->name));
    replaced_.push_back(n);
  }

  // --- what has two such axes
  /// A mask, say: each that reads it computes it.
  void copy_what_no_memory_holds() {
    std::vector<Node*> list;
    for (const auto& n : g_.nodes())
      if (makes_pairs(*n)) list.push_back(n.get());
    for (auto n = list.rbegin(); n != list.rend(); ++n)
      if ((*n)->outputs[0]->users.size() > 1) copy_for_readers(to_function(g_, *n));
  }
  void copy_for_readers(Node* n) {
    if (!n->is("Reshape") && (!is_fused(n) || pattern_of(*n->fn) > Pattern::Injective)) return;
    const std::vector<Node*> users = n->outputs[0]->users;
    for (size_t k = 1; k < users.size(); k++) {
      const std::vector<ModelText> names = {derived(n->outputs[0]->name, "_again")};
      Node* copy = nullptr;
      if (is_fused(n)) {
        copy = insert_function(g_, *n, users[k], *n->fn, n->inputs, names);
      } else {
        copy = insert_for(g_, *n, users[k], n->op, n->inputs, names, n->attrs, n->domain);
        g_.set_type(copy->outputs[0], n->outputs[0]->type);
      }
      const auto& inputs = users[k]->inputs;
      const auto at = std::find(inputs.begin(), inputs.end(), n->outputs[0]);
      if (at != inputs.end()) g_.set_input(users[k], size_t(at - inputs.begin()), copy->outputs[0]);
    }
  }

  Graph& g_;
  bool by_points_;
  std::map<const Value*, Stored> stored_;  // looked up only
  std::vector<Node*> replaced_;            // in order
};

}  // namespace

void open_axes_first(Graph& g, PassContext& cx) { OpenAxesFirst(g, cx.target.device_memory).run(); }

}  // namespace tc
