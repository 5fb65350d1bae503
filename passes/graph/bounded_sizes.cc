// Tensors have the sizes of their upper bounds; beside them goes a number, the count. A node may read such a tensor if,
// along the counted axis, each of its results depends on one element only, the one at the same index: then what lies
// behind the counted elements stays behind them. This is decided from the node's meaning, whatever the operator: every
// load has the result's index along the counted axis, and nothing else looks at that index. So elementwise
// functions, moves of other axes, Gather by counted positions, products with weights pass; sums over the axis, Concat
// along it, sorting do not; counted_operands.cc rewrites those that can be, and others are refused.
//   s = NonMaxSuppression(boxes, scores, ...)   ->   s: i64[bound,3], s_count = NonMaxSuppression(boxes, scores, ...)
//   k = Gather(s, 2, axis = 1)                       k: i64[bound]                  counted by s_count
//   return k                                         return k: s_count along 0, s_count
#include "passes/graph/bounded_sizes.h"

#include <algorithm>

#include "ir/loop/visit.h"
#include "ir/ops/op.h"
#include "passes/graph/rewrite.h"

namespace tc {
namespace {

[[noreturn]] void refuse(const Node& n, const Value* v, const std::string& why) {
  Diagnostic d = problem_of(n, "TC0303", ExitCode::Unsupported, why,
                            {"declare fixed sizes for the results of the operator that counts them"});
  d.loc.value = v->name.raw();
  throw Error(std::move(d));
}

}  // namespace

int counting_output(const Node& n) {
  if (n.is("NonZero") || n.is("Compress") || n.is("NonMaxSuppression")) return 1;
  return n.is("Unique") ? 4 : -1;
}

bool counts_results(const Graph& g) {
  return std::any_of(g.nodes().begin(), g.nodes().end(), [](const auto& n) {
    return counting_output(*n) >= 0 ||
           std::any_of(n->regions.begin(), n->regions.end(), [](const auto& r) { return counts_results(*r); });
  });
}

namespace {

/// Is the size known without counting: from constants, or from the model's declaration?
bool size_is_known(const Node& n) {
  auto constant = [&](size_t k) { return k < n.inputs.size() && n.inputs[k] && n.inputs[k]->constant; };
  for (size_t k = 0; k < n.outputs.size() && k < 4; k++)
    if (n.outputs[k] && k != 2 && n.outputs[k]->type.is_static_tensor()) return true;
  if (!n.is("NonMaxSuppression")) return constant(n.is("Compress") ? 1 : 0);
  const Value* boxes = n.inputs.at(0);
  return n.inputs.size() < 3 || (boxes && boxes->type.is_static_tensor() && num_elements(dims_of(boxes)) == 0);
}

/// Along which axis the outputs of a counting operator are counted.
std::optional<int> counted_axis(const Node& n, size_t k) {
  const int rank = int(n.outputs[k]->type.shape.size());
  if (n.is("NonZero")) return 1;
  if (n.is("NonMaxSuppression")) return 0;
  if (n.is("Unique") && k == 2) return std::nullopt;  // one number for each element of the operand
  const int64_t axis = k == 0 ? n.attr_int("axis", 0) : 0;
  return int(axis < 0 ? axis + rank : axis);
}

/// Is operand `i` a table that positions lead into along this axis? They lead to counted elements only.
bool is_table(const Node& n, size_t i, int axis) {
  if (i != 0) return false;
  if (n.is("GatherND")) return n.attr_int("batch_dims", 0) == 0 && axis == 0;
  if (!n.is("Gather")) return false;
  const int64_t along = n.attr_int("axis", 0);
  return (along < 0 ? along + int64_t(n.inputs[0]->type.shape.size()) : along) == axis;
}

/// Does a Slice along `axis` end at a position that is counted from the front?
bool ends_from_front(const Node& n, int axis, int rank) {
  const auto ends = ints_of(n.inputs.at(2)), axes = n.inputs.size() > 3 ? ints_of(n.inputs[3]) : std::nullopt;
  if (!ends) return false;
  for (size_t k = 0; k < ends->size(); k++) {
    const int64_t a = axes ? axes->at(k) : int64_t(k);
    if ((a < 0 ? a + rank : a) == axis && (*ends)[k] < 0) return false;
  }
  return true;
}

/// Which buffers of a function are counted along which axis, stage after stage.
class Follower {
 public:
  std::map<const BufferDef*, int> axes;  // looked up only

