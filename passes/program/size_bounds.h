// Bounds of sizes that follow from what the caller chooses.
#pragma once
#include "ir/program.h"

namespace tc {

/// The least that a size can be; below 0 where a run may be refused for it.
inline int64_t least_size(const Program& p, const SizeSum& s) {
  int64_t least = s.addend;
  for (const SizeSum::Term& t : s.terms) {
    const IoTensor& size = p.inputs[t.input];
    least = checked_add(least, checked_mul(t.factor, t.factor < 0 ? size.most : size.least));
  }
  return least;
}

}  // namespace tc
