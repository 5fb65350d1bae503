#include "ir/tensor_fn.h"

#include <map>

#include "ir/loop/build.h"
#include "ir/loop/print.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "support/text.h"

namespace tc {
namespace {

Exprs vars_of(const std::vector<Axis>& axes) {
  Exprs v;
  for (const Axis& a : axes) v.push_back(Expr(a.var));
  return v;
}

// Wraps `body` in serial loops over axes[from..].
Stmt nest_loops(const std::vector<Axis>& axes, size_t from, Stmt body) {
  for (size_t i = axes.size(); i > from; i--) body = loop(axes[i - 1].var, axes[i - 1].extent, body);
  return body;
}

// init; for raxes: acc = combine(acc, value); out = acc. The accumulators are scalars.
Stmt reduce_point(const Stage& s) {
  const size_t n = s.outputs.size();
  std::vector<Buffer> acc;
  Stmts all;
  for (size_t k = 0; k < n; k++) {
    acc.push_back(make_buffer(n == 1 ? "acc" : "acc" + to_text(int64_t(k)), s.outputs[k]->dtype, {}, Scope::Register));
    all.push_back(store(acc[k], {}, s.init[k]));
  }
  Stmt update;
  if (s.combiner.op) {
    update = store(acc[0], {}, s.values[0], s.combiner.op);
  } else {
    VarMap joined;
    Stmts stores;
    std::vector<Var> fresh;
    for (size_t k = 0; k < n; k++) {
      fresh.push_back(make_var("next" + to_text(int64_t(k)), acc[k]->dtype));
      stores.push_back(store(acc[k], {}, Expr(fresh[k])));
    }
    update = seq(stores);
    for (size_t k = n; k > 0; k--) update = let(fresh[k - 1], s.combiner.result[k - 1], update);
    for (size_t k = n; k > 0; k--) update = let(s.combiner.rhs[k - 1], s.values[k - 1], update);
    for (size_t k = n; k > 0; k--) update = let(s.combiner.lhs[k - 1], load(acc[k - 1], {}), update);
  }
  all.push_back(nest_loops(s.raxes, 0, update));
  for (size_t k = 0; k < n; k++) all.push_back(store(s.outputs[k], vars_of(s.axes), load(acc[k], {})));
  Stmt body = seq(all);
  for (size_t k = n; k > 0; k--) body = alloc(acc[k - 1], body);
  return body;
}

Stmt point(const Stage& s) {
  if (s.kind == Stage::Kind::Reduce) return reduce_point(s);
  return store(s.outputs[0], vars_of(s.axes), s.values[0]);
}

Stmt lower_stage(const Stage& s, size_t from) {
  return s.kind == Stage::Kind::Nest ? s.nest : nest_loops(s.axes, from, point(s));
}

// A stage's statements at one step of its scan: axis 0 becomes the group's variable.
Stmt scan_step(const Stage& s, const Var& step) {
  check(s.kind != Stage::Kind::Nest && !s.axes.empty(), "a scan stage has an axis 0");
  return substitute(lower_stage(s, 1), {{s.axes[0].var.get(), Expr(step)}});
}

bool is_output(const TensorFn& fn, const Buffer& b) {
  for (const Buffer& o : fn.outputs)
    if (o == b) return true;
  return false;
}

// --- instantiate
class Copier {
 public:
  Copier(const TensorFn& fn, const std::vector<Buffer>& inputs) {
    check(inputs.size() == fn.inputs.size(), "instantiate: operand count");
    for (size_t i = 0; i < inputs.size(); i++) buffers_[fn.inputs[i].get()] = inputs[i];
  }
  Buffer buffer(const Buffer& b) {
    Buffer& c = buffers_[b.get()];
    if (!c) c = std::make_shared<const BufferDef>(*b);
    return c;
  }
  Stage stage(const Stage& s) {
    Stage c = s;
    for (Buffer& b : c.outputs) b = buffer(b);
    for (Axis& a : c.axes) a.var = var(a.var);
    for (Axis& a : c.raxes) a.var = var(a.var);
    for (Var& v : c.combiner.lhs) v = var(v);
    for (Var& v : c.combiner.rhs) v = var(v);
    for (Exprs* l : {&c.values, &c.init, &c.combiner.result})
      for (Expr& e : *l) e = substitute_buffers(substitute(e, vars_), buffers_);
    if (c.nest) c.nest = substitute_buffers(substitute(fresh_bindings(c.nest), vars_), buffers_);
    return c;
  }

