// Functions of tensors whose open axis is stored first (open_layout.h).
//   y[i, n, k] = x[i, n, k] + b[k]          ->   y[n, i, k] = x[n, i, k] + b[k]
//   y[m, j] = sum(k) x[m, k] * w[k, j]      ->   y[n, p, j] = sum(k) x[n, p, k] * w[k, j]     m = p * size + n, which nothing asks
// A stage's loops are in the order of its results' memory. The steps of a scan stay what they are: what it holds is no tensor of the
// graph.
#include "passes/graph/open_layout.h"

#include <algorithm>
#include <map>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"

namespace tc {

std::optional<size_t> only_open_axis(const Dims& dims) {
  if (std::count_if(dims.begin(), dims.end(), is_open) != 1) return {};
  return size_t(std::find_if(dims.begin(), dims.end(), is_open) - dims.begin());
}

bool is_inner(const Dims& dims, size_t axis) {
  return std::any_of(dims.begin(), dims.begin() + std::ptrdiff_t(axis), [](int64_t d) { return d != 1; });
}

bool makes_pairs(const Node& n) {
  return n.outputs.size() == 1 && n.outputs[0] && n.outputs[0]->type.is_static_tensor() &&
         has_several_open(static_dims(n.outputs[0]->type.shape));
}

Dims stored_dims(const Dims& dims, const OpenLayout& l) {
  return in_stored_order(dims, l, dims[l.axis] / l.front, l.front);
}

namespace {

struct Stored {
  Buffer buffer;
  std::optional<OpenLayout> layout;
};

class Permutation {
 public:
  explicit Permutation(const TensorFn& fn) : fn_(fn) {
    const auto unstorable = [](const Buffer& b) {
      return is_static(b->shape) && has_several_open(static_dims(b->shape));
    };
    const auto sums = [](const Axis& a) { return a.extent.is_const() && is_open(a.extent.value); };
    in_blocks_ = std::any_of(fn.inputs.begin(), fn.inputs.end(), unstorable) ||
                 std::any_of(fn.stages.begin(), fn.stages.end(), [&](const Stage& s) {
                   return std::any_of(s.outputs.begin(), s.outputs.end(), unstorable) ||
                          std::any_of(s.raxes.begin(), s.raxes.end(), sums);
                 });
  }

  std::optional<OpenFunction> run(const OpenLayouts& inputs) {
    OpenFunction f;
    for (size_t i = 0; i < fn_.inputs.size(); i++) f.fn.inputs.push_back(store_as(fn_.inputs[i], inputs[i]));
    for (const Stage& s : fn_.stages) {
      auto part = s.nest ? nest(s) : stage(s);
      if (!part) return {};
      f.fn.stages.push_back(std::move(*part));
    }
    for (const Buffer& b : fn_.outputs) {
      const Stored& s = stored_.at(b.get());
      f.fn.outputs.push_back(s.buffer);
      f.outputs.push_back(s.layout);
    }
    return f;
  }

 private:
  Buffer store_as(const Buffer& b, const std::optional<OpenLayout>& l) {
    if (!l) return (stored_[b.get()] = {b, l}).buffer;
    auto d = std::make_shared<BufferDef>(*b);
    d->shape = to_shape(stored_dims(static_dims(b->shape), *l));
    return (stored_[b.get()] = {d, l}).buffer;
  }
  bool is_result(const Stage& s) const {
    return std::any_of(s.outputs.begin(), s.outputs.end(), [&](const Buffer& b) {
      return std::find(fn_.outputs.begin(), fn_.outputs.end(), b) != fn_.outputs.end();
    });
  }
  const Stored* find(const Buffer& b) const {
    const auto it = stored_.find(b.get());
    return it == stored_.end() ? nullptr : &it->second;
  }

  /// A stage's open axis, and the variables that stand for it.
  struct Own {
    std::optional<OpenLayout> layout;
    Var axis, open, part;
  };

