#include "templates/match/counted.h"

#include "ir/loop/build.h"
#include "ir/loop/visit.h"

namespace tc {

std::optional<FirstTerms> first_terms(const Expr& e, const Expr& nothing) {
  const Select* k = as<Select>(e);
  const Apply* less = k ? as<Apply>(k->condition) : nullptr;
  const VarRef* v = less && less->op == Op::Lt ? as<VarRef>(less->args[0]) : nullptr;
  if (!v || !structurally_equal(k->no, nothing)) return {};
  return FirstTerms{v->var, less->args[1], k->yes};
}

Exprs refs(const std::vector<Axis>& axes) {
  Exprs list;
  for (const Axis& a : axes) list.push_back(Expr(a.var));
  return list;
}

bool reads_own(const Exprs& index, const std::vector<Axis>& axes) {
  for (size_t k = 0; k < axes.size(); k++) {
    const VarRef* v = as<VarRef>(index[k]);
    if (!(v && v->var == axes[k].var) && !(is_const(index[k], 0) && axes[k].extent == Dim(1))) return false;
  }
  return true;
}

namespace {

std::vector<Axis> with_reduced(const Stage& s) {
  std::vector<Axis> all = s.axes;
  all.push_back(s.raxes[0]);
  return all;
}

Expr row_of(const Buffer& b, const std::vector<Axis>& axes) {
  Exprs at = refs(axes);
  at.pop_back();
  return load(b, at);
}

}  // namespace

std::optional<CountedSoftmax> match_counted_softmax(const Stage& top, const Stage& exps, const Stage& sum,
                                                    const Expr& weight, const std::vector<Axis>& axes) {
  const Expr nothing = zero(DType::F32), least = lowest(DType::F32);
  if (top.raxes.size() != 1 || sum.raxes.size() != 1 || exps.kind != Stage::Kind::Compute) return {};
  const auto compared = first_terms(top.values[0], least), summed = first_terms(sum.values[0], nothing);
  const Load* term = summed ? as<Load>(summed->value) : nullptr;
  const Buffer& terms = exps.outputs[0];
  if (!compared || compared->v != top.raxes[0].var || !term || term->buffer != terms || summed->v != sum.raxes[0].var ||
      !structurally_equal(compared->end, summed->end))
    return {};
  const size_t rank = exps.axes.size();
  if (rank != top.axes.size() + 1 || rank != sum.axes.size() + 1 || rank != axes.size() ||
      !reads_own(term->index, with_reduced(sum)))
    return {};
  VarMap to, once;  // the maximum's point by that of the exponentials; indices along axes of one element are either
  const std::vector<Axis> from = with_reduced(top);
  for (size_t k = 0; k < rank; k++) to[from[k].var.get()] = Expr(exps.axes[k].var);
  for (const auto* list : {&axes, &exps.axes})
    for (const Axis& a : *list)
      if (a.extent == Dim(1)) once[a.var.get()] = Expr(0);
  const auto equal = [&](const Expr& a, const Expr& b) {
    return structurally_equal(substitute(a, once), substitute(b, once));
  };
  const Expr m = row_of(top.outputs[0], exps.axes), total = row_of(sum.outputs[0], axes),
             share = load(terms, refs(axes)) / total, score = substitute(compared->value, to);
  const auto is_it = [&](bool or_zero) {
    const Expr shift = or_zero ? select(eq(m, least), nothing, m) : m;
    return equal(exps.values[0], exp(score - shift)) &&
           equal(weight, or_zero ? select(total > nothing, share, nothing) : share);
  };
  for (const bool or_zero : {false, true})
    if (is_it(or_zero)) return CountedSoftmax{compared->value, compared->end, or_zero};
  return {};
}

}  // namespace tc
