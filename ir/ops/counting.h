// Counters of nests whose results depend on how often something happens.
#pragma once
#include <string>

#include "ir/ops/helpers.h"

namespace tc {

/// A local variable of type I64.
inline Buffer counter(const std::string& name) { return make_buffer(name, DType::I64, {}, Scope::Register); }
inline Expr value_of(const Buffer& c) { return load(c, {}); }
inline Stmt set(const Buffer& c, const Expr& e) { return store(c, {}, e); }
inline Stmt increment(const Buffer& c) { return set(c, value_of(c) + 1); }

/// Raises E_RANGE unless the counter ended at `count`.
inline Stmt must_be(const Buffer& c, int64_t count) {
  return if_then(ne(value_of(c), Expr(count)), set(c, out_of_range(DType::I64)));
}

/// low = the first of `count` sorted places for which `less`, a truth about the place `middle`, does not hold; `count` if it holds for all.
inline Stmt lower_bound(const Buffer& low, const Buffer& high, int64_t count, const Var& middle, const Expr& less) {
  const Expr half = floor_div(value_of(low) + value_of(high), 2);
  const Stmt step = let(middle, half, if_then(less, set(low, Expr(middle) + 1), set(high, Expr(middle))));
  return seq({set(low, 0), set(high, Expr(count)), while_loop(value_of(low) < value_of(high), step)});
}

}  // namespace tc
