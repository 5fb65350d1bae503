#include "cli/tolerance.h"

namespace tc {

Tolerance tolerance_of(const Graph& g, Precision p) {
  bool f16 = false, coarser = false;
  for (const auto& v : g.values()) {
    if (!v->type.is_tensor() || !is_narrow_float(v->type.dtype)) continue;
    (v->type.dtype == DType::F16 ? f16 : coarser) = true;
  }
  // What tensor cores multiply is cut once for each product, values that are stored once for each operator.
  if (p == Precision::Bf16 || p == Precision::Int8) return {"5e-2", "3e-1"};  // int8: a step of QuantizeLinear
  if (coarser) return {"8e-2", "8e-2"};
  if (p == Precision::Tf32 || p == Precision::F16) return {"1e-2", "5e-2"};
  if (f16) return {"1e-2", "1e-2"};
  return {"1e-3", "1e-5"};
}

}  // namespace tc
