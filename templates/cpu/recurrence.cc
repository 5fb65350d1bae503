// Stages that advance together and hold sums of products of their own past: RNN, LSTM, GRU.
//
//   h_state = the initial state                       of every tensor that a later step reads
//   for each step t:
//     recurrent = h_state * R                         each stage of the definition as a function of its own,
//     c_t = f(projection[t], recurrent, c_state)      by the template that fits it: panels of packed weights,
//     h_t = g(projection[t], recurrent, c_t)          gates in vectors
//     h_state = h_t
//
// A stage without its axis of steps is an ordinary stage. What the definition reads as `t > 0 ? h[t - 1] : initial` is
// the state, so that all steps share one text; what it reads of other operands moves with t.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/loop/flatten_buffers.h"
#include "templates/cpu/schedule_cpu.h"
#include "templates/cpu/template.h"
#include "templates/join_stages.h"

namespace tc {
namespace {

// A tensor of the group whose past is read: its last value, and what stands for it in the first step.
struct State {
  Buffer of;               // the whole tensor
  Buffer value;            // an operand of the step
  std::vector<Axis> axes;  // without the steps
  Expr initial;            // over axes
};

class Recurrence {
 public:
  explicit Recurrence(const TensorFn& fn) : fn_(fn) {}

  // Cuts the axis of steps off all stages; false if the group has another form.
  bool match() {
    if (!is_group()) return false;
    steps_ = fn_.stages[0].axes[0].extent.value;
    step_ = make_var(fn_.stages[0].axes[0].var->name);
    step_fn_.inputs = fn_.inputs;
    for (const Stage& s : fn_.stages)
      if (!add(s)) return false;
    for (const State& s : states_) step_fn_.inputs.push_back(s.value);
    for (const Buffer& b : fn_.outputs) step_fn_.outputs.push_back(now_.at(b.get()));
    for (const State& s : states_)
      if (!is_output(s.of)) step_fn_.outputs.push_back(now_.at(s.of.get()));
    return true;
  }

  std::optional<Scheduled> schedule(const TemplateArgs& a) {
    std::vector<bool> constant = a.constant_input;
    constant.resize(step_fn_.inputs.size(), false);
    ScheduleOptions options = a.options;
    options.fetch_ahead = false;  // every step reads the same weights
    auto part = [&](const TensorFn& fn, const std::vector<bool>& known) {
      return schedule_cpu(fn, known, a.cpu, options);
    };
    std::optional<Scheduled> s = join_stages(step_fn_, constant, part, false);
    if (!s) return {};
    // States are no operands of the function.
    for (size_t i = s->inputs.size(); i-- > 0;) {
      if (!is_of_step(s->inputs[i])) continue;
      s->inputs.erase(s->inputs.begin() + std::ptrdiff_t(i));
      s->input_index.erase(s->input_index.begin() + std::ptrdiff_t(i));
    }
    s->body = all_steps(*s);
    s->outputs = fn_.outputs;
    s->family = "recurrence";
    s->description = "step by step, " + s->description;
    return s;
  }

 private:
  bool is_group() const {
    bool sums = false;
    for (const Stage& s : fn_.stages) {
      if (s.scan < 0 || s.scan != fn_.stages[0].scan || s.kind == Stage::Kind::Nest || s.outputs.size() != 1)
        return false;
      const Buffer& b = s.outputs[0];
      if (s.axes.size() < 2 || !is_static(b->shape) || !b->strides.empty() || b->offset != 0) return false;
      if (s.axes[0].extent.value != fn_.stages[0].axes[0].extent.value) return false;
      sums = sums || s.kind == Stage::Kind::Reduce;
    }
    return sums &&
           std::all_of(fn_.outputs.begin(), fn_.outputs.end(), [&](const Buffer& b) { return producer(fn_, b); });
  }
  bool is_output(const Buffer& b) const {
    return std::find(fn_.outputs.begin(), fn_.outputs.end(), b) != fn_.outputs.end();
  }
  bool is_of_step(const Buffer& b) const {
    return std::any_of(states_.begin(), states_.end(), [&](const State& s) { return s.value == b; }) ||
           std::find(step_fn_.outputs.begin(), step_fn_.outputs.end(), b) != step_fn_.outputs.end();
  }

