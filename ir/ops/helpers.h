// What the families share: types of arithmetic, broadcasting, and formulas turned into define() functions.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/ops/op.h"

namespace tc {

using Define = std::function<void(OpBuilder&)>;

/// The type that arithmetic on t runs in: f32 for the narrow floats, else t itself.
DType compute_type(DType t);
/// The type of sums whose value counts, not its remainder alone: i64 for integers of 8 and 16 bits, else the compute type.
DType sum_type(DType t);
/// `e` in its compute type.
Expr widen(Expr e);
/// A number of the type of `e`.
inline Expr num(const Expr& e, double v) { return make_const(e->dtype, v); }

/// "hard_sigmoid" of "HardSigmoid".
std::string snake_case(std::string_view name);
/// The name in stage and kernel names: the row's label, else the operator's name in snake_case.
std::string stage_label(const OpBuilder& b);

/// NumPy broadcasting of all shapes; rejects sizes that do not fit.
Dims broadcast_dims(const OpBuilder& b, const std::vector<Tensor>& tensors);
/// Rejects an operand that does not broadcast to `dims`.
void require_broadcast(OpBuilder& b, int input, const Dims& dims);
/// Every operand that is present, in order.
std::vector<Tensor> operands(OpBuilder& b);
/// Rejects unless `t` is one of the numeric (not bool) types.
void require_number(const OpBuilder& b, DType t, int input = 0);
/// Rejects unless `t` is a float.
void require_float(const OpBuilder& b, DType t, int input = 0);

/// Rows that have a trait, in addition to what they have; an activation has the sizes of its operand, too.
OpRow marked(OpTrait t, OpRow row);
OpFamily all_marked(OpTrait t, OpFamily rows);
/// The row of a reduction with OpRow::neutral.
OpRow joins_nothing(std::string_view neutral, OpRow row);
/// One family behind the other.
OpFamily joined(std::vector<OpFamily> parts);

/// y = f(x), elementwise, in x's compute type; the result has x's type.
Define elementwise(std::function<Expr(Expr)> f);
/// The same with access to the attributes.
Define elementwise(std::function<Expr(OpBuilder&, Expr)> f);
/// y = f(a, b), broadcast; both of one type, which the result has.
Define elementwise(std::function<Expr(Expr, Expr)> f);
Define elementwise(std::function<Expr(OpBuilder&, Expr, Expr)> f);
/// y = f(x) or f(a, b) where f gives a bool.
Define predicate(std::function<Expr(Expr)> f);
Define predicate(std::function<Expr(Expr, Expr)> f);

/// Row-major number of the element at `index`.
Expr linear_index(const Exprs& index, const Dims& dims);
/// The index of element number `linear`; the parts stay within the sizes as long as `linear` does.
Exprs delinearize(const Expr& linear, const Dims& dims);
/// The index into `from` of the element that `index` names in `to`, both row-major with equally many elements. Axes
/// that correspond keep their index, so that only those that are split or merged need arithmetic.
Exprs reshape_index(const Exprs& index, const Dims& to, const Dims& from);

/// Loops around body(i) for every index of a tensor of these sizes; `hint` names the variables.
Stmt for_each_index(const Dims& dims, const std::function<Stmt(const Exprs& i)>& body, const std::string& hint = "i");

/// index with `value` instead of element `axis`.
Exprs with_axis(Exprs index, int axis, Expr value);
Exprs insert_axis(Exprs index, int axis, Expr value);
Exprs remove_axis(Exprs index, int axis);
Dims without_axis(Dims dims, int axis);
/// a and b, one after the other.
Exprs concat(Exprs a, const Exprs& b);

/// Axes of a tensor that a reduction runs over, and the shapes that follow.
struct Reduction {
  std::vector<bool> over;  // per axis of the input
  Dims out, raxes;         // shape of the result, sizes of the reduced axes
  bool keepdims = true;    // the result has the input's rank, with size 1 in the reduced axes

  /// The input's index from the result's index i and the reduction's index r.
  Exprs at(const Exprs& i, const Exprs& r) const;
  /// The result's index that belongs to an index of the input.
  Exprs result_at(const Exprs& input) const;
};
/// Duplicate axes and axes out of range are rejected.
Reduction reduction_over(const OpBuilder& b, const Dims& dims, const std::vector<int64_t>& axes, bool keepdims);
/// A reduce stage, or a compute stage where no axis is reduced.
Tensor reduce_over(OpBuilder& b, const std::string& name, Op op, DType t, const Reduction& over,
                   const OpBuilder::Point& f);

/// x in type t: a compute stage, or x itself.
Tensor convert(OpBuilder& b, const Tensor& x, DType t, const std::string& name);

/// Element k of an integer operand of rank 0 or 1, as I64; a literal where it is known.
Expr element(OpBuilder& b, int input, int64_t k = 0);
/// How many elements an operand of rank 0 or 1 has.
int64_t length_of(OpBuilder& b, int input);
/// An axis read at run time, counted from the front.
Expr run_time_axis(const Expr& axis, int rank);
/// A value of type t whose evaluation raises the status E_RANGE: for what the model's declared shapes rule out.
Expr out_of_range(DType t);

/// One of several meanings, chosen when the model runs.
struct Candidate {
  Expr condition;  // bool; reads operands at constant indices only
  Tensor result;
};
/// The result of the first candidate whose condition holds; E_RANGE if none does. All results have one shape and type.
Tensor choose(OpBuilder& b, const std::string& name, const std::vector<Candidate>& candidates);

/// An integer operand as I64 expression with Index's range check against n.
Expr checked_index(Expr value, int64_t n);

}  // namespace tc
