// Recognises sums of products and classifies their axes by arithmetic on load offsets.
//
// Products of bytes are sums of (i32(x) - z) * (i32(w) - zw). The weights are known and are packed as i8. What the zero
// point z adds is the same for all sums of a column and is taken away from what they start with (contraction_bytes.cc).
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/conditions.h"
#include "ir/loop/simplify.h"
#include "ir/loop/visit.h"
#include "templates/cpu/contraction.h"
#include "templates/cpu/lanes.h"
#include "templates/match/axes.h"
#include "templates/match/counted.h"
#include "templates/zero_point.h"

namespace tc {
namespace {

bool reads_axis(const Expr& e, const Var& v) {
  for (const Load* l : loads_of(e))
    for (const Expr& i : l->index)
      if (uses_var(i, v)) return true;
  return false;
}

std::vector<Var> all_vars(const Canonical& c) {
  std::vector<Var> v = vars_of(c.axes);
  for (const Axis& r : c.raxes) v.push_back(r.var);
  return v;
}

// The axis of unit stride in the result.
std::optional<Axis> vector_axis(const Canonical& c) {
  const auto at = offset_of(c.out_index, vars_of(c.axes));
  if (!at) return {};
  for (const Axis& a : c.axes)
    if (at->of(a.var) == 1) return a;
  return {};
}

bool contains(const Expr& e, const Expr& node) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    found = found || x.same_as(node);
    return !found;
  });
  return found;
}

// epilogue = f(sum + bias[n]): the sum may start from the bias. What is added to a single row may be a residual, whose memory the
// result can take over if it is read as it is written: it is no bias unless it is known.
void start_from_bias(Contraction& m, const TemplateArgs& a) {
  const Expr acc = [&] {
    Expr found;
    walk(m.c.epilogue, [&](const Expr& x) {
      if (const Load* l = as<Load>(x); l && l->buffer == m.c.reduced) found = x;
      return !found;
    });
    return found;
  }();
  if (!acc || !as_const_number(m.start) || *as_const_number(m.start) != 0) return;
  Expr bias, sum;
  walk(m.c.epilogue, [&](const Expr& x) {
    const Apply* k = as<Apply>(x);
    if (k && k->op == Op::Add && (k->args[0].same_as(acc) || k->args[1].same_as(acc))) {
      sum = x;
      bias = k->args[0].same_as(acc) ? k->args[1] : k->args[0];
    }
    return !sum;
  });
  if (!sum || contains(bias, acc) || (m.rows.empty() && !is_constant(bias, a))) return;
  for (const Axis& r : m.rows)
    if (uses_var(bias, r.var)) return;
  const Expr biased = load(m.c.reduced, {});
  const Expr epilogue = rewrite(m.c.epilogue, [&](const Expr& x) { return x.same_as(sum) ? biased : Expr(); });
  if (contains(epilogue, acc)) return;
  m.start = bias;
  m.c.epilogue = epilogue;
}

// The same factor of the product before buffers were made flat.
Expr shaped_factor(const Canonical& c, bool second) {
  const Apply* k = as<Apply>(c.shaped_value);
  return k && k->op == Op::Mul ? k->args[second ? 1 : 0] : Expr();
}

// No axis of the results: there is one column.
bool is_lone(const Axis& n) { return n.extent.is_const() && n.extent.value == 1; }

struct Factors {
  Expr p, q, q_shaped, p_zero, q_zero;
};
std::optional<Factors> factors(const Canonical& c, const Axis& n) {
  const Apply* k = as<Apply>(c.value);
  if (!k || k->op != Op::Mul) return {};
  const bool first = reads_axis(k->args[0], n.var), second = reads_axis(k->args[1], n.var);
  if (first == second) return {};
  return Factors{k->args[second ? 0 : 1], k->args[second ? 1 : 0], shaped_factor(c, second), {}, {}};
}

