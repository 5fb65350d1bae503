#include "templates/cuda/flat_point.h"

#include "ir/loop/build.h"

namespace tc {

FlatPoint::FlatPoint(const std::vector<Axis>& axes, const Expr& number, const std::string& name) : flat(number) {
  if (axes.empty()) return;
  // "k" is an index in a tile.
  const Var v = make_var(axes.size() == 1 && axes[0].var->name != "k" ? axes[0].var->name : name);
  lets_.push_back({v, number});
  flat = Expr(v);
  if (axes.size() == 1) {
    at[axes[0].var.get()] = flat;
    return;
  }
  const VarMap values = point_at(axes, flat);
  for (size_t i = axes.size(); i-- > 0;) {
    const Var x = make_var(axes[i].var->name);
    lets_.push_back({x, values.at(axes[i].var.get())});
    at[axes[i].var.get()] = Expr(x);
  }
}

Stmt FlatPoint::wrap(Stmt body) const {
  for (size_t i = lets_.size(); i-- > 0;)
    if (uses_var(body, lets_[i].first)) body = let(lets_[i].first, lets_[i].second, body);
  return body;
}

VarMap joined(const std::vector<const VarMap*>& points) {
  VarMap all;
  for (const VarMap* p : points) all.insert(p->begin(), p->end());
  return all;
}

}  // namespace tc
