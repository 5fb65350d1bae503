#include "templates/match/split_axes.h"

#include "ir/axis_ranges.h"
#include "ir/loop/build.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "templates/canonical.h"

namespace tc {
namespace {

constexpr int kMostSplits = 64;

struct Split {
  size_t stage, axis;
  int64_t size;  // of the inner one
};

Exprs expressions(const Stage& s) {
  Exprs list = s.values;
  list.insert(list.end(), s.init.begin(), s.init.end());
  return list;
}

bool can_split(const Axis& a, int64_t size) { return size > 1 && size < a.extent.value && a.extent.value % size == 0; }

bool divides(const Expr& e) {
  const Apply* a = as<Apply>(e);
  return a && (a->op == Op::Div || a->op == Op::FloorDiv || a->op == Op::Mod || a->op == Op::FloorMod) &&
         is_int(e->dtype);
}

// An axis that an index of the stage divides.
std::optional<Split> divided(const Stage& s, size_t stage) {
  std::optional<Split> found;
  const auto visit = [&](const Expr& e) {
    const Apply* a = divides(e) ? as<Apply>(e) : nullptr;
    const VarRef* v = a ? as<VarRef>(a->args[0]) : nullptr;
    const auto size = v ? as_const_int(a->args[1]) : std::nullopt;
    for (size_t d = 0; size && !found && d < s.axes.size(); d++)
      if (s.axes[d].var == v->var && can_split(s.axes[d], *size)) found = Split{stage, d, *size};
    return !found;
  };
  for (const Expr& e : expressions(s)) walk(e, visit);
  return found;
}

// An axis of another stage's result, of which this one reads element v * size + w.
std::optional<Split> read_by_two(const TensorFn& fn, const Stage& s) {
  const std::vector<Var> vars = vars_of(s.axes);
  for (const Expr& e : expressions(s))
    for (const Load* l : loads_of(e)) {
      const Stage* from = producer(fn, l->buffer);
      for (size_t d = 0; from && d < l->index.size(); d++) {
        if (as<VarRef>(l->index[d])) continue;
        const auto f = affine_in(l->index[d], vars);
        if (!f || !is_const(f->rest, 0)) continue;
        for (size_t k = 0; k < vars.size(); k++) {
          const int64_t size = s.axes[k].extent.value;
          if (f->coefficients[k] == 1 && can_split(from->axes[d], size))
            return Split{size_t(from - fn.stages.data()), d, size};
        }
      }
    }
  return {};
}

std::optional<Split> next_split(const TensorFn& fn) {
  for (size_t i = fn.stages.size(); i-- > 0;)
    if (const auto found = divided(fn.stages[i], i)) return found;
  for (size_t i = fn.stages.size(); i-- > 0;)
    if (const auto found = read_by_two(fn, fn.stages[i])) return found;
  return {};
}

// Both elements of `list` at d.
template <class List, class Item>
void put_two(List& list, size_t d, Item outer, Item inner) {
  list[d] = std::move(outer);
  list.insert(list.begin() + std::ptrdiff_t(d) + 1, std::move(inner));
}

void rewrite_values(Stage& s, const std::function<Expr(const Expr&)>& f) {
  const Ranges ranges = ranges_of(s);
  for (auto* list : {&s.values, &s.init})
    for (Expr& e : *list)
      if (const Expr made = f(e); !made.same_as(e)) e = simplify(made, ranges);
}

// What an axis shorter than its divisor leaves is no division.
void simplify_divisions(Stage& s) {
  bool any = false;
  for (const Expr& e : expressions(s)) walk(e, [&](const Expr& x) { return any = any || divides(x), !any; });
  if (!any) return;
  const Ranges ranges = ranges_of(s);
  for (auto* list : {&s.values, &s.init})
    for (Expr& e : *list) e = simplify(e, ranges);
}

void split(TensorFn& fn, const Split& at) {
  Stage& s = fn.stages[at.stage];
  const Axis whole = s.axes[at.axis];
  const Axis outer{make_var(whole.var->name), Dim(whole.extent.value / at.size)},
      inner{make_var(whole.var->name), Dim(at.size)};
  put_two(s.axes, at.axis, outer, inner);
  const VarMap to = {{whole.var.get(), Expr(outer.var) * Expr(at.size) + Expr(inner.var)}};
  rewrite_values(s, [&](const Expr& e) { return substitute(e, to); });
  const Buffer old = s.outputs[0];
  auto made = std::make_shared<BufferDef>(*old);
  put_two(made->shape, at.axis, outer.extent, inner.extent);
  s.outputs[0] = made;
  for (Buffer& b : fn.outputs)
    if (b == old) b = made;
  for (Stage& reader : fn.stages) {
    const Ranges ranges = ranges_of(reader);
    rewrite_values(reader, [&](const Expr& e) {
      return rewrite(e, [&](const Expr& x) -> Expr {
        const Load* l = as<Load>(x);
        if (!l || l->buffer != old) return {};
        Exprs index = l->index;
        const Expr i = index[at.axis];
        put_two(index, at.axis, simplify(floor_div(i, Expr(at.size)), ranges),
                simplify(floor_mod(i, Expr(at.size)), ranges));
        return load(made, index);
      });
    });
  }
}

}  // namespace

TensorFn split_axes(TensorFn fn) {
  for (const Stage& s : fn.stages)
    if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1 || !is_static(s.outputs[0]->shape) ||
        !s.outputs[0]->strides.empty())
      return fn;
  for (Stage& s : fn.stages) simplify_divisions(s);
  for (int n = 0; n < kMostSplits; n++) {
    const auto at = next_split(fn);
    if (!at) break;
    split(fn, *at);
  }
  return fn;
}

}  // namespace tc
