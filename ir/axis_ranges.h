// What the variables of axes may be, for simplify() and the analyses beside it.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "ir/loop/simplify.h"
#include "ir/tensor_fn.h"

namespace tc {

/// From 0 to the last element of each axis; an axis without elements counts as one of one.
inline Ranges ranges_of(std::initializer_list<const std::vector<Axis>*> lists) {
  Ranges ranges;
  for (const std::vector<Axis>* axes : lists)
    for (const Axis& a : *axes) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent.value - 1)};
  return ranges;
}
inline Ranges ranges_of(const Stage& s) { return ranges_of({&s.axes, &s.raxes}); }

}  // namespace tc
