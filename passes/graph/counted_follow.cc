// A stage keeps a count if every load of a counted tensor has, along each counted axis, an index of the stage itself, and
// nothing else looks at that index: each result then depends on one element along the axis, the one at the same index.
//   y[i, j] = x[i, j] + b[j]         x counted along 0   ->   y counted along 0
//   y[i, j] = sum(k) q[i, k] * k[j, k]   both along 0    ->   y counted along 0 and 1
//   y[j] = sum(i) x[i, j]            x along 0           ->   no: looks across
//   h[t, i] = f(x[t, i], h[t - 1, i])   x along 1        ->   h along 1; along 0 no
#include "passes/graph/counted_follow.h"

#include <algorithm>

#include "ir/loop/visit.h"

namespace tc {
namespace {

template <class F>
void each_load(const Stage& s, const F& f) {
  for (const Exprs* list : {&s.values, &s.init})
    for (const Expr& e : *list)
      if (e)
        walk(e, [&](const Expr& x) {
          if (const Load* l = as<Load>(x)) f(*l);
          return true;
        });
}

}  // namespace

bool reads_operands(const TensorFn& fn, const BufferDef* output) {
  const auto is_among = [&](const std::vector<Buffer>& list) {
    return std::any_of(list.begin(), list.end(), [&](const Buffer& b) { return b.get() == output; });
  };
  return is_among(fn.inputs) || std::any_of(fn.stages.begin(), fn.stages.end(), [&](const Stage& s) {
           bool reads = bool(s.nest);
           each_load(s, [&](const Load&) { reads = true; });
           return reads && is_among(s.outputs);
         });
}

std::set<int> CountedAxes::of(const BufferDef* b) const {
  const auto it = axes_.find(b);
  return it == axes_.end() ? std::set<int>() : it->second;
}

bool CountedAxes::follow(const TensorFn& fn) {
  // Stages of a scan read what later ones have made in the iteration before: until nothing is new.
  for (bool again = true; again;) {
    const auto before = axes_;
    if (!std::all_of(fn.stages.begin(), fn.stages.end(), [&](const Stage& s) { return spread(s); })) return false;
    again =
        axes_ != before && std::any_of(fn.stages.begin(), fn.stages.end(), [](const Stage& s) { return s.scan >= 0; });
  }
  return std::all_of(fn.stages.begin(), fn.stages.end(), [&](const Stage& s) { return keeps(s); });
}

bool CountedAxes::reads_counted(const Stage& s) const {
  bool found = false;
  each_load(s, [&](const Load& l) { found = found || axes_.count(l.buffer.get()) != 0; });
  if (s.nest)
    walk(
        s.nest, [](const Stmt&) { return true; },
        [&](const Expr& e) {
          if (const Load* l = as<Load>(e)) found = found || axes_.count(l->buffer.get()) != 0;
          return true;
        });
  return found;
}

/// The axes of the stage that are the indices along counted ones; nothing if some index there is another.
std::optional<std::set<int>> CountedAxes::axes_in(const Stage& s) const {
  std::set<int> axes;
  bool ok = true;
  each_load(s, [&](const Load& l) {
    for (const int counted : of(l.buffer.get())) {
      const VarRef* v = as<VarRef>(l.index.at(size_t(counted)));
      const auto it =
          std::find_if(s.axes.begin(), s.axes.end(), [&](const auto& axis) { return v && axis.var == v->var; });
      if (it == s.axes.end()) ok = false;
      if (ok) axes.insert(int(it - s.axes.begin()));
    }
  });
  return ok ? std::optional(axes) : std::nullopt;
}

/// Does the variable appear only as the index of counted axes?
bool CountedAxes::only_indexes(const Expr& e, const Var& v) const {
  bool ok = true;
  if (!e) return ok;
  walk(e, [&](const Expr& x) {
    if (const VarRef* r = as<VarRef>(x)) ok = ok && r->var != v;
    const Load* l = as<Load>(x);
    if (!l) return ok;
    const std::set<int> counted = of(l->buffer.get());
    for (size_t k = 0; k < l->index.size() && ok; k++) {
      const VarRef* index = as<VarRef>(l->index[k]);
      if (counted.count(int(k)) == 0 || !index) ok = only_indexes(l->index[k], v);
    }
    return false;
  });
  return ok;
}

bool CountedAxes::spread(const Stage& s) {
  if (!reads_counted(s)) return true;
  if (s.nest) return spread_nest(s);
  const auto axes = axes_in(s);
  if (!axes) return false;
  for (const Buffer& b : s.outputs) axes_[b.get()].insert(axes->begin(), axes->end());
  return true;
}

bool CountedAxes::keeps(const Stage& s) const {
  if (s.outputs.empty()) return true;
  for (const int axis : of(s.outputs[0].get()))
    for (const Exprs* list : {&s.values, &s.init})
      for (const Expr& e : *list)
        if (!only_indexes(e, s.axes[size_t(axis)].var)) return false;
  return true;
}

}  // namespace tc
