// Axes of stages in terms of rows and columns, and where elements lie by them: what rows.cc compares.
#pragma once
#include "ir/loop/simplify.h"
#include "templates/canonical.h"

namespace tc {

/// An axis of stages over whole rows, in terms of rows and columns.
struct IndexedAxis {
  int64_t extent;
  Expr index;
};

/// Of the axes with more than one element.
std::vector<int64_t> sizes_of(const std::vector<Axis>& axes);
bool same_index(const Expr& a, const Expr& b, const Ranges& ranges);
/// Do the rows of the last axis lie side by side? So they do in a tile of whole rows, too, which has strides.
bool is_dense(const Buffer& b);
/// The number of the element in memory.
Expr flat_of(const Buffer& b, const Exprs& index);
/// Does `index` count through an axis of that size as its variables count through theirs?
bool counts_through(const Expr& index, int64_t extent, const std::vector<Axis>& axes);

}  // namespace tc
