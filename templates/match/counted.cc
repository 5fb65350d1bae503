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

// The stages of a softmax along the last axis, seen from the element of a result.
struct SoftmaxParts {
  Expr m, total, term, score;  // over the axes of the exponentials; total and term: over those of the result
  VarMap once;                 // indices along axes of one element are either
  bool equal(const Expr& a, const Expr& b) const {
    return structurally_equal(substitute(a, once), substitute(b, once));
  }
};

// `score`: what the maximum is of; `term`: what the sum is of.
std::optional<SoftmaxParts> softmax_parts(const Stage& top, const Stage& exps, const Stage& sum, const Expr& score,
                                          const Expr& term, const std::vector<Axis>& axes) {
  const Load* summed = as<Load>(term);
  const Buffer& terms = exps.outputs[0];
  const size_t rank = exps.axes.size();
  if (!summed || summed->buffer != terms || rank != top.axes.size() + 1 || rank != sum.axes.size() + 1 ||
      rank != axes.size() || !reads_own(summed->index, with_reduced(sum)))
    return {};
  SoftmaxParts p;
  VarMap to;  // the maximum's point by that of the exponentials
  const std::vector<Axis> from = with_reduced(top);
  for (size_t k = 0; k < rank; k++) to[from[k].var.get()] = Expr(exps.axes[k].var);
  for (const auto* list : {&axes, &exps.axes})
    for (const Axis& a : *list)
      if (a.extent == Dim(1)) p.once[a.var.get()] = Expr(0);
  p.m = row_of(top.outputs[0], exps.axes);
  p.total = row_of(sum.outputs[0], axes);
  p.term = load(terms, refs(axes));
  p.score = substitute(score, to);
  return p;
}

bool are_softmax(const Stage& top, const Stage& exps, const Stage& sum) {
  return top.raxes.size() == 1 && sum.raxes.size() == 1 && exps.kind == Stage::Kind::Compute;
}

// What exponentials subtract.
Expr shift(const Expr& m, bool or_zero) { return or_zero ? select(eq(m, lowest(DType::F32)), zero(DType::F32), m) : m; }

}  // namespace

std::optional<CountedSoftmax> match_counted_softmax(const Stage& top, const Stage& exps, const Stage& sum,
                                                    const Expr& weight, const std::vector<Axis>& axes) {
  const Expr nothing = zero(DType::F32);
  if (!are_softmax(top, exps, sum)) return {};
  const auto compared = first_terms(top.values[0], lowest(DType::F32)), summed = first_terms(sum.values[0], nothing);
  if (!compared || compared->v != top.raxes[0].var || !summed || summed->v != sum.raxes[0].var ||
      !structurally_equal(compared->end, summed->end))
    return {};
  const auto p = softmax_parts(top, exps, sum, compared->value, summed->value, axes);
  if (!p) return {};
  const Expr share = p->term / p->total;
  const auto is_it = [&](bool or_zero) {
    return p->equal(exps.values[0], exp(p->score - shift(p->m, or_zero))) &&
           p->equal(weight, or_zero ? select(p->total > nothing, share, nothing) : share);
  };
  for (const bool or_zero : {false, true})
    if (is_it(or_zero)) return CountedSoftmax{compared->value, compared->end, or_zero};
  return {};
}

std::optional<PlainSoftmax> match_plain_softmax(const Stage& top, const Stage& exps, const Stage& sum,
                                                const Expr& weight, const std::vector<Axis>& axes) {
  if (!are_softmax(top, exps, sum)) return {};
  const auto p = softmax_parts(top, exps, sum, top.values[0], sum.values[0], axes);
  if (!p) return {};
  const Expr one = make_const(DType::F32, 1);
  const auto is_it = [&](bool or_zero) {
    const Expr divisor = or_zero ? select(eq(p->total, zero(DType::F32)), one, p->total) : p->total;
    return p->equal(exps.values[0], exp(p->score - shift(p->m, or_zero))) && p->equal(weight, p->term / divisor);
  };
  for (const bool or_zero : {false, true})
    if (is_it(or_zero)) return PlainSoftmax{top.values[0], or_zero};
  return {};
}

}  // namespace tc
