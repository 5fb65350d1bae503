#include "templates/canonical.h"

#include <algorithm>

#include "ir/axis_ranges.h"
#include "ir/loop/build.h"
#include "ir/loop/raises.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "support/text.h"

namespace tc {
namespace {

// Inlines Compute stages into what reads them. One load node, or one buffer read at the same variables, is replaced by
// one node: shared sub-expressions stay shared.
class Inliner {
 public:
  explicit Inliner(const TensorFn& fn) : fn_(fn) {}

  Expr operator()(const Expr& e) {
    return rewrite(e, [&](const Expr& x) -> Expr {
      const Load* l = as<Load>(x);
      const Stage* s = l ? producer(fn_, l->buffer) : nullptr;
      if (!s || s->kind != Stage::Kind::Compute || s->scan >= 0) return {};
      return at(*s, l->index);
    });
  }

 private:
  using Key = std::pair<const Stage*, std::vector<const void*>>;

  Expr at(const Stage& s, const Exprs& index) {
    Key key{&s, {}};
    for (const Expr& i : index) {
      const VarRef* v = as<VarRef>(i);
      key.second.push_back(v ? static_cast<const void*>(v->var.get()) : i.get());
      keep_.push_back(i);
    }
    if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
    VarMap to;
    for (size_t d = 0; d < index.size(); d++) to[s.axes[d].var.get()] = index[d];
    return memo_[key] = substitute(body(s), to);
  }

  Expr body(const Stage& s) {
    if (const auto it = bodies_.find(&s); it != bodies_.end()) return it->second;
    return bodies_[&s] = (*this)(s.values[0]);
  }

