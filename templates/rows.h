// Functions of several stages that walk the same rows: softmax, normalisation, means, positions of extremes, with
// everything around them.
#pragma once
#include "templates/canonical.h"

namespace tc {

/// A value that is reduced together with others, by a combiner of several values.
struct RowComponent {
  Expr value, init;
  Var name;
};

struct RowStep {
  enum class Kind { Keep, Reduce, Scalar, Row, Value } kind;  // Row, Value: a result, a row or one value of it
  Expr value;                                                 // over the rows' axes and the column
  Op op = Op::Add;                                            // Reduce
  Expr init;
  Var name;                              // Reduce, Scalar
  Buffer kept;                           // Keep: later steps load kept[kept_index]
  std::vector<RowComponent> tuple = {};  // Reduce by `combiner`: value, op, init and name are unused
  Combiner combiner = {};
  Buffer out = {};      // Row, Value: flat
  Expr out_index = {};  // affine in the rows' axes and in the columns before they are merged
  Expr behind = {};     // Row: what stands behind the elements that are reduced, if those are not all
};

/// What a step computes at a column, or of a row.
std::vector<Expr*> values_of(RowStep& s);
std::vector<Expr> values_of(const RowStep& s);

/// True for steps that have a value for each column.
inline bool along_row(const RowStep& s) { return s.kind != RowStep::Kind::Scalar && s.kind != RowStep::Kind::Value; }

struct Rows {
  Canonical c;                // inputs, views and out; axes are the rows
  std::vector<Axis> columns;  // merged as far as memory allows
  std::vector<RowStep> steps;
  Expr kept_index;           // the flat point of row and column; on the stack the column
  std::vector<Buffer> outs;  // flat, as fn.outputs
};

/// Where costly stages over whole rows that are read more than once are kept: one of them in the row of the result, or
/// each in an array of its own (Register, one element a column), and so is a stage that joins several rows. A result of halves
/// or bytes is no place for a row: then it is an array on the stack.
enum class KeptRows { InResult, InArrays, Nowhere };

/// Null if the stages of `fn` have another shape. What is not kept is written in place into what reads it.
///
/// Strict: every stage is f32, but for those that round to bytes and one that rounds the result to halves; or every one is
/// f64. The rows' axes come before the columns, which are one axis unless all steps along them are reductions; one result.
/// Any: all types, results and combiners of several values; columns anywhere among the axes, or parts of an axis (the
/// channels of a group); the column with the smallest stride in memory comes last.
enum class RowForm { Strict, Any };
/// `open_axes`: of the result, whose rows may end early; they stay axes of their own.
std::optional<Rows> match_rows(const TensorFn& fn, KeptRows kept, RowForm form, const std::vector<int>& open_axes = {});

/// The number of `columns` becomes one axis; indices that do not walk them as one take it apart by division.
void merge_columns(Rows& r);

}  // namespace tc
