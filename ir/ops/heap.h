// A heap of integers, in a nest: the largest of many are had one after the other, and only these are put in order.
#pragma once
#include "ir/ops/counting.h"

namespace tc {

/// element[p] of the first `count` is no smaller than its children 2 p + 1 and 2 p + 2; the largest is element 0. Behind the
/// last one stands the smallest integer there is: a missing right child needs no test. (Williams, Algorithm 232: Heapsort,
/// CACM 7(6), 1964)
struct Heap {
  Buffer element;  // I64, of one axis, with room for one more than all
  Buffer count;    // a counter, which the caller allocates
};

/// One more behind the others; order() puts it in its place.
Stmt append(const Heap& h, const Expr& element);
/// Makes a heap of what was appended. (Floyd, Algorithm 245: Treesort 3, CACM 7(12), 1964)
Stmt order(const Heap& h);
/// Takes element 0 away; there must be one.
Stmt drop_largest(const Heap& h);

}  // namespace tc