  std::optional<Stage> stage(const Stage& s) {
    Own own;
    const Dims dims = static_dims(s.outputs[0]->shape);
    if (const auto axis = only_open_axis(dims)) {
      own.layout = OpenLayout{*axis};
      own.axis = own.open = s.axes[*axis].var;
      if (const OpenLayout* l = parts_of_operand(s)) {
        own.layout = *l;
        own.layout->axis = *axis;
        own.open = make_var(own.axis->name);
        own.part = make_var("part");
      }
      const bool parted = own.layout->front > 1;
      if (parted && (s.scan >= 0 || dims[*axis] % own.layout->front != 0)) return {};
      if (!parted && (s.scan >= 0 || !is_inner(dims, *axis) || (in_blocks_ && !is_result(s)))) own.layout.reset();
    }
    Stage made = s;
    for (Exprs* list : {&made.values, &made.init})
      for (Expr& e : *list) {
        if (!e) continue;
        e = see(e, own);
        if (!e) return {};
      }
    made.outputs.clear();
    for (const Buffer& b : s.outputs) made.outputs.push_back(store_as(b, own.layout));
    if (own.layout) {
      const int64_t front = own.layout->front;
      made.axes = in_stored_order(s.axes, *own.layout, Axis{own.open, Dim(dims[own.layout->axis] / front)},
                                  Axis{own.part, Dim(front)});
    }
    return made;
  }

  /// The layout of an operand in parts, whose parts the stage's then are.
  const OpenLayout* parts_of_operand(const Stage& s) const {
    const OpenLayout* found = nullptr;
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (e)
          walk(e, [&](const Expr& x) {
            const Load* l = as<Load>(x);
            const Stored* b = l ? find(l->buffer) : nullptr;
            if (b && b->layout && b->layout->front > 1) found = &*b->layout;
            return !found;
          });
    return found;
  }

  /// With operands as they are stored; null where it asks for more of an axis of parts than an element of each.
  Expr see(const Expr& e, const Own& own) const {
    bool ok = true;
    const bool parted = own.part != nullptr;
    const Expr seen = rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      const Stored* b = l ? find(l->buffer) : nullptr;
      if (!b || !b->layout) return {};
      const Expr at = l->index[b->layout->axis];
      if (b->layout->front == 1) return load(b->buffer, in_stored_order(l->index, *b->layout, at, Expr()));
      const VarRef* v = as<VarRef>(at);
      if (!parted || !v || v->var != own.axis || b->layout->front != own.layout->front) {
        ok = false;
        return {};
      }
      return load(b->buffer, in_stored_order(l->index, *b->layout, Expr(own.open), Expr(own.part)));
    });
    return ok && !(parted && uses_var(seen, own.axis)) ? seen : Expr();
  }

  /// Loops of its own: they stay, and what they store changes its place.
  std::optional<Stage> nest(const Stage& s) {
    Stage made = s;
    made.outputs.clear();
    for (const Buffer& b : s.outputs) {
      const Dims dims = static_dims(b->shape);
      const auto axis = only_open_axis(dims);
      made.outputs.push_back(
          store_as(b, axis && is_inner(dims, *axis) ? std::optional(OpenLayout{*axis}) : std::nullopt));
    }
    bool ok = true;
    made.nest = rewrite(
        s.nest,
        [&](const Expr& e) -> Expr {
          if (!as<Load>(e)) return {};
          const Expr seen = see(e, {});
          ok = ok && bool(seen);
          return seen;
        },
        [&](const Stmt& x) -> Stmt {
          ok = ok && !as<Intrin>(x) && !as<Alias>(x);
          const Store* k = as<Store>(x);
          const Stored* b = k ? find(k->buffer) : nullptr;
          if (!b || !b->layout) return {};
          return store(b->buffer, in_stored_order(k->index, *b->layout, k->index[b->layout->axis], Expr()), k->value,
                       k->reduce, k->count);
        });
    return ok ? std::optional(made) : std::nullopt;
  }