// Of a sum that is the only column: weights that are known, which no axis of the results reads.
std::optional<Factors> lone_factors(const Canonical& c, const TemplateArgs& a) {
  const Apply* k = as<Apply>(c.value);
  if (!k || k->op != Op::Mul) return {};
  const auto known = [&](int i) { return is_constant(k->args[size_t(i)], a) && !uses_any(k->args[size_t(i)], c.axes); };
  if (known(0) == known(1)) return {};
  const bool second = known(1);
  return Factors{k->args[second ? 0 : 1], k->args[second ? 1 : 0], shaped_factor(c, second), {}, {}};
}

// The half that e widens, or e.
Expr half_of(const Expr& e) {
  const Cast* k = as<Cast>(e);
  return k && e->dtype == DType::F32 && is_half(k->value->dtype) ? k->value : e;
}

// The left factor becomes its load, the right one, as it is packed, a value of type i8: the weights, less 128 if they
// have no sign. What their zero point is beyond that stays.
std::optional<Factors> byte_factors(const Canonical& c, const Axis& n, const TemplateArgs& a) {
  auto f = is_lone(n) ? lone_factors(c, a) : factors(c, n);
  if (!f || !f->q_shaped || !is_constant(f->q, a)) return {};
  const ZeroPointForm p = zero_point_form(f->p), q = zero_point_form(f->q), shaped = zero_point_form(f->q_shaped);
  if (!p.x || !q.x || !shaped.x) return {};
  if (p.zero.get() && (uses_any(p.zero, c.axes) || uses_any(p.zero, c.raxes))) return {};
  if (q.zero.get() && uses_any(q.zero, c.raxes)) return {};
  const int64_t middle = q.x->dtype == DType::U8 ? 128 : 0;
  const Expr zero = q.zero ? q.zero : make_int(DType::I32, 0), packed = cast(DType::I32, shaped.x);
  Expr rest = zero - make_int(DType::I32, middle);
  if (const auto number = number_of(zero))
    rest = *number == double(middle) ? Expr() : make_int(DType::I32, int64_t(*number) - middle);
  const Expr shifted = middle == 0 ? packed : packed - make_int(DType::I32, middle);
  return Factors{p.x, f->q, cast(DType::I8, shifted), p.zero, rest};
}

void sort_by_stride(std::vector<Axis>& axes, const Offset& at) {
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& a, const Axis& b) { return at.of(a.var) > at.of(b.var); });
}

// Are all operands, and what becomes of them, of type t? But those that are computed with while compiling; constant halves, which
// widen as they are read; and results that are halves.
bool is_sum_of(DType t, const TemplateArgs& a, bool typed_constants) {
  const Canonical& c = *a.canonical;
  if (c.combine != Op::Add || c.raxes.empty() || c.value->dtype != t) return false;
  const bool singles = t == DType::F32;
  if (c.out->dtype != t && !(singles && is_half(c.out->dtype))) return false;
  const Select* ended = as<Select>(c.value);
  for (const Load* l : loads_of(ended ? ended->yes : c.value))
    if (l->buffer->dtype != t &&
        !((typed_constants || (singles && is_half(l->buffer->dtype))) && is_constant(load(l->buffer, l->index), a)))
      return false;
  return true;
}

}  // namespace

