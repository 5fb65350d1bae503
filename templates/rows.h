// Functions of several stages that walk the same rows: softmax, normalisation, means, with everything around them.
#pragma once
#include "templates/canonical.h"

namespace tc {

struct RowStep {
  enum class Kind { Keep, Reduce, Scalar, Row, Value } kind;  // Row, Value: the result, a row or one value of it
  Expr value;                                                 // over the rows' axes and the column
  Op op = Op::Add;                                            // Reduce
  Expr init;
  Var name;     // Reduce, Scalar
  Buffer kept;  // Keep: later steps load kept[kept_index]
};

/// True for steps that have a value for each column.
inline bool along_row(const RowStep& s) { return s.kind != RowStep::Kind::Scalar && s.kind != RowStep::Kind::Value; }

struct Rows {
  Canonical c;                // inputs, views and out; axes are the rows
  std::vector<Axis> columns;  // merged: one
  std::vector<RowStep> steps;
  Expr kept_index;  // the flat point of row and column
};

/// Where costly stages over whole rows that are read more than once are kept: one of them in the row of the result, or
/// each in an array of its own (Register, one element a column), and so is a stage that joins several rows.
enum class KeptRows { InResult, InArrays, Nowhere };

/// Null if the stages of `fn` have another shape or another type than f32. What is not kept is written in place into
/// what reads it.
std::optional<Rows> match_rows(const TensorFn& fn, KeptRows kept);

}  // namespace tc
