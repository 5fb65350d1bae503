#include "templates/cpu/winograd_transform.h"

#include <cmath>

#include "ir/loop/build.h"

namespace tc {

const WinogradTransform& winograd_transform(int64_t m) {
  static const WinogradTransform f2{2,
                                    {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
                                    {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
                                    {{1, 1, 1, 0}, {0, 1, -1, -1}}};
  static const WinogradTransform f4{
      4,
      {{4, 0, -5, 0, 1, 0},
       {0, -4, -4, 1, 1, 0},
       {0, 4, -4, -1, 1, 0},
       {0, -2, -1, 2, 1, 0},
       {0, 2, -1, -2, 1, 0},
       {0, 4, 0, -5, 0, 1}},
      {{0.25, 0, 0},
       {-1.0 / 6, -1.0 / 6, -1.0 / 6},
       {-1.0 / 6, 1.0 / 6, -1.0 / 6},
       {1.0 / 24, 1.0 / 12, 1.0 / 6},
       {1.0 / 24, -1.0 / 12, 1.0 / 6},
       {0, 0, 1}},
      {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};
  return m == 2 ? f2 : f4;
}

Expr combination(const WinogradTransform::Row& row, const Exprs& x) {
  Expr sum;
  auto add = [&](const Expr& term, bool negative) {
    if (!sum)
      sum = negative ? -term : term;
    else
      sum = negative ? sum - term : sum + term;
  };
  for (const bool negative : {false, true})  // a sum that starts with a minus reads badly
    for (size_t i = 0; i < row.size(); i++) {
      if (row[i] == 0 || (row[i] < 0) != negative) continue;
      const double f = std::abs(row[i]);
      add(f == 1 ? x[i] : x[i] * make_float(x[i]->dtype, f), negative);
    }
  return sum;
}

}  // namespace tc