namespace {

/// Axes whose rows may end early, and which are long enough that a tile which ends with them wastes little.
std::vector<Var> open_rows(const TemplateArgs& a) {
  constexpr int64_t kLong = 24;
  std::vector<Var> list;
  const std::vector<Axis>& axes = a.fn.stages.back().axes;
  for (const int axis : a.options.open_axes)
    if (size_t(axis) < axes.size() && axes[size_t(axis)].extent.value >= kLong) list.push_back(axes[size_t(axis)].var);
  return list;
}

// How the right factor is read, and its index; null if no loop can read it. The index of one that is packed is 0.
std::optional<Expr> right_factor(Contraction& m, const Factors& f, const TemplateArgs& a) {
  if (bool(f.q_shaped) && is_constant(f.q, a)) {
    m.right = Contraction::Right::Packed;
    m.q_value = half_of(f.q_shaped);
    for (const Axis& x : m.outer)
      if (reads_axis(f.q, x.var)) m.q_outer.push_back(x);
    m.q_k = m.k;
    return Expr(0);
  }
  const Load* q = as<Load>(f.q);
  const auto at = q ? offset_of(q->index[0], all_vars(m.c)) : std::nullopt;
  if (!at) return {};
  m.right = at->of(m.n.var) == 1 ? Contraction::Right::Direct : Contraction::Right::Repacked;
  m.q = q->buffer;
  return q->index[0];
}

/// Of select(k < count, term, 0), k the only axis of the sum: c becomes the sum of all terms, the result how many there are.
Expr take_end(Canonical& c) {
  const auto first = first_terms(c.value, zero(c.value->dtype)),
             shaped = first_terms(c.shaped_value, zero(c.value->dtype));
  if (!first || !shaped || c.raxes.size() != 1 || first->v != c.raxes[0].var) return {};
  const Expr end = first->end;
  if (uses_any(end, c.axes) || uses_any(end, c.raxes)) return {};
  c.value = first->value;
  c.shaped_value = shaped->value;
  return max(min(end, Expr(c.raxes[0].extent)), Expr(0));
}

/// low <= e, or e < high, with e of one axis of the results and one of the sum.
bool add_bound(const Canonical& c, const Expr& test, std::vector<TapRange>& ranges) {
  const Apply* a = as<Apply>(test);
  if (!a || a->op < Op::Lt || a->op > Op::Ge) return false;
  const auto f = affine_in(a->args[0] - a->args[1], all_vars(c));
  const auto rest = f ? as_const_int(f->rest) : std::nullopt;
  if (!rest) return false;
  // sign * (row_step * row + k_step * k) + rest, compared with 0
  std::vector<std::pair<Var, int64_t>> rows, ks;
  for (size_t i = 0; i < f->coefficients.size(); i++)
    if (f->coefficients[i] != 0) (i < c.axes.size() ? rows : ks).push_back({all_vars(c)[i], f->coefficients[i]});
  if (rows.size() != 1 || ks.size() != 1 || (rows[0].second > 0) != (ks[0].second > 0)) return false;
  const int64_t sign = rows[0].second > 0 ? 1 : -1;
  TapRange r{rows[0].first, ks[0].first, sign * rows[0].second, sign * ks[0].second, INT64_MIN, INT64_MAX};
  const bool less = a->op == Op::Lt || a->op == Op::Le, equal = a->op == Op::Le || a->op == Op::Ge;
  if (less == (sign > 0))
    r.end = -sign * *rest + (equal ? 1 : 0);
  else
    r.begin = -sign * *rest + (equal ? 0 : 1);
  for (TapRange& known : ranges) {
    if (known.row != r.row || known.k != r.k || known.row_step != r.row_step || known.k_step != r.k_step) continue;
    known.begin = std::max(known.begin, r.begin);
    known.end = std::min(known.end, r.end);
    return true;
  }
  ranges.push_back(r);
  return true;
}

/// Of select(conditions, x, 0): x, and the ranges in which it is read. Null for others.
Expr take_ranges(const Canonical& c, const Expr& p, std::vector<TapRange>& ranges) {
  const Select* k = as<Select>(p);
  if (!k || as_const_number(k->no) != 0.0) return {};
  Exprs tests;
  conjuncts(k->condition, tests);
  for (size_t i = tests.size(); i-- > 0;)
    if (!add_bound(c, tests[i], ranges)) return {};
  const bool closed = std::all_of(ranges.begin(), ranges.end(),
                                  [](const TapRange& r) { return r.begin != INT64_MIN && r.end != INT64_MAX; });
  return closed ? k->yes : Expr();
}

/// Are they of whole axes, and by rows beside which there are others?
bool fit(const std::vector<TapRange>& ranges, const Contraction& m) {
  const auto has = [](const std::vector<Axis>& axes, const Var& v) {
    return std::any_of(axes.begin(), axes.end(), [&](const Axis& x) { return x.var == v; });
  };
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](const TapRange& r) { return has(m.rows, r.row) && m.rows.size() > 1 && has(m.k, r.k); });
}