 private:
  Var var(const Var& v) {
    const Var c = std::make_shared<const VarDef>(*v);
    vars_[v.get()] = Expr(c);
    return c;
  }
  // Loops and lets of a raw nest bind their own variables; they get fresh ones too.
  Stmt fresh_bindings(const Stmt& s) {
    return rewrite(s, {}, [&](const Stmt& x) -> Stmt {
      if (const For* f = as<For>(x)) {
        const Var c = std::make_shared<const VarDef>(*f->var);
        return loop(c, f->extent, substitute(f->body, {{f->var.get(), Expr(c)}}), f->kind, f->begin);
      }
      if (const Let* l = as<Let>(x)) {
        const Var c = std::make_shared<const VarDef>(*l->var);
        return let(c, l->value, substitute(l->body, {{l->var.get(), Expr(c)}}));
      }
      if (const Alloc* a = as<Alloc>(x)) {
        const Buffer c = std::make_shared<const BufferDef>(*a->buffer);
        return alloc(c, substitute_buffers(a->body, {{a->buffer.get(), c}}));
      }
      return {};
    });
  }
  VarMap vars_;
  BufferMap buffers_;
};

// --- pattern_of
// How one load of an input relates to the stage's axes.
Pattern load_pattern(const Load& l, const std::vector<Axis>& axes) {
  const size_t n = axes.size(), m = l.index.size();
  auto axis_of = [&](const Expr& e) -> int {
    const VarRef* v = as<VarRef>(e);
    for (size_t i = 0; v && i < n; i++)
      if (axes[i].var == v->var) return int(i);
    return -1;
  };
  if (m == n) {
    bool same = true;
    for (size_t i = 0; i < n; i++)
      same = same && (axis_of(l.index[i]) == int(i) || (is_const(l.index[i], 0) && axes[i].extent == Dim(1)));
    if (same) return Pattern::Elementwise;
  }
  int last = -1;
  for (size_t i = 0; i < m; i++) {
    if (is_const(l.index[i], 0) && l.buffer->shape[i] == Dim(1)) continue;
    const int a = axis_of(l.index[i]);
    if (a <= last) return Pattern::Injective;
    last = a;
  }
  return Pattern::Broadcast;
}

Pattern compute_pattern(const TensorFn& fn) {
  Pattern worst = Pattern::Elementwise;
  for (const Stage& s : fn.stages)
    walk(s.values[0], [&](const Expr& e) {
      if (const Load* l = as<Load>(e)) worst = std::max(worst, load_pattern(*l, s.axes));
      return true;
    });
  return worst;
}

Expr linear_index(const Exprs& index, const Dims& dims) {
  Expr e = 0;
  for (size_t i = 0; i < dims.size(); i++) e = e * Expr(dims[i]) + index[i];
  return e;
}

/// The parts of an index along axes of several elements.
Exprs long_axes(const Exprs& index, const Dims& dims) {
  Exprs list;
  for (size_t d = 0; d < dims.size(); d++)
    if (dims[d] != 1) list.push_back(index[d]);
  return list;
}

}  // namespace

bool keeps_order(const Exprs& index, const Dims& from, const std::vector<Axis>& axes, const Dims& to) {
  Ranges ranges;
  for (const Axis& a : axes) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent.value - 1)};
  if (!has_several_open(from))
    return is_const(simplify(linear_index(index, from) - linear_index(vars_of(axes), to), ranges), 0);
  const Exprs read = long_axes(index, from), own = long_axes(vars_of(axes), to);
  return std::equal(read.begin(), read.end(), own.begin(), own.end(),
                    [&](const Expr& a, const Expr& b) { return structurally_equal(simplify(a, ranges), b); });
}

namespace {

// One stage that reads element k of its only input to make element k of the output.
bool is_view(const TensorFn& fn) {
  if (fn.stages.size() != 1 || fn.stages[0].kind != Stage::Kind::Compute) return false;
  const Stage& s = fn.stages[0];
  const Load* l = as<Load>(s.values[0]);
  if (!l || !is_static(l->buffer->shape) || !is_static(s.outputs[0]->shape)) return false;
  if (l->buffer->dtype != s.outputs[0]->dtype) return false;
  const Dims from = static_dims(l->buffer->shape), to = static_dims(s.outputs[0]->shape);
  if (std::is_neq(compare_elements(from, to))) return false;
  return has_no_elements(to) || has_one_element(to) || keeps_order(l->index, from, s.axes, to);
}

// value = product of two loads, each maybe cast or guarded by a Select (padding).
bool is_product_of_loads(const Expr& e) {
  auto strip = [](Expr x) {
    while (true) {
      if (const Cast* c = as<Cast>(x))
        x = c->value;
      else if (const Select* s = as<Select>(x))
        x = s->yes;
      else
        return x;
    }
  };
  auto operand = [&](const Expr& x) -> const Load* {
    const Expr s = strip(x);
    if (const Load* l = as<Load>(s)) return l;
    const Apply* a = as<Apply>(s);  // a zero point taken off: x - zero
    return a && a->op == Op::Sub ? as<Load>(strip(a->args[0])) : nullptr;
  };
  const Expr x = strip(e);
  const Apply* k = as<Apply>(x);
  if (!k || k->op != Op::Mul) return false;
  const Load *a = operand(k->args[0]), *b = operand(k->args[1]);
  if (!a || !b) return false;
  // A square is a reduction of one tensor: variances, norms.
  return a->buffer != b->buffer || !structurally_equal(strip(k->args[0]), strip(k->args[1]));
}

}  // namespace

