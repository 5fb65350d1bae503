// Axes as numbers: how many points they have, and a point as one number.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/loop/visit.h"
#include "ir/tensor_fn.h"

namespace tc {

/// Pieces of `size` that hold `n`, and what these hold together.
inline int64_t ceil_div(int64_t n, int64_t size) { return (n + size - 1) / size; }
inline int64_t round_up(int64_t n, int64_t size) { return ceil_div(n, size) * size; }

/// Total number of points.
int64_t points(const std::vector<Axis>& axes);
/// INT64_MAX where no number of 64 bits says how many.
int64_t points_or_many(const std::vector<Axis>& axes);
std::vector<Var> vars_of(const std::vector<Axis>& axes);

/// The number of the axes' point in row-major order, behind that of the axes around them.
Expr point_number(const std::vector<Axis>& axes, Expr outer = 0);
/// The point of a number: the values of the axes' variables. Axes of one element are at 0.
VarMap point_at(const std::vector<Axis>& axes, const Expr& number);

/// The number of a chunk taken apart into what it counts, the fastest first.
class ChunkDigits {
 public:
  explicit ChunkDigits(Expr number) : rest_(std::move(number)) {}
  /// `v` counts to `count`. `slowest`: what is left is its value.
  void take(const Var& v, const Expr& count, bool slowest);
  /// The loops of a chunk, with the variables that it takes apart.
  Stmt around(Stmt body) const;

 private:
  Expr rest_;
  std::vector<std::pair<Var, Expr>> values_;
};

}  // namespace tc
