// Losses over class scores: the class axis is 1, targets hold class numbers.
#include "ir/ops/helpers.h"
#include "ir/ops/parts.h"

namespace tc {
namespace {

struct Loss {
  Tensor scores, target, weight;  // (n, c, d...), (n, d...), (c) or nothing
  DType t;
};

Loss operands_of_loss(OpBuilder& b) {
  Loss l{b.in(0), b.in(1), b.has(2) ? b.in(2) : Tensor(), compute_type(b.in(0).dtype())};
  if (l.scores.rank() < 2) b.reject("the scores need a batch and a class axis", 0);
  if (l.target.dims() != without_axis(l.scores.dims(), 1)) b.reject("the target's shape does not fit the scores", 1);
  if (l.weight && l.weight.dims() != Dims{l.scores.dim(1)}) b.reject("one weight per class is needed", 2);
  return l;
}

/// Output 0 from the log-probabilities: -weight[target] * log_prob[target], reduced as the attribute says. Elements
/// whose target is ignore_index count neither in the sum nor in the mean.
void reduce_loss(OpBuilder& b, const Loss& l, const OpBuilder::Point& log_prob) {
  const int64_t classes = l.scores.dim(1);
  const Dims dims = l.target.dims();
  auto kept = [&](const Exprs& i) {
    if (!b.has_attr("ignore_index")) return make_int(DType::Bool, 1);
    return ne(cast(DType::I64, l.target(i)), Expr(b.attr_int("ignore_index")));
  };
  auto target = [&](const Exprs& i) { return checked_index(l.target(i), classes); };
  auto weight = [&](const Exprs& i) { return l.weight ? widen(l.weight({target(i)})) : make_const(l.t, 1); };
  auto loss = [&](const Exprs& i) {
    const Expr e = -log_prob(insert_axis(i, 1, target(i)));
    return select(kept(i), l.weight ? e * weight(i) : e, zero(l.t));
  };
  const std::string how = b.attr_string("reduction");
  const DType out = l.scores.dtype();
  if (how == "none")
    return b.output(0, b.compute("loss", out, dims, [&](const Exprs& i) { return cast(out, loss(i)); }));
  if (how != "sum" && how != "mean") b.reject("attribute reduction must be none, sum or mean");
  const Tensor sum = b.reduce("loss", Op::Add, l.t, {}, dims, [&](const Exprs&, const Exprs& r) { return loss(r); });
  if (how == "sum") return b.output(0, convert(b, sum, out, "loss"));
  const Tensor total = b.reduce("weight", Op::Add, l.t, {}, dims,
                                [&](const Exprs&, const Exprs& r) { return select(kept(r), weight(r), zero(l.t)); });
  b.output(0, b.compute("mean", out, {}, [&](const Exprs& i) { return cast(out, sum(i) / total(i)); }));
}

void define_nll(OpBuilder& b) {
  const Loss l = operands_of_loss(b);
  reduce_loss(b, l, [&](const Exprs& i) { return widen(l.scores(i)); });
}

void define_cross_entropy(OpBuilder& b) {
  const Loss l = operands_of_loss(b);
  const Reduction over = reduction_over(b, l.scores.dims(), {1}, false);
  const Tensor largest =
      reduce_over(b, "max", Op::Max, l.t, over, [&](const Exprs& at) { return widen(l.scores(at)); });
  auto shifted = [&](const Exprs& i) { return widen(l.scores(i)) - largest(over.result_at(i)); };
  const Tensor sum = reduce_over(b, "sum", Op::Add, l.t, over, [&](const Exprs& at) { return exp(shifted(at)); });
  const Tensor log_prob = b.compute("log_prob", l.t, l.scores.dims(),
                                    [&](const Exprs& i) { return shifted(i) - log(sum(over.result_at(i))); });
  b.output(1, convert(b, log_prob, l.scores.dtype(), "log_prob"));
  reduce_loss(b, l, [&](const Exprs& i) { return log_prob(i); });
}

}  // namespace

OpFamily loss_ops() {
  const std::vector<AttrSpec> attrs = {{"ignore_index", {}}, {"reduction", std::string("mean")}};
  return {
      {"NegativeLogLikelihoodLoss", 22, attrs, define_nll, "log_prob target weight", "nll_loss"},
      {"SoftmaxCrossEntropyLoss", 13, attrs, define_cross_entropy, "scores target weight", "cross_entropy_loss"},
  };
}

}  // namespace tc
