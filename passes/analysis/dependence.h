// Which iterations of a loop touch the same memory. Sound, not complete: what the analysis does not understand counts
// as touching.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/loop/ir.h"
#include "ir/loop/simplify.h"

namespace tc {

/// One load or store, with what is known where it stands. Scalar integer lets are written out in the index.
struct Access {
  Buffer buffer;
  Exprs index;
  bool write = false;
  std::optional<Op> reduce;  // of a store that joins: it reads too
  Ranges ranges;
};

/// The memory that a statement touches from outside its own allocations.
struct Accesses {
  std::vector<Access> list;
  std::vector<Var> bound;  // loops and lets inside
  std::string opaque;      // not empty: why the list says nothing ("a launch")
  bool has_barrier = false;
};
Accesses accesses_of(const Stmt& s, const Ranges& outer = {});

/// Why two iterations of a loop may not be swapped.
struct Conflict {
  Buffer buffer;             // null: see `text`
  std::optional<Op> reduce;  // both accesses are stores that join by this operation
  std::string text;          // "acc[] += x[i, k]": for the message
};

/// All reasons why two instances of `root` (a loop of variable v, or a nest around it) with different values of v and
/// any values of the other loops in `root` may touch the same element, one of them writing. Variables bound outside
/// `root` have one value. Empty: the iterations are independent.
std::vector<Conflict> conflicts(const Stmt& root, const Var& v, const Ranges& outer);

/// Whether the order in which such stores join may change: always for integers, minimum and maximum and for logic,
/// under `strict_fp` not for sums and products of floats.
bool may_reorder(const Conflict& c, bool strict_fp);

}  // namespace tc