std::optional<Contraction> match(const TemplateArgs& a, bool bytes, bool in_ranges = false) {
  Canonical c = *a.canonical;
  const Expr end = bytes ? Expr() : take_end(c);
  const bool lone = bytes && a.few_columns && lone_factors(c, a).has_value();
  const auto n = lone ? Axis{make_var("column"), Dim(1)} : vector_axis(c);
  if (!n || (!lone && n->extent.value < (a.few_columns ? 2 : 4))) return {};
  auto f = bytes ? byte_factors(c, *n, a) : factors(c, *n);
  if (!f) return {};
  std::vector<TapRange> ranges;
  Expr inside;
  if (in_ranges && !as<Load>(f->p)) {
    const Expr x = take_ranges(c, f->p, ranges);
    if (!x) return {};
    inside = as<Select>(f->p)->condition;
    f->p = x;
  }
  if (!as<Load>(f->p)) return {};
  const auto p_at = offset_of(as<Load>(f->p)->index[0], all_vars(c));
  if (!p_at) return {};

  Contraction m;
  m.c = c;
  m.p = as<Load>(f->p)->buffer;
  m.n = *n;
  m.start = c.init;
  m.bytes = bytes;
  m.p_zero = f->p_zero;
  m.q_zero = f->q_zero;
  for (const Axis& x : c.axes) {
    if (x.var == n->var) continue;
    if (reads_axis(f->q, x.var))
      m.outer.push_back(x);
    else if (p_at->of(x.var) != 0)
      m.rows.push_back(x);
    else
      return {};
  }
  m.k = c.raxes;
  if (bytes || !a.options.strict_fp) sort_by_stride(m.k, *p_at);
  if (!has_stored_form(m.c.epilogue, c.out->dtype, n->var) || !has_vector_form(m.start, n->var)) return {};
  if (m.q_zero.get() && (!has_vector_form(m.q_zero, n->var) || uses_any(m.q_zero, m.rows))) return {};
  if (bytes || !a.options.strict_fp) start_from_bias(m, a);

  Expr p_index = as<Load>(f->p)->index[0];
  const std::optional<Expr> q_at = right_factor(m, *f, a);
  if (!q_at || (bool(end) && m.right == Contraction::Right::Packed)) return {};
  m.k_end = end;
  Expr q_index = *q_at;
  std::vector<Expr*> values = {&m.c.epilogue, &m.start}, indices = {&p_index, &m.c.out_index};
  if (m.q) indices.push_back(&q_index);
  std::vector<Expr*> whole;
  if (inside) whole.push_back(&inside), values.push_back(&inside);
  merge_axes(m.rows, values, indices, open_rows(a));
  if (m.right != Contraction::Right::Packed) merge_axes(m.outer, values, indices);
  std::vector<Expr*> summed = {&p_index};
  if (m.q) summed.push_back(&q_index);
  merge_axes(m.k, whole, summed);
  m.ranges = ranges;
  if (!fit(ranges, m)) return {};

  std::vector<Var> vars = {n->var};
  for (const auto* l : {&m.outer, &m.rows, &m.k})
    for (const Axis& x : *l) vars.push_back(x.var);
  m.p_at = *offset_of(p_index, vars);
  m.q_at = *offset_of(q_index, vars);
  if (!m.rows.empty() && !offset_of(m.c.out_index, vars)) return {};
  // Without rows each element of the matrix is used once: a copy of it costs more than it saves.
  if (m.right == Contraction::Right::Repacked && m.rows.empty()) return {};
  return m;
}

}  // namespace

std::optional<Contraction> match_contraction(const TemplateArgs& a, bool typed_constants, bool in_ranges) {
  if (!a.canonical || !a.canonical->value || !is_sum_of(DType::F32, a, typed_constants)) return {};
  return match(a, false, in_ranges);
}

std::optional<Contraction> match_double_contraction(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value || !is_sum_of(DType::F64, a, false)) return {};
  auto m = match(a, false);
  if (m) m->type = DType::F64;
  return m;
}

std::optional<Contraction> match_byte_contraction(const TemplateArgs& a) {
  if (!a.canonical || !a.canonical->value) return {};
  const Canonical& c = *a.canonical;
  if (c.combine != Op::Add || c.raxes.empty() || c.value->dtype != DType::I32) return {};
  auto m = match(a, true);
  if (!m || m->p_at.of(m->k.back().var) != 1) return {};
  return m;
}

}  // namespace tc
