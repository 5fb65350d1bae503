// Recognises sums of products and classifies their axes by what the factors read.
#include <algorithm>

#include "ir/loop/build.h"
#include "ir/loop/linear.h"
#include "templates/cuda/contraction.h"
#include "templates/match/axes.h"
#include "templates/packed.h"

namespace tc {
namespace {

// The operand's type where the factor only widens it: a tile of that type holds the same values.
DType type_of(const Expr& factor) {
  const Read r = read_of(factor);
  return r.load ? r.load->buffer->dtype : factor->dtype;
}

// Larger strides first, so that neighbours of the sum are neighbours in memory. Kept as it is where the factor is no
// plain read.
void sort_by_stride(std::vector<Axis>& axes, const Expr& factor) {
  const auto loads = loads_of(factor);
  if (loads.size() != 1) return;
  const auto at = affine_in(loads[0]->index[0], vars_of(axes));
  if (!at) return;
  std::map<const VarDef*, int64_t> stride;  // looked up only
  for (size_t i = 0; i < axes.size(); i++) stride[axes[i].var.get()] = at->coefficients[i];
  std::stable_sort(axes.begin(), axes.end(),
                   [&](const Axis& a, const Axis& b) { return stride[a.var.get()] > stride[b.var.get()]; });
}

bool has_axis(const std::vector<Axis>& axes, const Var& v) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return a.var == v; });
}

void classify(CudaContraction& m) {
  for (const Axis& a : m.c.axes) {
    const bool in_p = uses_var(m.p.value, a.var), in_q = uses_var(m.q.value, a.var);
    (in_p && in_q ? m.batch : in_q ? m.n : m.m).push_back(a);
  }
}

// Larger strides first in every index, as one writes them.
Expr by_stride(const Expr& index) {
  Linear l = linear_form(index);
  std::stable_sort(l.terms.begin(), l.terms.end(),
                   [](const auto& a, const auto& b) { return a.coefficient > b.coefficient; });
  return to_expr(l);
}
Expr loads_by_stride(const Expr& e) {
  return rewrite(e, [](const Expr& x) -> Expr {
    const Load* l = as<Load>(x);
    return l && l->index.size() == 1 ? load(l->buffer, {by_stride(l->index[0])}) : Expr();
  });
}

void merge(CudaContraction& m) {
  std::vector<Expr*> values = {&m.c.epilogue}, indices = {&m.c.out_index}, summed;
  for (Factor* f : {&m.p, &m.q})
    if (!f->packed) values.push_back(&f->value), summed.push_back(&f->value);
  merge_axes(m.m, values, indices);
  merge_axes(m.n, values, indices);
  if (!m.p.packed && !m.q.packed) merge_axes(m.batch, values, indices);
  merge_axes(m.k, summed, {});
  for (Expr* e : values) *e = loads_by_stride(*e);
  m.c.out_index = by_stride(m.c.out_index);
}

void keep_shape(Factor& f, const Expr& shaped, const CudaContraction& m, const std::vector<Axis>& d) {
  f.packed = true;
  f.shaped = shaped;
  f.batch = m.batch;
  f.d = d;
  f.k = m.k;
}

Factor factor_of(const Expr& e, const std::string& otherwise) {
  Factor f;
  f.value = e;
  const auto loads = loads_of(e);
  f.name = loads.empty() ? otherwise : loads[0]->buffer->name;
  f.type = type_of(e);
  return f;
}

}  // namespace

std::optional<CudaContraction> match_cuda_contraction(const CudaArgs& a) {
  if (!a.canonical || !a.canonical->value) return {};
  const Canonical& c = *a.canonical;
  const Apply *product = as<Apply>(c.value), *shaped = as<Apply>(c.shaped_value);
  if (c.combine != Op::Add || !product || product->op != Op::Mul || !is_zero(c.init)) return {};
  CudaContraction m;
  m.c = c;
  m.sum = c.reduced->dtype;
  if ((m.sum != DType::F32 && m.sum != DType::I32) || is_complex(c.out->dtype)) return {};
  // The right factor is the one that the result's neighbours read; where that says nothing, the known one.
  const auto side_by_side = unit_axis(c);
  const Var unit = side_by_side ? side_by_side->var : nullptr;
  auto reads_unit = [&](size_t i) { return unit && uses_var(product->args[i], unit); };
  bool swapped =
      is_constant(product->args[0], c, a.constant_input) && !is_constant(product->args[1], c, a.constant_input);
  if (reads_unit(0) != reads_unit(1)) swapped = reads_unit(0);
  m.k = c.raxes;
  auto assign = [&] {
    m.p = factor_of(product->args[swapped ? 1 : 0], "a");
    m.q = factor_of(product->args[swapped ? 0 : 1], "b");
    m.batch.clear(), m.m.clear(), m.n.clear();
    classify(m);
  };
  assign();
  if (m.columns() < 4 && m.rows() > m.columns()) {  // too narrow a result
    swapped = !swapped;
    assign();
  }
  const size_t p = swapped ? 1 : 0;
  if (m.columns() < 4 || m.depth() < 2 || (m.rows() < 2 && m.batches() > 1)) return {};
  if (has_axis(m.batch, unit) && m.rows() * m.columns() < 256) return {};
  const bool known_p = is_constant(m.p.value, c, a.constant_input),
             known_q = is_constant(m.q.value, c, a.constant_input);
  if (known_p && known_q) return {};
  if (!a.options.strict_fp) sort_by_stride(m.k, known_p ? m.q.value : m.p.value);
  if (shaped && shaped->op == Op::Mul) {
    if (known_p) keep_shape(m.p, shaped->args[p], m, m.m);
    if (known_q) keep_shape(m.q, shaped->args[1 - p], m, m.n);
  }
  merge(m);
  return m;
}

}  // namespace tc
