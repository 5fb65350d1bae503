// Attention whose mask has a bound that is known at run time: finds the queries, keys, values and mask in the stages of the
// definition.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/max_lanes.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "ir/open_size.h"
#include "passes/analysis/inlined.h"
#include "passes/loop/vector_form.h"
#include "templates/canonical.h"
#include "templates/cpu/streaming_attention.h"
#include "templates/match/counted.h"
#include "templates/match/key_bounds.h"

namespace tc {
namespace {

constexpr int64_t kMostHeads = 16;  // that read keys together
constexpr int64_t kMostSize = 256;  // of a head, in registers
constexpr int64_t kFewQueries = 4;  // of a counted softmax: for more, tiles that memory holds are faster (attention.cc)

bool is_load_of(const Expr& e, const Buffer& b) {
  const Load* l = as<Load>(e);
  return l && l->buffer == b;
}

/// The sums and the maximum, in order.
struct Reductions {
  const Stage *products = nullptr, *top = nullptr, *total = nullptr, *result = nullptr;
};

std::optional<Reductions> reductions(const TensorFn& fn) {
  std::vector<const Stage*> list;
  for (const Stage& s : fn.stages) {
    if (s.kind == Stage::Kind::Nest || s.scan >= 0 || s.outputs.size() != 1) return {};
    if (s.kind == Stage::Kind::Reduce) list.push_back(&s);
  }
  constexpr Op kOps[] = {Op::Add, Op::Max, Op::Add, Op::Add};
  if (list.size() != 4 || fn.outputs.size() != 1) return {};
  for (size_t k = 0; k < 4; k++)
    if (list[k]->combiner.op != kOps[k] || list[k]->raxes.size() != 1 || list[k]->outputs[0]->dtype != DType::F32 ||
        list[k]->axes.size() != (k == 0 || k == 3 ? 4u : 3u))
      return {};
  return Reductions{list[0], list[1], list[2], list[3]};
}

/// a * b of which only one reads `v`; the other first.
bool factors(const Expr& e, const Var& v, Expr& without, Expr& with) {
  const Apply* m = as<Apply>(e);
  if (!m || m->op != Op::Mul) return false;
  without = m->args[0];
  with = m->args[1];
  if (uses_var(without, v)) std::swap(without, with);
  return !uses_var(without, v) && uses_var(with, v);
}

/// x of the first max(m, x) in `e`; null if there is none.
Expr compared_with(const Expr& e, const Expr& m) {
  Expr other;
  walk(e, [&](const Expr& x) {
    const Apply* a = as<Apply>(x);
    if (!other && a && a->op == Op::Max && structurally_equal(a->args[0], m)) other = a->args[1];
    return !other;
  });
  return other;
}

/// What tc.counted_softmax makes of rows without a number, if it stands between the scores and their weights over `axes`, `end` being
/// the count.
std::optional<StreamedAttention::None> counted_softmax(const TensorFn& fn, const Reductions& r, const Expr& weight,
                                                       const std::vector<Axis>& axes, const Expr& end) {
  const auto summed = first_terms(r.total->values[0], zero(DType::F32));
  const Load* terms = summed ? as<Load>(summed->value) : nullptr;
  const Stage* e = terms ? producer(fn, terms->buffer) : nullptr;
  if (!e) return {};
  const auto found = match_counted_softmax(*r.top, *e, *r.total, inlined(fn, weight, {terms->buffer}), axes);
  if (!found || !structurally_equal(found->count, end)) return {};
  return found->or_zero ? StreamedAttention::None::ZeroIfNaN : StreamedAttention::None::NaN;
}

/// Axes of one element: an index along them is 0, or the axis.
VarMap unit_axes(const TensorFn& fn) {
  VarMap once;
  for (const Stage& s : fn.stages)
    for (const auto* list : {&s.axes, &s.raxes})
      for (const Axis& a : *list)
        if (a.extent == Dim(1)) once[a.var.get()] = Expr(0);
  return once;
}

/// The softmax between the scores and the weights of the values, as the definition writes it.
bool is_softmax(const TensorFn& fn, const Reductions& r, const Expr& weight, const Exprs& at, Expr& sink) {
  const Load* terms = as<Load>(r.total->values[0]);
  const Stage* e = terms ? producer(fn, terms->buffer) : nullptr;
  if (!e || e->kind != Stage::Kind::Compute || e->axes.size() != 4) return false;
  const VarMap once = unit_axes(fn);
  const auto equal = [&](const Expr& x, const Expr& y) {
    return structurally_equal(substitute(x, once), substitute(y, once));
  };
  const Exprs row = {refs(e->axes)[0], refs(e->axes)[1], refs(e->axes)[2]};
  VarMap to;
  for (size_t k = 0; k < 3; k++) to[r.top->axes[k].var.get()] = row[k];
  to[r.top->raxes[0].var.get()] = Expr(e->axes[3].var);
  const Expr m = load(r.top->outputs[0], row), own_sink = compared_with(e->values[0], m);
  const Expr shift = shift_of(own_sink ? max(m, own_sink) : m);
  if (!equal(e->values[0], exp(substitute(r.top->values[0], to) - shift))) return false;
  VarMap to_row;
  for (size_t k = 0; k < 3; k++) to_row[e->axes[k].var.get()] = at[k];
  if (own_sink) sink = substitute(own_sink, to_row);
  std::vector<Axis> summed = r.total->axes;
  summed.push_back(r.total->raxes[0]);
  if (!reads_own(terms->index, summed)) return false;
  Expr s = load(r.total->outputs[0], {at[0], at[1], at[2]});
  if (sink) s = s + exp(sink - substitute(shift, to_row));
  const Expr inverse = select(eq(s, zero(DType::F32)), make_const(DType::F32, 1), s);
  return equal(inlined(fn, weight, {terms->buffer}), load(terms->buffer, at) / inverse);
}

bool is_half_or_single(DType t) { return is_half(t) || t == DType::F32; }

/// Which of the scores' axes (batch, head, query) each axis of the result is; 3 for that of the values.
std::optional<std::vector<size_t>> roles_of(const Reductions& r) {
  const auto& axes = r.result->axes;
  const Load* weights = nullptr;
  for (const Load* l : loads_of(r.result->values[0])) {
    const VarRef* last = l->index.size() == 4 ? as<VarRef>(l->index[3]) : nullptr;
    if (last && last->var == r.result->raxes[0].var) weights = l;
  }
  if (!weights) return {};
  std::vector<size_t> roles(axes.size(), axes.size());
  std::vector<bool> taken(axes.size(), false);
  const auto take = [&](size_t role, auto&& is_it) {
    for (size_t k = 0; k < axes.size(); k++) {
      if (taken[k] || !is_it(axes[k])) continue;
      taken[k] = true;
      roles[k] = role;
      return true;
    }
    return false;
  };
  for (size_t role = 0; role < 3; role++)
    if (const VarRef* v = as<VarRef>(weights->index[role]))
      if (!take(role, [&](const Axis& a) { return a.var == v->var; })) return {};
  // An axis of one element is at 0, and any other one of one element.
  for (size_t role = 0; role < 3; role++)
    if (!as<VarRef>(weights->index[role]) &&
        !(is_const(weights->index[role], 0) && take(role, [](const Axis& a) { return a.extent == Dim(1); })))
      return {};
  take(3, [](const Axis&) { return true; });
  return roles;
}

/// The element of `b` that `e` reads, if it is one; null: several, or none.
const Load* only_read(const Expr& e, const Buffer& b) {
  const Load* only = nullptr;
  bool one = true;
  for (const Load* l : loads_of(e)) {
    if (l->buffer != b) continue;
    one = one && (!only || std::equal(l->index.begin(), l->index.end(), only->index.begin(), structurally_equal));
    only = l;
  }
  return one ? only : nullptr;
}

/// What becomes of the result on the way to the output, `value` over the axes of the queries; false where no vectors compute it.
bool take_after(const Expr& value, const Buffer& result, StreamedAttention& s) {
  if (value->dtype != DType::F32) return false;
  s.own = make_buffer("own", DType::F32, {s.value_d.extent});
  s.after = rewrite(value,
                    [&](const Expr& x) { return is_load_of(x, result) ? load(s.own, {Expr(s.value_d.var)}) : Expr(); });
  return has_vector_form(s.after, s.value_d.var, false);
}

/// Where that is where the output has the result's axes in another order.
bool find_permuted(const TensorFn& fn, const Reductions& r, const Stage& last, const Exprs& at, StreamedAttention& s) {
  const Expr value = inlined(fn, last.values[0], {r.result->outputs[0]});
  const Load* l = only_read(value, r.result->outputs[0]);
  if (!l || last.axes.size() != at.size()) return false;
  s.out_index.assign(at.size(), Expr(0));
  for (size_t k = 0; k < at.size(); k++) {
    const VarRef* v = as<VarRef>(l->index[k]);
    const auto axis =
        std::find_if(last.axes.begin(), last.axes.end(), [&](const Axis& a) { return v && a.var == v->var; });
    if (axis != last.axes.end())
      s.out_index[size_t(axis - last.axes.begin())] = at[k];
    else if (r.result->axes[k].extent != Dim(1))
      return false;
  }
  if (!structurally_equal(s.out_index.back(), Expr(s.value_d.var))) return false;
  VarMap to;
  for (size_t k = 0; k < last.axes.size(); k++) to[last.axes[k].var.get()] = s.out_index[k];
  return as<Load>(value) || take_after(substitute(value, to), r.result->outputs[0], s);
}

/// Where an element of the result, `at` by its axes, lies in the output.
bool find_output(const TensorFn& fn, const Reductions& r, const Exprs& at, StreamedAttention& s) {
  s.out_index = at;
  if (fn.outputs[0] == r.result->outputs[0]) return structurally_equal(at.back(), Expr(s.value_d.var));
  const Stage* last = producer(fn, fn.outputs[0]);
  if (last && last->kind == Stage::Kind::Compute && find_permuted(fn, r, *last, at, s)) return true;
  if (!last || last->kind != Stage::Kind::Compute || last->axes.size() != 3) return false;
  // The heads' values lie side by side along one axis.
  const Expr merged = Expr(s.h.var) * Expr(s.value_d.extent) + Expr(s.value_d.var),
             joined = inlined(fn, last->values[0], {r.result->outputs[0]});
  VarMap to;
  s.out_index.clear();
  for (const Axis& a : last->axes) {
    Expr role = a.extent == Dim(1) ? Expr(0) : merged;
    for (const Load* l : loads_of(joined))
      for (size_t k = 0; k < l->index.size() && l->buffer == r.result->outputs[0]; k++)
        if (const VarRef* v = as<VarRef>(l->index[k]); v && v->var == a.var) role = at[k];
    to[a.var.get()] = role;
    s.out_index.push_back(role);
  }
  if (!uses_var(s.out_index.back(), s.value_d.var)) return false;
  const Expr value = substitute(joined, to);
  Expr result = value;
  for (const Cast* c = as<Cast>(result); c; c = as<Cast>(result)) {
    s.rounded.insert(s.rounded.begin(), result->dtype);
    result = c->value;
  }
  const Load* l = only_read(result, r.result->outputs[0]);
  if (!l) return false;
  if (!as<Load>(result)) {
    if (!s.rounded.empty() || !take_after(result, r.result->outputs[0], s)) return false;
  }
  if (s.rounded.size() > 2 || !std::all_of(s.rounded.begin(), s.rounded.end(), is_half_or_single)) return false;
  Ranges ranges;
  const Axis* axes[] = {&s.b, &s.h, &s.i, &s.value_d};
  for (const Axis* a : axes) ranges[a->var.get()] = {0, a->extent.value - 1};
  for (size_t k = 0; k < 4; k++)
    if (r.result->axes[k].extent.value > 1 && !structurally_equal(simplify(l->index[k], ranges), at[k])) return false;
  return true;
}

/// As many heads as read the same keys and values.
void find_group(StreamedAttention& s) {
  const int64_t heads = s.h.extent.value;
  for (int64_t n = std::min(heads, kMostHeads); n > 1; n--) {
    if (heads % n != 0) continue;
    const Var g = make_var("g"), own = make_var("own");
    const Ranges ranges = {{g.get(), {0, heads / n - 1}}, {own.get(), {0, n - 1}}};
    const auto reads_own = [&](const Expr& e) {
      return uses_var(simplify(substitute(e, {{s.h.var.get(), Expr(g) * Expr(n) + Expr(own)}}), ranges), own);
    };
    if (reads_own(s.k) || reads_own(s.v)) continue;
    s.group = n;
    return;
  }
}

}  // namespace

std::optional<StreamedAttention> match_streaming_attention(const TemplateArgs& a) {
  const auto r = a.options.strict_fp ? std::nullopt : reductions(a.fn);
  if (!r) return {};
  StreamedAttention s;
  const auto& axes = r->products->axes;
  s.b = axes[0], s.h = axes[1], s.i = axes[2], s.j = axes[3], s.d = r->products->raxes[0];
  if (!factors(inlined(a.fn, r->products->values[0], {}), s.j.var, s.q, s.k) || uses_var(s.k, s.i.var)) return {};
  // the score, over the axes of the products
  VarMap to;
  for (size_t k = 0; k < 3; k++) to[r->top->axes[k].var.get()] = Expr(axes[k].var);
  to[r->top->raxes[0].var.get()] = Expr(s.j.var);
  bool plain = true;
  s.score = rewrite(substitute(inlined(a.fn, r->top->values[0], {r->products->outputs[0]}), to), [&](const Expr& e) {
    if (!is_load_of(e, r->products->outputs[0])) return Expr();
    plain = plain && reads_own(as<Load>(e)->index, axes);
    return Expr(s.dot);
  });
  const Select* masked = as<Select>(s.score);
  if (!plain || !masked || !structurally_equal(masked->no, lowest(DType::F32))) return {};
  const KeyBounds bounds = key_bounds(masked->condition, s.j.var);
  const Expr rest = bounds.rest;
  s.ends = bounds.ends;
  s.begins = bounds.begins;
  s.score = rest ? select(rest, masked->yes, masked->no) : masked->yes;
  // the values
  const auto roles = roles_of(*r);
  if (!roles) return {};
  VarMap from;
  Exprs at;
  for (size_t k = 0; k < 4; k++) {
    const size_t role = (*roles)[k];
    const Axis& own = r->result->axes[k];
    if (role == 3) s.value_d = own;
    at.push_back(Expr(role == 3 ? own.var : axes[role].var));
    if (role < 3) from[own.var.get()] = at.back();
  }
  from[r->result->raxes[0].var.get()] = Expr(s.j.var);
  Expr weight, product = substitute(r->result->values[0], from);
  const auto first = first_terms(product, zero(DType::F32));
  if (first) {
    product = first->value;
    const auto is_end = [&](const Expr& e) { return structurally_equal(e, first->end); };
    if (first->v != s.j.var || std::none_of(s.ends.begin(), s.ends.end(), is_end)) return {};
  }
  if (!factors(product, s.value_d.var, weight, s.v)) return {};
  s.v = inlined(a.fn, s.v, {});
  const auto none = first && s.ends.size() == 1 ? counted_softmax(a.fn, *r, weight, axes, s.ends[0]) : std::nullopt;
  if (none) {
    const bool in_tiles = s.i.extent.value > kFewQueries && !is_open(s.j.extent.value);
    if (bool(rest) || !s.begins.empty() || in_tiles) return {};
    s.none = *none;
  } else if (!is_softmax(a.fn, *r, weight, refs(axes), s.sink)) {
    return {};
  }
  if (uses_var(s.v, s.i.var) || !find_output(a.fn, *r, at, s)) return {};
  // Bounds that are numbers are known to other templates, too.
  const bool open = std::any_of(s.ends.begin(), s.ends.end(), [](const Expr& e) {
    bool loads = false;
    walk(e, [&](const Expr& x) { return loads = loads || as<Load>(x), true; });
    return loads;
  });
  const int64_t size = s.d.extent.value, width = s.value_d.extent.value;
  const bool whole = size % kMaxLanes == 0 && width % kMaxLanes == 0;
  if (!open || (!whole && !is_open(s.j.extent.value)) || width > kMostSize) return {};
  if (!has_vector_form(s.q, s.d.var, false) || !has_vector_form(s.k, s.d.var, false) ||
      !has_vector_form(s.v, s.value_d.var, false))
    return {};
  find_group(s);
  return s;
}

}  // namespace tc
