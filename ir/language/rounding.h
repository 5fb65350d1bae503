// Narrow floats: what a stage computes is f32, and its result is rounded.
#pragma once
#include "ir/tensor_fn.h"

namespace tc::language {

/// `e` in that type; a value that was only widened on its way is taken as it was.
Expr narrowed(const Expr& e, DType to);
/// The stage that rounds what `of` has computed: to[i] = from[i].
Stage rounding_stage(const Stage& of, const Buffer& from, const Buffer& to);

}  // namespace tc::language
