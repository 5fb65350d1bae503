// May two accesses of a GPU thread's code touch one element, when different threads of a block make them?
#pragma once
#include <set>
#include <utility>
#include <vector>

#include "ir/loop/simplify.h"

namespace tc {

/// An access of a thread. Variables of lets are replaced by what they stand for.
struct ThreadAccess {
  Buffer buffer;
  Exprs index;  // empty: any element
  bool write = false;
  Ranges ranges = {};  // of variables that conditions around the access bound more tightly
  std::vector<std::pair<Expr, int64_t>> fixed = {};  // what conditions around it say is equal to a number
};

struct ThreadNest {
  std::vector<Var> threads;             // of extents > 1
  Ranges ranges;                        // of loops and threads
  std::set<const VarDef*> varying;      // not the same for all threads; looked up only
  std::set<const BufferDef*> changing;  // memory that is stored to; looked up only
};

/// True if it is proved that the accesses touch one element only where one thread makes both. Variables with the same
/// identity that are not varying have the same value on both sides.
bool only_within_threads(const ThreadAccess& a, const ThreadAccess& b, const ThreadNest& nest);

}  // namespace tc