  /// False if some stage looks across the counted axis.
  bool run(const TensorFn& fn) {
    for (const Stage& s : fn.stages)
      if (!stage(s)) return false;
    return true;
  }

 private:
  template <class F>
  static void each_load(const Stage& s, const F& f) {
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (e)
          walk(e, [&](const Expr& x) {
            if (const Load* l = as<Load>(x)) f(*l);
            return true;
          });
  }

  bool reads_counted(const Stage& s) const {
    bool found = false;
    each_load(s, [&](const Load& l) { found = found || axes.count(l.buffer.get()) != 0; });
    if (s.nest)
      walk(
          s.nest, [](const Stmt&) { return true; },
          [&](const Expr& e) {
            if (const Load* l = as<Load>(e)) found = found || axes.count(l->buffer.get()) != 0;
            return true;
          });
    return found;
  }

  /// The axis of the stage that is the index along the counted one in every load; -1 if there is none.
  int axis_in(const Stage& s) const {
    int axis = -2;  // not found yet
    each_load(s, [&](const Load& l) {
      const auto it = axes.find(l.buffer.get());
      if (it == axes.end()) return;
      const VarRef* v = as<VarRef>(l.index.at(size_t(it->second)));
      int here = -1;
      for (size_t k = 0; v && k < s.axes.size(); k++)
        if (s.axes[k].var == v->var) here = int(k);
      axis = axis == -2 || axis == here ? here : -1;
    });
    return axis;
  }

  /// Does the variable appear only as the index of the counted axis?
  bool only_indexes(const Expr& e, const Var& v) const {
    bool ok = true;
    if (!e) return ok;
    walk(e, [&](const Expr& x) {
      if (const VarRef* r = as<VarRef>(x)) ok = ok && r->var != v;
      const Load* l = as<Load>(x);
      if (!l) return ok;
      const auto it = axes.find(l->buffer.get());
      for (size_t k = 0; k < l->index.size() && ok; k++)
        if (it == axes.end() || k != size_t(it->second)) ok = only_indexes(l->index[k], v);
      return false;
    });
    return ok;
  }

