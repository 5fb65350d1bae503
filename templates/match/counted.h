// Reductions of the first elements only, as tc.counted_softmax and tc.counted_matmul write them: a term that is nothing from a count on.
#pragma once
#include <optional>

#include "ir/tensor_fn.h"

namespace tc {

/// select(v < end, value, nothing)
struct FirstTerms {
  Var v;
  Expr end, value;
};
/// `nothing`: what changes no reduction of `e`. Null for other expressions.
std::optional<FirstTerms> first_terms(const Expr& e, const Expr& nothing);

Exprs refs(const std::vector<Axis>& axes);
/// Is `index` the point of the axes itself? Those of one element may be 0.
bool reads_own(const Exprs& index, const std::vector<Axis>& axes);

/// tc.counted_softmax along the last axis of its operand.
struct CountedSoftmax {
  Expr scores;           // the operand's element, over the axes and the reduced axis of the stage of the maximum
  Expr count;            // of the elements of a row that take part
  bool or_zero = false;  // rows without a number are zero; else NaN
};
/// Of the stages of the maximum, of the exponentials and of their sum; `weight`: the result over `axes`, which reads the last two.
/// Null for other functions.
std::optional<CountedSoftmax> match_counted_softmax(const Stage& top, const Stage& exps, const Stage& sum,
                                                    const Expr& weight, const std::vector<Axis>& axes);

/// A softmax of whole rows.
struct PlainSoftmax {
  Expr scores;           // as above
  bool or_zero = false;  // rows whose scores are all -inf are zero; else NaN
};
/// The same for a softmax along the last axis as ONNX's Softmax and Attention (ir/ops/attention.cc) write it, the latter without a sink.
std::optional<PlainSoftmax> match_plain_softmax(const Stage& top, const Stage& exps, const Stage& sum,
                                                const Expr& weight, const std::vector<Axis>& axes);

}  // namespace tc
