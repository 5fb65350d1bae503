// A point of several axes that a thread finds from one number.
#pragma once
#include <string>

#include "templates/points.h"

namespace tc {

class FlatPoint {
 public:
  /// A point of `axes` by its number in row-major order: a variable per axis. `name`: the number's, where there are
  /// several axes.
  FlatPoint(const std::vector<Axis>& axes, const Expr& number, const std::string& name);
  /// The number itself, inside of wrap.
  Expr flat;
  /// The axes' variables as expressions, inside of wrap.
  VarMap at;
  /// `body` with what it uses of these bound around it.
  Stmt wrap(Stmt body) const;

 private:
  std::vector<std::pair<Var, Expr>> lets_;
};

/// Several points at once, none of which has an axis of another.
VarMap joined(const std::vector<const VarMap*>& points);

}  // namespace tc