  const TensorFn& fn_;
  bool in_blocks_ = false;  // it goes along such axes block by block, and stores nothing between the stages
  std::map<const BufferDef*, Stored> stored_;  // looked up only
};

std::vector<Axis> axes_of(const Dims& dims) {
  std::vector<Axis> axes;
  for (const int64_t d : dims) axes.push_back({make_var("i" + to_text(int64_t(axes.size()))), Dim(d)});
  return axes;
}
Exprs vars_of(const std::vector<Axis>& axes) {
  Exprs list;
  for (const Axis& a : axes) list.push_back(Expr(a.var));
  return list;
}

TensorFn move_of(DType t, const std::vector<Axis>& axes, const Buffer& x, const Exprs& from, const Buffer& count) {
  Shape shape;
  for (const Axis& a : axes) shape.push_back(a.extent);
  Stage s;
  s.name = "transpose";
  s.axes = axes;
  s.values = {load(x, from)};
  s.outputs = {make_buffer("transpose", t, shape)};
  TensorFn fn;
  fn.inputs = {x};
  if (count) fn.inputs.push_back(count);
  fn.outputs = s.outputs;
  fn.stages = {std::move(s)};
  return fn;
}

/// The element of x, stored as `l` says, at the index `at` by axis. `count`: filled in where it has to be known.
Exprs stored_index(const Exprs& at, const OpenLayout& l, Buffer& count) {
  if (l.front == 1) return in_stored_order(at, l, at[l.axis], Expr());
  count = make_buffer("count", DType::I64, {});
  const Expr length = max(load(count, {}) * Expr(l.times) / Expr(l.divisor), Expr(1));
  return in_stored_order(at, l, floor_mod(at[l.axis], length), min(floor_div(at[l.axis], length), Expr(l.front - 1)));
}

}  // namespace

std::optional<OpenFunction> with_open_axes_first(const TensorFn& fn, const OpenLayouts& inputs) {
  return Permutation(fn).run(inputs);
}

TensorFn in_order_of_axes(DType t, const Dims& dims, const OpenLayout& l) {
  const Buffer x = make_buffer("x", t, to_shape(stored_dims(dims, l)));
  const std::vector<Axis> axes = axes_of(dims);
  Buffer count;
  const Exprs from = stored_index(vars_of(axes), l, count);
  return move_of(t, axes, x, from, count);
}

TensorFn with_joined_parts(DType t, const Dims& dims, const OpenLayout& l) {
  const Buffer x = make_buffer("x", t, to_shape(stored_dims(dims, l)));
  const std::vector<Axis> axes = axes_of(dims);
  Buffer count;
  const Exprs from = stored_index(vars_of(axes), l, count);
  return move_of(t, in_stored_order(axes, OpenLayout{l.axis}, axes[l.axis], Axis()), x, from, count);
}

TensorFn with_axes_swapped(DType t, const Dims& dims) {
  const std::vector<Axis> axes = axes_of({dims[0], dims[2], dims[1], dims[3]});
  const Exprs at = vars_of(axes);
  return move_of(t, axes, make_buffer("x", t, to_shape(dims)), {at[0], at[2], at[1], at[3]}, {});
}

namespace {

/// What there is of a tensor: the index of an element, and that in a dense tensor of the model's order.
class Elements {
 public:
  std::vector<Buffer> counts;  // by `axes`

  Elements(const Dims& dims, const OpenLayout& l, const std::vector<int64_t>& axes) : layout_(l), axes_(axes_of(dims)) {
    for (const int64_t d : dims) sizes_.push_back(Expr(d));
    for (const int64_t a : axes) {
      counts.push_back(make_buffer("n" + to_text(a), DType::I64, {}));
      names_.push_back({make_var("n"), max(min(load(counts.back(), {}), Expr(dims[size_t(a)])), Expr(0))});
      sizes_[size_t(a)] = Expr(names_.back().first);
    }
  }
  Exprs stored() const { return in_order(vars_of(axes_)); }
  Exprs dense() const {
    Expr at = 0;
    for (size_t d = 0; d < axes_.size(); d++) at = at * sizes_[d] + Expr(axes_[d].var);
    return {at};
  }

