#include "passes/program/live_function.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ir/loop/build.h"
#include "ir/loop/visit.h"
#include "ir/ops/top_k.h"
#include "passes/program/size_ends.h"

namespace tc {
namespace {

using List = std::vector<LiveAxis>;

/// Does it say that a run needs less of an axis than there is room for? Where it always needs nearly all, that is no matter.
bool is_part(const Expr& end, Dim extent) {
  const auto c = as_const_int(end);
  return c ? *c <= extent.value / 4 : has_symbol(end);
}

}  // namespace

List needed_by_both(const List& a, const List& b, const Ranges& ranges) {
  List list;
  for (const LiveAxis& x : a)
    for (const LiveAxis& y : b)
      if (x.axis == y.axis)
        if (const Expr end = larger(x.end, y.end, ranges)) list.push_back({x.axis, end});
  return list;
}

void drop_constant_ends(List& list) {
  std::erase_if(list, [](const LiveAxis& l) { return as_const_int(l.end).has_value(); });
}

void LiveFunction::need(const Buffer& b, const List& list) {
  const auto [it, first] = needed_.try_emplace(b.get(), list);
  if (!first) it->second = needed_by_both(it->second, list, symbols_);
}

const List* LiveFunction::of(const Buffer& b) const {
  const auto it = needed_.find(b.get());
  return it == needed_.end() ? nullptr : &it->second;
}

void LiveFunction::run() {
  for (size_t k = fn_.stages.size(); k-- > 0;) {
    const int scan = fn_.stages[k].scan;
    size_t first = k;
    while (scan >= 0 && first > 0 && fn_.stages[first - 1].scan == scan) first--;
    if (scan >= 0)
      steps(first, k + 1);
    else
      stage(fn_.stages[k]);
    k = first;
  }
}

// What a step reads of the one before is needed, too.
void LiveFunction::steps(size_t first, size_t last) {
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; round++) {
    const auto before = needed_;
    for (size_t k = last; k-- > first;) stage(fn_.stages[k]);
    const auto is_same = [&](const Buffer& b) {
      const auto was = before.find(b.get());
      const List *now = of(b), *then = was == before.end() ? nullptr : &was->second;
      return !now || (then && std::equal(now->begin(), now->end(), then->begin(), then->end(),
                                         [](const LiveAxis& x, const LiveAxis& y) {
                                           return x.axis == y.axis && structurally_equal(x.end, y.end);
                                         }));
    };
    bool same = true;
    for (size_t k = first; k < last; k++)
      same = same && std::all_of(fn_.stages[k].outputs.begin(), fn_.stages[k].outputs.end(), is_same);
    if (same) return;
  }
  for (size_t k = first; k < last; k++)
    for (const Buffer& b : fn_.stages[k].outputs) need(b, {});
  for (size_t k = last; k-- > first;) stage(fn_.stages[k]);
}

void LiveFunction::stage(const Stage& s) {
  bool needed = false;
  List list;
  for (const Buffer& b : s.outputs) {
    const List* of_output = of(b);
    if (!of_output) continue;
    list = needed ? needed_by_both(list, *of_output, symbols_) : *of_output;
    needed = true;
  }
  if (!needed) return;
  drop_constant_ends(list);
  Known known{{}, symbols_};
  for (const auto* axes : {&s.axes, &s.raxes})
    for (const Axis& a : *axes) known.ranges[a.var.get()] = {0, a.extent.value - 1};
  // Of a step's axes only what nothing else bounds: what it keeps of others is computed whole.
  const auto is_known = [&](const LiveAxis& l) { return s.scan < 0 || has_open_symbol(l.end, symbols_); };
  for (const LiveAxis& l : list)
    if (!s.nest && is_known(l) && size_t(l.axis) < s.axes.size())
      known.below.push_back({Expr(s.axes[size_t(l.axis)].var), l.end});
  for (const Exprs* values : {&s.values, &s.init})
    for (const Expr& e : *values)
      if (e) loads(e, known);
  if (s.nest && !sorted(s, list)) nest(s.nest, known, s.outputs.size() == 1 ? s.outputs[0] : Buffer(), list);
}

// What is sorted along an axis is needed along others as far as the results are.
bool LiveFunction::sorted(const Stage& s, const List& results) {
  const auto top = match_top_k(s);
  if (!top) return false;
  List list;
  for (const LiveAxis& l : results)
    if (l.axis != top->axis) list.push_back(l);
  need(top->x, list);
  // The heap of what comes first lies in the results, as large as it gets.
  for (const Buffer& b : s.outputs)
    if (of(b)) need(b, list);
  return true;
}

