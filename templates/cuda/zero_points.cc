// Zero points of quantised factors. x - z of 8 bits each has 9, which no matrix instruction takes, so that the sum is
// taken apart:
//
//   sum(k) (x[m, k] - z) * w[k, n]   ->   sum(k) x[m, k] * w[k, n] - z * w_sums[n],   w_sums[n] = sum(k) w[k, n]
//
// with w_sums computed while compiling. Where a convolution reads its border, x - z is 0, that is, x is z. Of a known
// factor without a sign, the zero point 128 is taken away while it is packed, which leaves a number with a sign.
// Everything is exact.
#include "templates/cuda/zero_points.h"

#include "ir/loop/instruction.h"
#include "templates/match/axes.h"
#include "templates/packed.h"
#include "templates/zero_point.h"

namespace tc {
namespace {

// The type in which a known factor is packed.
bool take_known(Factor& f) {
  const ZeroPointForm c = zero_point_form(f.value);
  if (!c.x) return false;
  const bool middle = bool(c.zero) && c.x->dtype == DType::U8 && number_of(c.zero) == 128;
  if (bool(c.zero) && !middle) return false;
  f.type = middle ? DType::I8 : c.x->dtype;
  return true;
}

bool take_unknown(Factor& f, const std::vector<Axis>& k, bool other_is_known) {
  const Select* s = as<Select>(f.value);
  const ZeroPointForm c = zero_point_form(s && is_zero(s->no) ? s->yes : f.value);
  if (!c.x) return false;
  f.type = c.x->dtype;
  const Expr raw = c.x;
  if (!c.zero) {
    f.value = s ? select(s->condition, raw, zero(f.type)) : raw;
    return true;
  }
  if (!other_is_known || uses_any(c.zero, k)) return false;
  f.zero = c.zero;
  f.value = s ? select(s->condition, raw, cast(f.type, c.zero)) : raw;
  return true;
}

// sum(k) f, over batch and rows or columns, flat.
Buffer sums_of(const Factor& f, const Canonical& c, Scheduled& s) {
  std::vector<Axis> axes = f.batch;
  axes.insert(axes.end(), f.d.begin(), f.d.end());
  return add_packed_sums(s, c, std::move(axes), f.k, cast(DType::I32, f.shaped), f.name + "_sums");
}

}  // namespace

std::optional<CudaContraction> factors_of_bytes(const CudaContraction& m) {
  if (m.sum != DType::I32) return {};
  CudaContraction r = m;
  const bool p = r.p.packed ? take_known(r.p) : take_unknown(r.p, r.k, r.q.packed);
  const bool q = r.q.packed ? take_known(r.q) : take_unknown(r.q, r.k, r.p.packed);
  if (!p || !q || !matrix_instruction(r.p.type, r.q.type)) return {};
  return r;
}

void subtract_zeros(CudaContraction& m, Scheduled& s) {
  auto subtract = [&](const Factor& f, const Factor& known, const std::vector<Axis>& axes) {
    if (!f.zero) return;
    const Buffer sums = sums_of(known, m.c, s);
    const Expr away = f.zero * load(sums, {point_number(axes, point_number(known.batch))});
    m.c.epilogue = with_reduced(m.c.epilogue, m.c.reduced, load(m.c.reduced, {}) - away);
  };
  subtract(m.p, m.q, m.n);
  subtract(m.q, m.p, m.m);
}

}  // namespace tc