  bool add(const Stage& s) {
    Stage part = s;
    part.scan = -1;
    part.axes.erase(part.axes.begin());
    const VarMap to{{s.axes[0].var.get(), Expr(step_)}};
    for (auto* list : {&part.values, &part.init})
      for (Expr& e : *list) {
        e = at_step(substitute(e, to));
        for (const Load* l : loads_of(e))
          if (producer(fn_, l->buffer)) return false;  // neither of this step nor of the one before
      }
    const Buffer& whole = s.outputs[0];
    const Buffer now = make_buffer(whole->name, whole->dtype, Shape(whole->shape.begin() + 1, whole->shape.end()));
    part.outputs = {now};
    now_[whole.get()] = now;
    step_fn_.stages.push_back(std::move(part));
    return true;
  }

  // Reads of this step's values and of states.
  Expr at_step(const Expr& e) {
    return rewrite(e, [&](const Expr& x) -> Expr {
      if (const Load* l = as<Load>(x)) {
        const auto it = now_.find(l->buffer.get());
        const VarRef* t = it == now_.end() ? nullptr : as<VarRef>(l->index[0]);
        return t && t->var == step_ ? load(it->second, Exprs(l->index.begin() + 1, l->index.end())) : Expr();
      }
      const Select* k = as<Select>(x);
      const Load* l = k ? as<Load>(k->yes) : nullptr;
      if (!l || !producer(fn_, l->buffer) || !is_step_before(l->index[0]) || !says_not_first(k->condition)) return {};
      return state(*l, k->no);
    });
  }
  bool is_step_before(const Expr& index) const {
    const auto f = affine_in(index, {step_});
    return f && f->coefficients[0] == 1 && is_const(simplify(f->rest), -1);
  }
  bool says_not_first(const Expr& condition) const {
    const auto first = as_const_int(simplify(substitute(condition, {{step_.get(), Expr(0)}})));
    if (!first || *first != 0) return false;
    if (steps_ == 1) return true;
    const auto later = as_const_int(simplify(condition, {{step_.get(), {1, steps_ - 1}}}));
    return later && *later != 0;
  }

  static bool is_over(const Expr& e, const std::vector<Axis>& axes) {
    bool only = true;
    walk(e, [&](const Expr& x) {
      const VarRef* v = as<VarRef>(x);
      only = only && (!v || std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return a.var == v->var; }));
      return only;
    });
    return only;
  }

  // The state that `l` reads; null if the initial value is not one of the state's elements'.
  Expr state(const Load& l, const Expr& initial) {
    const Buffer& b = l.buffer;
    State s{b, {}, {}, {}};
    const Exprs at(l.index.begin() + 1, l.index.end());
    VarMap to;
    for (size_t d = 0; d < at.size(); d++) {
      s.axes.push_back({make_var("i" + std::to_string(d)), b->shape[d + 1]});
      const VarRef* v = as<VarRef>(at[d]);
      if (v ? to.contains(v->var.get()) : b->shape[d + 1] != Dim(1)) return {};
      if (v) to[v->var.get()] = Expr(s.axes.back().var);
    }
    s.initial = substitute(initial, to);
    for (const State& known : states_) {
      if (known.of != b) continue;
      VarMap same;
      for (size_t d = 0; d < s.axes.size(); d++) same[s.axes[d].var.get()] = Expr(known.axes[d].var);
      return structurally_equal(substitute(s.initial, same), known.initial) ? load(known.value, at) : Expr();
    }
    if (!is_over(s.initial, s.axes)) return {};
    s.value = make_buffer(b->name + "_state", b->dtype, Shape(b->shape.begin() + 1, b->shape.end()));
    states_.push_back(s);
    return load(s.value, at);
  }

  // --- the loop
  static int64_t size_of(const Buffer& b) { return num_elements(static_dims(b->shape)); }

