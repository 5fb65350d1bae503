// Control flow: nodes with bodies. They are no functions of tensors; regions.cc types them, the executor runs them.
#include "ir/ops/families.h"

namespace tc {

OpFamily control_ops() {
  return {
      {"If", 25, {}, nullptr},
      {"Loop", 25, {}, nullptr},
      {"Scan", 25, {}, nullptr},
  };
}

}  // namespace tc