  /// Loops, in the order of the tensor's memory.
  TensorFn loops(const std::string& name, const Buffer& x, const Buffer& y, Stmt body) const {
    const std::vector<Expr> ends = in_order(sizes_);
    const std::vector<Axis> loops = stored_axes();
    for (size_t d = loops.size(); d-- > 0;) body = loop(loops[d].var, ends[d], body);
    for (size_t k = names_.size(); k-- > 0;) body = let(names_[k].first, names_[k].second, body);
    Stage s;
    s.kind = Stage::Kind::Nest;
    s.nest = body;
    return function(name, x, y, std::move(s));
  }
  /// y, at each point: what x has there. Without names, which formulas do not have.
  TensorFn unpacked(const std::string& name, const Buffer& x, const Buffer& y) const {
    Stage s;
    s.axes = stored_axes();
    s.values = {substitute(load(x, dense()), values())};
    return function(name, x, y, std::move(s));
  }
  TensorFn packed(const std::string& name, const Buffer& x, const Buffer& y) const {
    const Var e = make_var("e");
    VarMap at = values();
    Expr rest = e;
    for (size_t d = axes_.size(); d-- > 0;) {
      const Expr size = max(substitute(sizes_[d], values()), Expr(1));  // none is there where one is 0
      at[axes_[d].var.get()] = d == 0 ? min(rest, axes_[d].extent.value - 1) : floor_mod(rest, size);
      if (d > 0) rest = floor_div(rest, size);
    }
    Stage s;
    s.axes = {{e, y->shape.at(0)}};
    s.values = {substitute(load(x, stored()), at)};
    return function(name, x, y, std::move(s));
  }

 private:
  TensorFn function(const std::string& name, const Buffer& x, const Buffer& y, Stage s) const {
    s.name = name;
    s.outputs = {y};
    TensorFn fn;
    fn.inputs = {x};
    fn.inputs.insert(fn.inputs.end(), counts.begin(), counts.end());
    fn.outputs = {y};
    fn.stages = {std::move(s)};
    return fn;
  }
  std::vector<Axis> stored_axes() const { return in_stored_order(axes_, layout_, axes_[layout_.axis], Axis()); }
  Exprs in_order(const Exprs& by_axis) const {
    return in_stored_order(by_axis, layout_, by_axis[layout_.axis], Expr());
  }
  VarMap values() const {
    VarMap map;
    for (const auto& [name, value] : names_) map[name.get()] = value;
    return map;
  }

  OpenLayout layout_;
  std::vector<Axis> axes_;
  Exprs sizes_;
  std::vector<std::pair<Var, Expr>> names_;
};

}  // namespace

TensorFn packed_function(DType t, const Dims& dims, const OpenLayout& l, const std::vector<int64_t>& axes,
                         bool by_points) {
  const Elements e(dims, l, axes);
  const Buffer x = make_buffer("x", t, to_shape(stored_dims(dims, l))),
               y = make_buffer("pack", t, {Dim(num_elements(dims))});
  return by_points ? e.packed("pack", x, y) : e.loops("pack", x, y, store(y, e.dense(), load(x, e.stored())));
}

TensorFn unpacked_function(DType t, const Dims& dims, const OpenLayout& l, const std::vector<int64_t>& axes,
                           bool by_points) {
  const Elements e(dims, l, axes);
  const Buffer x = make_buffer("x", t, {Dim(num_elements(dims))}),
               y = make_buffer("unpack", t, to_shape(stored_dims(dims, l)));
  return by_points ? e.unpacked("unpack", x, y) : e.loops("unpack", x, y, store(y, e.stored(), load(x, e.dense())));
}

}  // namespace tc
