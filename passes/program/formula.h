// Functions as mathematics for people.
#pragma once
#include <string>

#include "ir/tensor_fn.h"

namespace tc {

/// What a function computes, as mathematics for a head comment:
///   y[h][w][oc] = max(0, bias[oc] + sum(kh, kw, ic) x[h + kh][w + kw][ic] * weight[oc][ic][kh][kw])
/// Stages that are read once are written in place; others get a line of their own. Long text is cut with "...".
std::string formula(const TensorFn& fn);

}  // namespace tc
