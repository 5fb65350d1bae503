// Instructions as the assignments that they stand for.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// What an instruction that copies memory does:
///   load4(r, x[i]), store4(x[i], r)    four assignments; load2, load8, ... as many as they say
///   cp_async4(t[..], x[i], valid)      t[..] = valid ? x[i] : 0, at once; cp_async8 and cp_async16 the bytes they say
///   cp_async_commit, cp_async_wait     null: nothing
///   dot4(sum[i], a[x], b[y]; l, n)     n products of bytes added in every lane of a vector of i32 (tc_int.h):
///                                      sum[i, l + lane] += a[x + q] * b[y + 4 * lane + q], q < n; a of i8: a[x + q] + 128
/// and what those of matrix_instruction.h do to tiles of scope Fragment: loops whose iterations the lanes share.
/// Throws InternalError for others (those of a warp on registers).
Stmt expand_intrin(const Intrin& k);

}  // namespace tc