namespace {

/// Does the loop's variable say where, along an axis of the result, all is stored and read that the loop stores but for its own
/// buffers?
bool stores_at_own_index(const For& loop, const Buffer& result, size_t axis) {
  bool some = false, own = true;
  std::set<const BufferDef*> inside;
  const auto is_own = [&](const Exprs& index) {
    const VarRef* v = index.size() == result->shape.size() ? as<VarRef>(index[axis]) : nullptr;
    return v && v->var == loop.var;
  };
  walk(
      loop.body,
      [&](const Stmt& s) {
        if (const Alloc* a = as<Alloc>(s)) inside.insert(a->buffer.get());
        const Store* k = as<Store>(s);
        if (!k || inside.contains(k->buffer.get())) return own = own && !as<Intrin>(s) && !as<Alias>(s);
        some = true;
        return own = own && k->buffer == result && is_own(k->index);
      },
      [&](const Expr& e) {
        const Load* l = as<Load>(e);
        return own = own && (!l || l->buffer != result || is_own(l->index));
      });
  return some && own;
}

}  // namespace

// Loops that end at a count say which elements are read, and so do conditions, and those loops whose results are needed in part.
void LiveFunction::nest(const Stmt& s, const Known& known, const Buffer& result, const List& needed) {
  walk(
      s,
      [&](const Stmt& x) {
        const Let* k = as<Let>(x);
        const Expr named = k && k->value->dtype == DType::I64 ? end_of(k->value, known) : Expr();
        if (bool(named) && has_symbol(named)) {
          loads(k->value, known);
          nest(substitute(k->body, {{k->var.get(), k->value}}), known, result, needed);
          return false;
        }
        if (const If* k = as<If>(x)) {
          Known inside = known;
          learn(k->condition, inside);
          loads(k->condition, known);
          nest(k->then, inside, result, needed);
          if (k->otherwise) nest(k->otherwise, known, result, needed);
          return false;
        }
        const For* loop = as<For>(x);
        if (!loop) return true;
        Known inside = known;
        inside.ranges[loop->var.get()] = loop_range(*loop, known.ranges);
        const Expr end = is_const(loop->begin, 0) ? end_of(loop->extent, known) : Expr();
        const bool ends = bool(end) && has_symbol(end);
        for (const LiveAxis& l : needed)
          if (result && stores_at_own_index(*loop, result, size_t(l.axis)) &&
              !(ends && never_more(end, l.end, symbols_)))
            inside.below.push_back({Expr(loop->var), l.end});
        if (ends && std::none_of(inside.below.begin(), inside.below.end(), [&](const Known::Below& b) {
              const VarRef* v = as<VarRef>(b.index);
              return v && v->var == loop->var;
            }))
          inside.below.push_back({Expr(loop->var), end});
        loads(loop->begin, known);
        loads(loop->extent, known);
        nest(loop->body, inside, result, needed);
        return false;
      },
      [&](const Expr& e) {
        loads(e, known);
        return false;
      });
}

void LiveFunction::loads(const Expr& e, const Known& known) {
  walk(e, [&](const Expr& x) {
    if (const Select* k = as<Select>(x)) {
      Known inside = known;
      learn(k->condition, inside);
      loads(k->condition, known);
      loads(k->yes, inside);
      loads(k->no, known);
      return false;
    }
    if (const Apply* test = as<Apply>(x); test && test->op == Op::Index) {
      for (const Expr& a : test->args) tested(a, known);
      return false;
    }
    if (const Load* l = as<Load>(x)) need(l->buffer, read_by(*l, known));
    return true;
  });
}

List LiveFunction::read_by(const Load& l, const Known& known) const {
  List list;
  for (size_t a = 0; a < l.index.size(); a++)
    if (const Expr end = end_of(l.index[a] + Expr(1), known); bool(end) && is_part(end, l.buffer->shape.at(a)))
      list.push_back({int(a), end});
  return list;
}

// What decides whether an index is out of range: behind the sizes it could be anything. Only of a size without an upper bound
// nothing else can be computed, and plan_open_sizes sees to it that nothing else is read.
void LiveFunction::tested(const Expr& e, const Known& known, bool in_choice) {
  walk(e, [&](const Expr& x) {
    if (const Select* k = as<Select>(x)) {  // only what is chosen is tested
      Known inside{in_choice ? known.below : std::vector<Known::Below>(), known.ranges};
      learn(k->condition, inside);
      tested(k->condition, known, in_choice);
      tested(k->yes, inside, true);
      tested(k->no, known, in_choice);
      return false;
    }
    const Load* l = as<Load>(x);
    if (!l) return true;
    List list = read_by(*l, known);
    if (!in_choice) std::erase_if(list, [&](const LiveAxis& a) { return !has_open_symbol(a.end, symbols_); });
    need(l->buffer, list);
    return true;
  });
}

