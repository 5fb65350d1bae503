// Numbers of few bits, several in a byte.
#pragma once
#include <functional>

#include "ir/loop/build.h"

namespace tc {

/// Number `k` of the numbers of `bits` bits that `bytes(index)` holds, the lowest bits first.
inline Expr unpacked(const std::function<Expr(const Expr&)>& bytes, const Expr& k, int64_t bits) {
  if (bits == 8) return cast(DType::I32, bytes(k));
  const Expr in_byte(8 / bits);
  const Expr byte = cast(DType::I32, bytes(floor_div(k, in_byte)));
  const Expr shifted = apply(Op::Shr, {byte, cast(DType::I32, floor_mod(k, in_byte) * bits)});
  return apply(Op::BitAnd, {shifted, make_int(DType::I32, (int64_t(1) << bits) - 1)});
}

}  // namespace tc