const Stage* producer(const TensorFn& fn, const Buffer& b) {
  for (const Stage& s : fn.stages)
    for (const Buffer& o : s.outputs)
      if (o == b) return &s;
  return nullptr;
}

TensorFn instantiate(const TensorFn& fn, const std::vector<Buffer>& inputs) {
  Copier copier(fn, inputs);
  TensorFn r;
  r.inputs = inputs;
  for (const Stage& s : fn.stages)
    for (const Buffer& b : s.outputs) copier.buffer(b);  // scan stages may be read before their definition
  for (const Stage& s : fn.stages) r.stages.push_back(copier.stage(s));
  for (const Buffer& b : fn.outputs) r.outputs.push_back(copier.buffer(b));
  return r;
}

Stmt lower_naive(const TensorFn& fn) {
  Stmts list;
  for (size_t i = 0; i < fn.stages.size();) {
    const Stage& s = fn.stages[i];
    if (s.scan < 0) {
      list.push_back(lower_stage(s, 0));
      i++;
      continue;
    }
    const Var step = make_var(s.axes.at(0).var->name);
    Stmts group;
    for (; i < fn.stages.size() && fn.stages[i].scan == s.scan; i++) group.push_back(scan_step(fn.stages[i], step));
    list.push_back(loop(step, s.axes[0].extent, seq(group)));
  }
  Stmt body = seq(list);
  for (const Stage& s : fn.stages)
    for (const Buffer& b : s.outputs)
      if (!is_output(fn, b)) {
        auto local = std::make_shared<BufferDef>(*b);
        local->scope = Scope::Workspace;
        const Buffer w = local;
        body = alloc(w, substitute_buffers(body, {{b.get(), w}}));
      }
  return body;
}

Pattern pattern_of(const TensorFn& fn) {
  bool reduces = false, contracts = false;
  for (const Stage& s : fn.stages) {
    if (s.kind == Stage::Kind::Nest || s.scan >= 0) return Pattern::Opaque;
    if (s.kind != Stage::Kind::Reduce) continue;
    reduces = true;
    contracts = contracts || (s.combiner.op == Op::Add && !s.raxes.empty() && is_product_of_loads(s.values[0]));
  }
  if (contracts) return Pattern::Contraction;
  if (reduces) return Pattern::Reduction;
  return is_view(fn) ? Pattern::View : compute_pattern(fn);
}

std::string to_text(const Stage& s) {
  auto axes = [](const std::vector<Axis>& l) {
    std::vector<std::string> parts;
    for (const Axis& a : l) parts.push_back(a.var->name + ":" + to_text(Shape{a.extent}));
    return join(parts, ", ");
  };
  std::vector<std::string> outs;
  for (const Buffer& b : s.outputs) outs.push_back(b->name + ": " + std::string(info(b->dtype).name));
  std::string t = s.name + " (" + join(outs, ", ") + ")[" + axes(s.axes) + "] = ";
  if (s.kind == Stage::Kind::Nest) return t + "nest\n" + to_text(s.nest, 1);
  if (s.kind == Stage::Kind::Reduce)
    t += (s.combiner.op ? std::string(info(*s.combiner.op).name) : "combine") + "(" + axes(s.raxes) + ") ";
  for (size_t k = 0; k < s.values.size(); k++) t += (k > 0 ? ", " : "") + to_text(s.values[k]);
  if (s.scan >= 0) t += "   # scan " + to_text(int64_t(s.scan));
  return t + "\n";
}

std::string to_text(const TensorFn& fn) {
  std::string t;
  for (const Buffer& b : fn.inputs) t += "in " + b->name + ": " + to_text(ValueType::tensor(b->dtype, b->shape)) + "\n";
  for (const Stage& s : fn.stages) t += to_text(s);
  for (const Buffer& b : fn.outputs)
    t += "out " + b->name + ": " + to_text(ValueType::tensor(b->dtype, b->shape)) + "\n";
  return t;
}

}  // namespace tc