  const TensorFn& fn_;
  std::map<Key, Expr> memo_;  // looked up only
  std::map<const Stage*, Expr> bodies_;
  Exprs keep_;
};

// The number of nodes met when every path is walked: what a tree without sharing would cost.
int64_t tree_size(const Expr& e, std::map<const ExprNode*, int64_t>& memo) {
  constexpr int64_t kMany = 1 << 20;
  if (const auto it = memo.find(e.get()); it != memo.end()) return it->second;
  int64_t n = 1;
  bool root = true;
  walk(e, [&](const Expr& x) {
    if (root) return !(root = false);
    n = std::min(kMany, n + tree_size(x, memo));
    return false;
  });
  return memo[e.get()] = n;
}

bool plain_static(const TensorFn& fn) {
  auto fixed = [](const Buffer& b) { return is_static(b->shape); };
  if (fn.outputs.size() != 1 || !std::all_of(fn.inputs.begin(), fn.inputs.end(), fixed)) return false;
  for (const Stage& s : fn.stages) {
    if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1 || !fixed(s.outputs[0])) return false;
    if (s.kind == Stage::Kind::Reduce && !s.combiner.op) return false;
  }
  return true;
}

Expr flat_index(const Buffer& b, const Exprs& index) {
  const Dims dims = static_dims(b->shape);
  std::vector<int64_t> strides = b->strides;
  if (strides.empty()) {
    strides.assign(dims.size(), 1);
    for (size_t d = dims.size(); d > 1; d--) strides[d - 2] = strides[d - 1] * dims[d - 1];
  }
  Expr e = b->offset;
  for (size_t d = 0; d < dims.size(); d++)
    if (dims[d] != 1 || raises_status(index[d])) e = e + index[d] * Expr(strides[d]);
  return e;
}

int64_t span(const Buffer& b) {
  const Dims dims = static_dims(b->shape);
  if (b->strides.empty()) return b->offset + num_elements(dims);
  int64_t last = b->offset;
  for (size_t d = 0; d < dims.size(); d++) last += (dims[d] - 1) * b->strides[d];
  return last + 1;
}

Buffer flat_view(const Buffer& b) { return make_buffer(b->name, b->dtype, {Dim(span(b))}, b->scope); }

// Is the condition a conjunction of comparisons of one axis each with a number, so that it describes a box?
bool is_box(const Expr& condition, const std::vector<Axis>& axes) {
  const Apply* k = as<Apply>(condition);
  if (!k) return false;
  if (k->op == Op::And) return is_box(k->args[0], axes) && is_box(k->args[1], axes);
  if (k->op != Op::Lt && k->op != Op::Le && k->op != Op::Gt && k->op != Op::Ge && k->op != Op::Eq) return false;
  std::vector<Var> vars;
  for (const Axis& a : axes)
    if (uses_var(condition, a.var)) vars.push_back(a.var);
  return vars.size() == 1 && affine_in(k->args[0], vars) && affine_in(k->args[1], vars);
}

// `x` padded: out[i] = inside ? x[i - begin] : constant, as the last stage. The stage's source then is the real result.
//
// Preconditions: the last stage, one load, a number elsewhere; index d of the load is axis d less a constant, or both have one
// element there; the condition is a box (is_box), namely the load's own bounds.
struct Padded {
  Buffer source;
  Border border;
};
std::optional<Padded> trailing_pad(const TensorFn& fn) {
  const Stage& s = fn.stages.back();
  if (s.kind != Stage::Kind::Compute || s.outputs[0] != fn.outputs[0]) return {};
  const Select* k = as<Select>(s.values[0]);
  const Load* l = k ? as<Load>(k->yes) : nullptr;
  if (!l || !as_const_number(k->no) || !is_box(k->condition, s.axes)) return {};
  Padded p{l->buffer, {static_dims(s.outputs[0]->shape), {}, static_dims(l->buffer->shape), k->no}};
  if (l->index.size() != s.axes.size()) return {};
  for (size_t d = 0; d < s.axes.size(); d++) {
    if (is_const(l->index[d], 0) && p.border.dims[d] == 1 && p.border.interior[d] == 1) {
      p.border.begin.push_back(0);
      continue;
    }
    const auto a = affine_in(l->index[d], {s.axes[d].var});
    const auto rest = a ? as_const_int(a->rest) : std::nullopt;
    if (!rest || a->coefficients[0] != 1) return {};
    p.border.begin.push_back(-*rest);
    if (p.border.begin[d] < 0 || p.border.begin[d] + p.border.interior[d] > p.border.dims[d]) return {};
  }
  // The condition must say just that: it holds in the interior's corners, and there alone.
  for (size_t d = 0; d < s.axes.size(); d++)
    for (int64_t at : {p.border.begin[d] - 1, p.border.begin[d], p.border.begin[d] + p.border.interior[d] - 1,
                       p.border.begin[d] + p.border.interior[d]}) {
      if (at < 0 || at >= p.border.dims[d]) continue;
      VarMap to;
      for (size_t o = 0; o < s.axes.size(); o++) to[s.axes[o].var.get()] = Expr(o == d ? at : p.border.begin[o]);
      const auto holds = as_const_int(simplify(substitute(k->condition, to)));
      const bool inside = at >= p.border.begin[d] && at < p.border.begin[d] + p.border.interior[d];
      if (!holds || (*holds != 0) != inside) return {};
    }
  return p;
}

// What reads every element of an operand as it is.
Stage copy_of(const Buffer& b) {
  Stage s;
  s.name = b->name;
  Exprs at;
  for (const Dim& d : b->shape) {
    s.axes.push_back({make_var("i" + to_text(int64_t(s.axes.size()))), d});
    at.push_back(Expr(s.axes.back().var));
  }
  s.values = {load(b, at)};
  s.outputs = {b};
  return s;
}

// The only reduction stage that `e` reads, and whether all its reads are at one index.
struct ReductionUse {
  const Stage* stage = nullptr;
  const Load* load = nullptr;
  bool many = false;
};
ReductionUse reduction_read(const TensorFn& fn, const Expr& e) {
  ReductionUse r;
  for (const Load* l : loads_of(e)) {
    const Stage* s = producer(fn, l->buffer);
    if (!s) continue;
    if (!r.load) {
      r.stage = s;
      r.load = l;
      continue;
    }
    bool same = s == r.stage;
    for (size_t d = 0; same && d < l->index.size(); d++) same = structurally_equal(l->index[d], r.load->index[d]);
    r.many = r.many || !same;
  }
  return r;
}

bool reads_stages(const TensorFn& fn, const Expr& e) {
  for (const Load* l : loads_of(e))
    if (producer(fn, l->buffer)) return true;
  return false;
}

// Splits an axis v wherever floor(v / c) or v mod c is taken of it: v = outer * c + inner (the groups of a
// convolution).
void split_divided_axes(Canonical& c) {
  for (size_t i = 0; i < c.axes.size(); i++) {
    const Axis a = c.axes[i];
    int64_t by = 0;
    auto look = [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        const Apply* k = as<Apply>(x);
        const VarRef* v = k && (k->op == Op::FloorDiv || k->op == Op::FloorMod) ? as<VarRef>(k->args[0]) : nullptr;
        const auto n = v && v->var == a.var ? as_const_int(k->args[1]) : std::nullopt;
        if (n && *n > 1 && a.extent.value % *n == 0 && *n < a.extent.value) by = by == 0 || by == *n ? *n : -1;
        return true;
      });
    };
    if (c.value) look(c.value);
    look(c.epilogue);
    if (by <= 0) continue;
    const Axis outer{make_var(a.var->name + "_o"), Dim(a.extent.value / by)},
        inner{make_var(a.var->name + "_i"), Dim(by)};
    const VarMap to{{a.var.get(), Expr(outer.var) * Expr(by) + Expr(inner.var)}};
    const Expr at = to.begin()->second;
    for (Expr* e : {&c.value, &c.init, &c.epilogue, &c.out_index})
      if (*e) *e = substitute(*e, to);
    c.axes[i] = outer;
    c.axes.insert(c.axes.begin() + std::ptrdiff_t(i) + 1, inner);
    i++;
  }
}

