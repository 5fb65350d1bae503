#include "templates/fills.h"

#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {
namespace {

/// A choice between an operand's element and a number, by conditions that are the same along the innermost axis.
bool is_fill(const Stage& s, const Expr& value) {
  const Select* k = as<Select>(value);
  if (!k || s.axes.empty() || !as_const_number(k->no) || uses_var(k->condition, s.axes.back().var)) return false;
  return as<Load>(k->yes) || is_fill(s, k->yes);
}

/// Does `s` read all of `b` in order, one axis after the other?
bool reads_in_order(const Expr& value, const std::vector<Axis>& axes, const Buffer& b) {
  const Load* l = as<Load>(value);
  if (!l || l->buffer != b || l->index.size() != axes.size()) return false;
  for (size_t d = 0; d < axes.size(); d++) {
    const VarRef* v = as<VarRef>(l->index[d]);
    if (!v || v->var != axes[d].var) return false;
  }
  return true;
}

bool is_read(const Stage& s, const Buffer& b) {
  const auto reads = [&](const Expr& e) { return uses_buffer(e, b); };
  if (std::any_of(s.values.begin(), s.values.end(), reads) || std::any_of(s.init.begin(), s.init.end(), reads))
    return true;
  return s.kind == Stage::Kind::Nest;
}

/// The innermost element of what a fill chooses between.
Expr chosen(const Expr& value) {
  const Select* k = as<Select>(value);
  return k ? chosen(k->yes) : value;
}

/// Can the only reader of `b` compute it by itself?
bool takes_in(const Stage& s, const Buffer& b) {
  if (s.scan >= 0 || s.values.size() != 1) return false;
  if (s.kind == Stage::Kind::Compute) return is_fill(s, s.values[0]) && reads_in_order(chosen(s.values[0]), s.axes, b);
  if (s.kind != Stage::Kind::Reduce || !s.combiner.op || uses_buffer(s.init[0], b)) return false;
  std::vector<Axis> all = s.axes;
  all.insert(all.end(), s.raxes.begin(), s.raxes.end());
  return !s.raxes.empty() && reads_in_order(s.values[0], all, b);
}

}  // namespace

TensorFn with_fills_inside(const TensorFn& fn) {
  TensorFn all = fn;
  for (size_t k = 0; k < all.stages.size();) {
    const Stage fill = all.stages[k];
    const Buffer& b = fill.outputs[0];
    const bool is_result = std::find(all.outputs.begin(), all.outputs.end(), b) != all.outputs.end();
    const auto reads = [&](const Stage& s) { return is_read(s, b); };
    const auto reader = std::find_if(all.stages.begin(), all.stages.end(), reads);
    if (fill.kind != Stage::Kind::Compute || fill.scan >= 0 || is_result || !is_fill(fill, fill.values[0]) ||
        reader == all.stages.end() || std::any_of(reader + 1, all.stages.end(), reads) || !takes_in(*reader, b)) {
      k++;
      continue;
    }
    reader->values[0] = rewrite(reader->values[0], [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      if (!l || l->buffer != b) return {};
      VarMap to;
      for (size_t d = 0; d < l->index.size(); d++) to[fill.axes[d].var.get()] = l->index[d];
      return substitute(fill.values[0], to);
    });
    all.stages.erase(all.stages.begin() + std::ptrdiff_t(k));
  }
  return all;
}

}  // namespace tc