  // The step's text over the function's memory.
  Stmt all_steps(Scheduled& s) const {
    Stmt body = s.body;
    std::vector<Scheduled::View> views;
    std::map<const BufferDef*, Buffer> flat;  // this step's values
    for (const auto& v : s.views) {
      if (is_of_step(v.of))
        flat[v.of.get()] = v.flat;
      else
        views.push_back(v);
    }
    s.views = std::move(views);
    std::vector<Buffer> memory;
    auto scratch = [&](const std::string& name, const Buffer& b) {
      memory.push_back(make_buffer(name, b->dtype, {Dim(size_of(b))}, Scope::Workspace));
      return memory.back();
    };
    Stmts before, next;
    for (const State& state : states_) {
      const Buffer now = now_.at(state.of.get());
      const Buffer held = scratch(state.value->name, now);
      const auto view = flat.find(state.value.get());
      if (view != flat.end()) body = substitute_buffers(body, {{view->second.get(), held}});
      Buffer& fresh = flat.at(now.get());
      if (!is_output(state.of)) {
        const Buffer own = scratch(state.of->name, now);
        body = substitute_buffers(body, {{fresh.get(), own}});
        fresh = own;
      }
      before.push_back(start(s, state, held));
      const Var i = make_var("i");
      next.push_back(loop(i, size_of(now), store(held, {Expr(i)}, load(fresh, {Expr(i)})), ForKind::Vector));
    }
    body = seq({body, comment("what the next step reads", seq(std::move(next)))});
    for (const Buffer& b : fn_.outputs) {
      const Buffer& now = now_.at(b.get());
      const Buffer whole = make_buffer(b->name, b->dtype, {Dim(size_of(b))});
      auto row = std::make_shared<BufferDef>(*flat.at(now.get()));
      row->name = b->name + "_" + step_->name;
      body = alias(row, whole, Expr(step_) * Expr(size_of(now)),
                   substitute_buffers(body, {{flat.at(now.get()).get(), row}}));
      s.views.push_back({whole, b});
    }
    body = seq({comment("what the first step reads", seq(std::move(before))), loop(step_, steps_, body)});
    for (const Buffer& b : memory) body = alloc(b, body);
    return body;
  }

  // held = the initial value.
  Stmt start(Scheduled& s, const State& state, const Buffer& held) const {
    if (as_const_number(state.initial)) {
      const Var i = make_var("i");
      return loop(i, held->shape[0], store(held, {Expr(i)}, state.initial), ForKind::Vector);
    }
    Expr at = 0;
    for (const Axis& a : state.axes) at = at * Expr(a.extent) + Expr(a.var);
    Stmt body = store(held, {at}, state.initial);
    for (size_t d = state.axes.size(); d-- > 0;)
      body = loop(state.axes[d].var, state.axes[d].extent, body,
                  d + 1 == state.axes.size() ? ForKind::Vector : ForKind::Serial);
    return see_operands(body, held, s);
  }

  // Operands that are read as they are become flat ones.
  Stmt see_operands(const Stmt& body, const Buffer& held, Scheduled& s) const {
    BufferMap flat;
    Stmt seen = flatten_buffers(body, flat);
    seen = substitute_buffers(seen, {{flat.at(held.get()).get(), held}});
    for (size_t k = 0; k < fn_.inputs.size(); k++) {
      const Buffer& b = fn_.inputs[k];
      const auto it = flat.find(b.get());
      if (it == flat.end()) continue;
      const auto known = std::find_if(s.views.begin(), s.views.end(), [&](const auto& v) { return v.of == b; });
      if (known != s.views.end()) {
        seen = substitute_buffers(seen, {{it->second.get(), known->flat}});
        continue;
      }
      s.views.push_back({it->second, b});
      s.inputs.push_back(b);
      s.input_index.push_back(int(k));
    }
    return seen;
  }

  const TensorFn& fn_;
  int64_t steps_ = 0;
  Var step_;
  TensorFn step_fn_;
  std::vector<State> states_;
  std::map<const BufferDef*, Buffer> now_;  // looked up only
};

// Where no memory holds what is computed of all steps, a step computes what it needs of it: projections of its inputs.
TensorFn with_all_in_steps(const TensorFn& fn) {
  const auto group = std::find_if(fn.stages.begin(), fn.stages.end(), [](const Stage& s) { return s.scan >= 0; });
  if (group == fn.stages.end() || group->axes.empty() || !is_open(group->axes[0].extent.value)) return fn;
  TensorFn all = fn;
  for (Stage& s : all.stages)
    if (s.scan < 0 && !s.axes.empty() && s.axes[0].extent == group->axes[0].extent) s.scan = group->scan;
  return all;
}

}  // namespace

std::optional<Scheduled> schedule_recurrence(const TemplateArgs& a) {
  const TensorFn fn = with_all_in_steps(a.fn);
  if (fn.stages.empty() || fn.stages[0].scan < 0) return {};
  Recurrence r(fn);
  return r.match() ? r.schedule(a) : std::nullopt;
}

}  // namespace tc
