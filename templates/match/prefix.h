// Scans in which every result is the one before it joined with a value: CumSum, CumProd.
#pragma once
#include <optional>

#include "ir/tensor_fn.h"

namespace tc {

/// out[0] = first, out[i] = op(out[i - 1], next(i)), for every point of the other axes of a stage.
struct Prefix {
  Op op;
  Expr first, next;
};
std::optional<Prefix> match_prefix(const Stage& s);

}  // namespace tc
