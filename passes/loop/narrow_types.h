// lower_narrow_types: arithmetic of types that C does not compute in.
#pragma once
#include "ir/loop/ir.h"

namespace tc {

/// After this pass no arithmetic is left on types that C has no arithmetic for: f16, bf16, f8, f4 (computed as f32) and
/// 2- and 4-bit integers (computed as i32). They remain in buffers and in Casts from and to f32 / i32.
Stmt lower_narrow_types(const Stmt& s);

/// The type in which values of t are computed: f32, i32 or t itself.
DType computed_type(DType t);

}  // namespace tc