// Every point of the reduction feeds one point of the result: `index`, at which the result reads it, is a permutation
// of the result's axes.
bool is_permutation(const Exprs& index, const std::vector<Axis>& axes) {
  int64_t covered = 1;
  std::vector<const VarDef*> seen;
  for (const Expr& i : index) {
    if (is_const(i, 0)) continue;
    const VarRef* v = as<VarRef>(i);
    if (!v || std::find(seen.begin(), seen.end(), v->var.get()) != seen.end()) return false;
    seen.push_back(v->var.get());
    for (const Axis& a : axes)
      if (a.var == v->var) covered *= a.extent.value;
  }
  return covered == points(axes);
}

// The epilogue over the axes of the result, and the reduction over the same axes; false if there are several.
bool take_values(const TensorFn& fn, const Stage& last, int64_t largest, Canonical& c) {
  Inliner inlined(fn);
  const Stage* reduce = last.kind == Stage::Kind::Reduce ? &last : nullptr;
  VarMap to;
  if (!reduce) {
    c.epilogue = inlined(last.values[0]);
    std::map<const ExprNode*, int64_t> memo;
    if (tree_size(c.epilogue, memo) > largest) return false;
    const ReductionUse use = reduction_read(fn, c.epilogue);
    if (use.many) return false;
    reduce = use.stage;
    if (!reduce) return !reads_stages(fn, c.epilogue);
    if (!is_permutation(use.load->index, c.axes)) return false;
    for (size_t d = 0; d < reduce->axes.size(); d++) to[reduce->axes[d].var.get()] = use.load->index[d];
  }
  c.reduced = make_buffer("acc", reduce->outputs[0]->dtype, {}, Scope::Register);
  const Expr acc = load(c.reduced, {});
  if (reduce == &last) c.epilogue = acc;
  c.epilogue = rewrite(c.epilogue, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    return l && l->buffer == reduce->outputs[0] ? acc : Expr();
  });
  c.value = substitute(inlined(reduce->values[0]), to);
  c.init = substitute(inlined(reduce->init[0]), to);
  c.raxes = reduce->raxes;
  c.combine = *reduce->combiner.op;
  c.name = reduce->name;
  return !reads_stages(fn, c.value) && !reads_stages(fn, c.init) && !reads_stages(fn, c.epilogue);
}

