// Conditions that depend on data and stand in front of all reads of a buffer: a size of the run, an index that is tested.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// What has to hold where a copy of what `s` reads of `buffer` is made ahead of it.
struct ReadGuard {
  Expr condition;     // null: no read stands behind such a condition
  bool known = true;  // false: reads stand behind different ones, or some behind none
};

/// Names inside of `s` stand for their values in the condition.
ReadGuard read_guard(const Stmt& s, const Buffer& buffer);

}  // namespace tc
