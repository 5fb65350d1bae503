// The part of verify.h that looks at indices and barriers.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// What can be known of loops without running them: no access lies outside of its buffer in an iteration that is sure to
/// run, and no thread of a block passes a barrier by. Accesses under conditions on their own indices are not looked at, nor
/// the lanes of vectors behind the first. Throws InternalError.
void verify_accesses(const Stmt& s);

}  // namespace tc
