// Where the threads of a launch are in their rows, and how they read what lies there: elements one by one, or vectors
// of neighbours into arrays.
#pragma once
#include <functional>
#include <map>

#include "templates/cuda/flat_point.h"
#include "templates/cuda/rows.h"

namespace tc {

class RowElements {
 protected:
  RowElements(Rows r, const RowPlan& plan);

  /// An element of a thread's row.
  struct Element {
    Expr iteration, column, within;  // within a vector
  };
  using ElementBody = std::function<Stmt(const Element& c, const Exprs& values)>;

  /// The thread's number in its row, and in the block's rows; the row's number.
  Expr lane_number() const;
  Expr lane() const;
  Expr row_number() const;

  /// How many neighbours of an element one instruction accesses; 1 if it has to be alone.
  int64_t together(const Buffer& b, const Expr& index) const;
  /// The array in which a thread keeps its part of a row, and the index of an element there.
  Buffer array_of(const RowStep& s) const;
  static Exprs index_in(const Buffer& array, const Element& c);

  /// An expression over rows and columns at an element, or over rows at the thread's row; results of steps by their
  /// names.
  Expr at_element(const Expr& e, const Element& c) const;
  Expr at_row(const Expr& e) const;
  /// An index there; of a row alone if the element is empty.
  Expr at_index(const Expr& index, const Element& c) const;

  /// The thread's columns, whole vectors at a time: `body` gets the element of the first.
  Stmt over_iterations(const std::function<Stmt(const Element& first)>& body) const;
  /// `body` at every element of a thread; what is read of global memory comes 16 bytes at a time.
  Stmt at_elements(const Exprs& values, const ElementBody& body) const;
  /// to[at ..] = from[..], a vector, in pieces of n elements.
  Stmt read_vector(const Buffer& to, const Exprs& at, const Load& from, int64_t n, const Element& first) const;

  Rows r_;
  const RowPlan p_;
  const int64_t columns_, rows_;
  const bool partial_;  // the last block has rows that are none
  const bool clamped_;  // threads without a row compute the last one again, and store nothing
  const Var block_, thread_, lane_;
  const FlatPoint at_;
  std::map<const BufferDef*, Buffer> arrays_;  // of what is kept; looked up only
  VarMap names_;                               // of reductions: their scalars

 private:
  struct VectorRead {
    Buffer to;
    Stmt code;
  };

  Expr row_of_block() const;
  std::vector<Var> vars_with_column() const;
  Shape vector_shape(int64_t n) const;
  Expr scalars(const Expr& e) const { return substitute(e, names_); }
  Exprs all_at(const Exprs& list, const Element& c) const;
  Expr gather(const Expr& e, const Element& first, std::vector<VectorRead>& reads, const Expr& j) const;
};

}  // namespace tc
