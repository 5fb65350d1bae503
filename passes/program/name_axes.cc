// name_axes: bias and ReLU behind a convolution run over oh, ow, oc, not over j, k, l.
//
// Elementwise operators know nothing of what their axes mean and call them i, j, k, l; contractions, windows and
// reductions do. Names flow forward from a stage to the stages that read it at the same point. Needs nothing; leaves
// the meaning as it is: names are hints for formulas, loops and comments.
#include "passes/program/name_axes.h"

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

bool is_generic(const Axis& a) { return a.var->name.size() == 1 && a.var->name[0] >= 'i' && a.var->name[0] <= 'p'; }

// Does the load read at exactly the point of `axes`?
bool same_point(const Load& l, const std::vector<Axis>& axes) {
  if (l.index.size() != axes.size()) return false;
  for (size_t i = 0; i < axes.size(); i++) {
    const VarRef* v = as<VarRef>(l.index[i]);
    const bool single = is_const(l.index[i], 0) && axes[i].extent == Dim(1);
    if (!single && (!v || v->var != axes[i].var)) return false;
  }
  return true;
}

// The named stage that `s` reads point by point, null if there is none.
const Stage* model_of(const Stage& s, const TensorFn& done) {
  const Stage* found = nullptr;
  walk(s.values[0], [&](const Expr& e) {
    const Load* l = as<Load>(e);
    if (!l || found || !same_point(*l, s.axes)) return true;
    const Stage* p = producer(done, l->buffer);
    if (p && p->kind != Stage::Kind::Nest && p->axes.size() == s.axes.size()) found = p;
    return true;
  });
  return found;
}

}  // namespace

TensorFn name_axes(const TensorFn& fn) {
  TensorFn r = fn;
  r.stages.clear();
  for (Stage s : fn.stages) {
    const Stage* model = s.kind == Stage::Kind::Compute && s.scan < 0 ? model_of(s, r) : nullptr;
    if (model) {
      VarMap renamed;
      for (size_t i = 0; i < s.axes.size(); i++) {
        if (!is_generic(s.axes[i])) continue;
        const Var v = make_var(model->axes[i].var->name, s.axes[i].var->dtype);
        renamed[s.axes[i].var.get()] = Expr(v);
        s.axes[i].var = v;
      }
      for (Expr& e : s.values) e = substitute(e, renamed);
    }
    r.stages.push_back(std::move(s));
  }
  return r;
}

}  // namespace tc