void drop_single_trips(Canonical& c) {
  VarMap once;
  for (auto* l : {&c.axes, &c.raxes}) {
    for (const Axis& a : *l)
      if (a.extent == Dim(1)) once[a.var.get()] = Expr(0);
    std::erase_if(*l, [](const Axis& a) { return a.extent == Dim(1); });
  }
  for (Expr* x : {&c.value, &c.init, &c.epilogue, &c.out_index})
    if (*x) *x = substitute(*x, once);
}

// Loads of the operands become loads of their flat views.
void make_flat(const TensorFn& fn, Canonical& c) {
  BufferMap views;
  for (const Buffer& b : fn.inputs) {
    c.inputs.push_back(flat_view(b));
    views[b.get()] = c.inputs.back();
  }
  c.out = flat_view(fn.outputs[0]);
  const Ranges ranges = ranges_of({&c.axes, &c.raxes});
  c.shaped_value = c.value ? simplify(c.value, ranges) : Expr();
  c.out_index = simplify(c.out_index, ranges);
  for (Expr* x : {&c.value, &c.init, &c.epilogue}) {
    if (!*x) continue;
    *x = rewrite(*x, [&](const Expr& node) -> Expr {
      const Load* l = as<Load>(node);
      if (!l || !views.contains(l->buffer.get())) return {};
      return load(views[l->buffer.get()], {simplify(flat_index(l->buffer, l->index), ranges)});
    });
  }
}

}  // namespace

std::optional<Canonical> canonicalize(const TensorFn& fn, int64_t largest) {
  if (fn.stages.empty() || !plain_static(fn)) return {};
  const auto padded = trailing_pad(fn);
  const Buffer result = padded ? padded->source : fn.outputs[0];
  const Stage copy = padded ? copy_of(result) : Stage();
  const Stage* last = producer(fn, result);
  if (!last && padded) last = &copy;
  if (!last) return {};

  Canonical c;
  c.originals = fn.inputs;
  c.original_out = fn.outputs[0];
  c.axes = last->axes;
  c.name = last->name;
  Exprs at;
  for (const Axis& a : last->axes) at.push_back(Expr(a.var));
  if (padded) {
    c.border = padded->border;
    for (size_t d = 0; d < at.size(); d++) at[d] = at[d] + Expr(padded->border.begin[d]);
  }
  c.out_index = flat_index(fn.outputs[0], at);
  if (!take_values(fn, *last, largest, c)) return {};
  drop_single_trips(c);
  split_divided_axes(c);
  make_flat(fn, c);
  return c;
}

void bind_operands(Scheduled& s, const Canonical& c) {
  std::map<const BufferDef*, bool> read;
  walk(
      s.body,
      [&](const Stmt& x) {
        if (const Alias* a = as<Alias>(x)) read[a->base.get()] = true;
        if (const Intrin* k = as<Intrin>(x))
          for (const Buffer& b : k->buffers) read[b.get()] = true;
        return true;
      },
      [&](const Expr& x) {
        if (const Load* l = as<Load>(x)) read[l->buffer.get()] = true;
        return true;
      });
  for (size_t i = 0; i < c.inputs.size(); i++)
    if (read[c.inputs[i].get()]) {
      s.inputs.push_back(c.originals[i]);
      s.input_index.push_back(int(i));
      s.views.push_back({c.inputs[i], c.originals[i]});
    }
  s.outputs = {c.original_out};
  s.views.push_back({c.out, c.original_out});
}

}  // namespace tc