// i < count, count > 0, and what else an && says.
void LiveFunction::learn(const Expr& condition, Known& known) const {
  const Apply* a = as<Apply>(condition);
  if (!a) return;
  if (a->op == Op::Gt && is_const(a->args[1], 0) && a->args[0]->dtype == DType::I64)
    if (const Expr size = exactly(a->args[0]))
      if (const VarRef* v = as<VarRef>(size)) {
        Range& r = known.ranges[v->var.get()];
        r.min = std::max<int64_t>(r.min, 1);
      }
  if (a->op == Op::And)
    for (const Expr& e : a->args) learn(e, known);
  if (a->op == Op::Lt)
    if (const Expr end = end_of(a->args[1], known); bool(end) && has_symbol(end))
      known.below.push_back({a->args[0], end});
}

// An expression over the symbols that `e` is never above; null: not known.
Expr LiveFunction::end_of(const Expr& e, const Known& known) const {
  if (e->dtype != DType::I64) return {};
  const auto within = [&](const Ranges& sizes) {
    const SizeTerms terms{[&](const Expr& x) {
                            // The condition that stands nearest: what lies behind a fill has been told.
                            for (auto b = known.below.rbegin(); b != known.below.rend(); ++b)
                              if (structurally_equal(x, b->index)) return b->end - Expr(1);
                            if (const Load* l = as<Load>(x)) {
                              if (const auto it = sizes_.find(l->buffer.get()); it != sizes_.end()) return it->second;
                              const auto it = most_.find(l->buffer.get());
                              return it == most_.end() ? Expr() : it->second.most;
                            }
                            if (as_const_int(x)) return x;
                            const VarRef* v = as<VarRef>(x);
                            const auto r = v ? known.ranges.find(v->var.get()) : known.ranges.end();
                            return r == known.ranges.end() || r->second.max == INT64_MAX ? Expr() : Expr(r->second.max);
                          },
                          [&](const Expr& x) { return least(x, known.ranges) < 0; },
                          [&](const Expr& x) { return exactly(x); }, sizes};
    const Expr end = upper_bound(e, terms);
    return end ? if_short(end, sizes) : Expr();
  };
  // What a condition says of a size holds where something is read; an end is one for all sizes.
  const Expr here = within(known.ranges);
  return !here || interval(here, symbols_).min >= 0 ? here : within(symbols_);
}

Expr LiveFunction::with_sizes(const Expr& e) const {
  return rewrite(e, [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    const auto it = l ? sizes_.find(l->buffer.get()) : sizes_.end();
    return it == sizes_.end() ? Expr() : it->second;
  });
}

Expr LiveFunction::exactly(const Expr& e) const {
  const Expr sized = with_sizes(e);
  bool known = !has_other_variable(sized, symbols_);
  walk(sized, [&](const Expr& x) { return known = known && !as<Load>(x); });
  return known ? simplify(sized, symbols_) : Expr();
}

int64_t LiveFunction::least(const Expr& e, Ranges ranges) const {
  const Var from_front = make_var("p");
  ranges[from_front.get()] = {0, INT64_MAX};
  const Expr sized = rewrite(with_sizes(e), [&](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    const auto it = l ? most_.find(l->buffer.get()) : most_.end();
    return it != most_.end() && it->second.from_front ? Expr(from_front) : Expr();
  });
  return interval(sized, ranges).min;
}

void LiveFunction::bound_positions() {
  for (const Stage& s : fn_.stages) {
    const bool is_one = s.kind == Stage::Kind::Compute && s.outputs.size() == 1 && s.scan < 0 && !s.nest;
    if (!is_one || s.outputs[0]->dtype != DType::I64) continue;
    Known known{{}, symbols_};
    for (const Axis& a : s.axes) known.ranges[a.var.get()] = {0, a.extent.value - 1};
    const Expr end = end_of(s.values[0], known);
    if (bool(end) && has_symbol(end)) most_[s.outputs[0].get()] = {end, least(s.values[0], known.ranges) >= 0};
  }
}

std::optional<PositionBound> LiveFunction::bound_of(const Buffer& b) const {
  const auto it = most_.find(b.get());
  return it == most_.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace tc