  bool stage(const Stage& s) {
    if (!reads_counted(s)) return true;
    if (s.nest || s.scan >= 0) return false;
    const int axis = axis_in(s);
    if (axis < 0) return false;
    const Var& v = s.axes[size_t(axis)].var;
    for (const Exprs* list : {&s.values, &s.init})
      if (!std::all_of(list->begin(), list->end(), [&](const Expr& e) { return only_indexes(e, v); })) return false;
    for (const Buffer& b : s.outputs) axes[b.get()] = axis;
    return true;
  }
};

}  // namespace

std::optional<BoundedSize> BoundedSizes::find(const Value* v) const {
  const auto it = sizes_.find(v->id);
  return it == sizes_.end() ? std::nullopt : std::optional<BoundedSize>(it->second);
}

void BoundedSizes::note(const Value* v, const BoundedSize& size) {
  sizes_[v->id] = size;
  counts_.add(size.count, size.capacity);
}

bool BoundedSizes::counted_already(Graph& g, Node* n) const {
  const int at = counting_output(*n);
  if (at < 0 || int(n->outputs.size()) > at || !n->inputs.at(0)) return false;
  const auto is_twin = [&](const Node* u) {
    if (u->op != n->op || u->inputs != n->inputs || u->attrs != n->attrs || int(u->outputs.size()) <= at) return false;
    for (size_t k = 0; k < n->outputs.size(); k++)
      if (n->outputs[k] && !u->outputs[k]) return false;
    return true;
  };
  const std::vector<Node*>& users = n->inputs[0]->users;
  const auto twin = std::find_if(users.begin(), users.end(), is_twin);
  if (twin == users.end()) return false;
  Node* const counted = *twin;
  for (size_t k = 0; k < n->outputs.size(); k++)
    if (n->outputs[k]) replace_value(g, n, n->outputs[k], counted->outputs[k]);
  add_origins(counted->origins, n->origins);
  g.erase(n);
  return true;
}

Node* BoundedSizes::count_results(Graph& g, Node* n) {
  const int at = counting_output(*n);
  if (at < 0 || int(n->outputs.size()) > at || size_is_known(*n)) return n;
  std::vector<ModelText> names = output_names(*n);
  const ModelText base = names.at(0).empty() ? n->name : names.at(0);
  names.resize(size_t(at));
  names.push_back(derived(base, "_count"));
  Node* c = insert_for(g, *n, n, n->op, n->inputs, names, n->attrs, n->domain);
  c->row = n->row;
  for (size_t k = 0; k < n->outputs.size(); k++)
    if (n->outputs[k]) g.replace_uses(n->outputs[k], c->outputs[k]);
  g.erase(n);
  return c;
}

bool BoundedSizes::replace_shape(Graph& g, Node* n) {
  if (!n->is("Shape") || !n->inputs.at(0)) return false;
  const auto size = find(n->inputs[0]);
  if (!size) return false;
  const Dims dims = dims_of(n->inputs[0]);
  const auto rank = int64_t(dims.size());
  auto border = [&](int64_t p) { return std::clamp<int64_t>(p < 0 ? p + rank : p, 0, rank); };
  const int64_t first = border(n->attr_int("start", 0)), last = border(n->attr_int("end", rank));
  if (size->axis < first || size->axis >= last) return false;  // none of the sizes that it asks for
  const ModelText name = n->outputs.at(0)->name;
  std::vector<Value*> parts;
  for (int64_t d = first; d < last; d++) {
    const std::string part = "_" + to_text(d);
    if (d != size->axis)
      parts.push_back(g.add_constant(derived(name, part), int64_constant({dims[size_t(d)]})));
    else
      parts.push_back(add_op(g, n, "Reshape",
                             {size->count, g.add_constant(derived(name, part + "_shape"), int64_constant({1}))},
                             derived(name, part)));
  }
  replace_node(g, n, add_op(g, n, "Concat", parts, derived(name, "_sizes"), {{"axis", int64_t(0)}}));
  return true;
}

void BoundedSizes::forbid(const Node& n) const {
  for (const Value* v : n.inputs)
    if (v && find(v)) refuse(n, v, "a tensor whose size depends on data cannot be used here");
}

std::vector<BoundedSizes> BoundedSizes::capture(Graph& g, Node* n, size_t own) const {
  for (size_t k = 0; k < own; k++)
    if (n->inputs[k] && find(n->inputs[k]))
      refuse(*n, n->inputs[k], "a tensor whose size depends on data cannot be an operand of a loop or a condition");
  std::vector<BoundedSizes> inside(n->regions.size());
  std::map<int, size_t> captures;  // of a captured count among the captures, by id
  for (size_t k = own; k < own + size_t(n->captures); k++) {
    const auto size = find(n->inputs[k]);
    if (!size) continue;
    const auto [captured, fresh] = captures.try_emplace(size->count->id, size_t(n->captures));
    if (fresh) {
      g.add_node_input(n, size->count);
      ++n->captures;
      for (const auto& r : n->regions) r->add_input(size->count->name, size->count->type);
    }
    for (size_t r = 0; r < inside.size(); r++) {
      const auto& in = n->regions[r]->inputs();
      const size_t first = in.size() - size_t(n->captures);
      inside[r].note(in[first + k - own], {size->axis, in[first + captured->second], size->capacity});
    }
  }
  return inside;
}

void BoundedSizes::forbid_results(const Node& n, const Graph& body) const {
  for (const Value* v : body.outputs())
    if (find(v)) refuse(n, v, "the size of a result of a loop or a condition depends on data");
}

void BoundedSizes::follow(Graph& g, Node* n) {
  for (const Value* v : n->outputs)
    if (v && find(v)) return;  // look_across has said it
  const int counter = counting_output(*n);
  const Value* counted = nullptr;
  BoundedSize from;
  Follower follower;
  for (size_t i = 0; i < n->inputs.size(); i++) {
    const auto size = n->inputs[i] ? find(n->inputs[i]) : std::nullopt;
    if (!size || is_table(*n, i, size->axis)) continue;
    if (counted && size->count != from.count) refuse(*n, n->inputs[i], "two sizes that depend on data meet here");
    counted = n->inputs[i];
    from = *size;
    if (counter >= 0) forbid(*n);
  }
  if (counter >= 0 && int(n->outputs.size()) > counter) {
    for (size_t k = 0; int(k) < counter; k++)
      if (n->outputs[k])
        if (const auto axis = counted_axis(*n, k)) {
          const int64_t capacity = dims_of(n->outputs[k])[size_t(*axis)];
          note(n->outputs[k], {*axis, n->outputs[size_t(counter)], capacity});
        }
    return;
  }
  if (!counted || n->is("Shape")) return;
  const TensorFn& fn = tensor_fn(*n);
  for (size_t k = 0; k < fn.operands.size(); k++)
    if (const auto size = find(n->inputs[size_t(fn.operands[k])]);
        size && !is_table(*n, size_t(fn.operands[k]), size->axis))
      follower.axes[fn.inputs[k].get()] = size->axis;
  if (follower.axes.empty() || !follower.run(fn))
    refuse(*n, counted, "the size of this tensor depends on data, and the operator looks across it");
  const int64_t bound = dims_of(counted)[size_t(from.axis)];
  for (size_t k = 0, next = 0; k < n->outputs.size(); k++) {
    if (!n->outputs[k]) continue;
    const auto it = follower.axes.find(fn.outputs[next++].get());
    if (it == follower.axes.end()) continue;
    Value* count = count_of(g, n, k, it->second, from.count, bound);  // may throw: nothing is noted before
    note(n->outputs[k], {it->second, count, dims_of(n->outputs[k])[size_t(it->second)]});
  }
}

Value* BoundedSizes::count_of(Graph& g, Node* n, size_t k, int axis, Value* count, int64_t bound) {
  const Dims dims = dims_of(n->outputs[k]);
  const int64_t capacity = dims[size_t(axis)];
  if (capacity == bound) return count;
  if (!n->is("Slice") || !ends_from_front(*n, axis, int(dims.size())))
    refuse(*n, n->inputs[0], "the size of this tensor depends on data, and the operator changes it");
  const ModelText& name = n->outputs[k]->name;
  const auto next = std::next(n->self);
  return add_op(g, next == g.nodes().end() ? nullptr : next->get(), "Min",
                {count, g.add_constant(derived(name, "_most"), scalar_constant(DType::I64, double(capacity)))},
                derived(name, "_count"));
}

void BoundedSizes::finish(Graph& g) {
  std::vector<Value*> outputs = g.outputs();
  const size_t own = outputs.size();
  std::vector<OutputSize> sizes;
  for (size_t k = 0; k < own; k++) {
    const auto size = find(outputs[k]);
    if (!size) continue;
    if (size->axis != 0) {
      Value* wide = outputs[k];
      Node* pack = g.append("pack", {wide, size->count}, {wide->name}, {{"axis", int64_t(size->axis)}}, "tc");
      wide->name = derived(wide->name, "_unpacked");
      infer_types(g, *pack);
      outputs[k] = pack->outputs[0];
    }
    size_t at = own;
    while (at < outputs.size() && outputs[at] != size->count) at++;
    if (at == outputs.size()) outputs.push_back(size->count);
    sizes.push_back({k, size->axis, at});
  }
  if (sizes.empty()) return;
  g.set_outputs(std::move(outputs));
  g.set_output_sizes(std::move(sizes));
}

}  // namespace tc
