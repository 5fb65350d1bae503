// How often conditions in loops hold.
#pragma once
#include <map>
#include <set>

#include "ir/loop/ir.h"

namespace tc {

/// Of the loops around a statement: if (block * 256 + thread < 320) holds 320 times, for each other loop's iteration.
class GuardedLoops {
 public:
  /// A loop whose body is looked at begins, and ends.
  void enter(const For& loop);
  void leave(const For& loop);
  /// What a variable of the body stands for.
  void define(const Var& v, const Expr& value) { values_[v.get()] = value; }

  /// How often `condition` holds in all iterations of the loops that it tests, whose iterations are counted by that from here on;
  /// nullopt: not known. Known is e < N, where e numbers the iterations of some of the loops from 0.
  std::optional<int64_t> count(const Expr& condition);
  /// Are the iterations of this loop counted by a condition?
  bool counted(const For& loop) const { return counted_.count(loop.var.get()) != 0; }
  /// Loops whose iterations are counted by conditions.
  size_t num_counted() const { return counted_.size(); }

 private:
  std::map<const VarDef*, int64_t> extents_;  // of the loops around. All three are looked up only
  std::map<const VarDef*, Expr> values_;
  std::set<const VarDef*> counted_;
};

}  // namespace tc
