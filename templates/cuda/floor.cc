#include "templates/cuda/floor.h"

#include <algorithm>
#include <array>

#include "support/error.h"

namespace tc {
namespace {

constexpr std::array<CudaCard, 7> kCards = {{
    // sm, card, GHz, L2 in MiB, f64, f32, tf32, f16 and bf16, i8
    {75, "T4", 1.59, 4, 0.25, 8.1, 0, 65, 130},
    {80, "A100 40 GB", 1.41, 40, 9.7, 19.5, 156, 312, 624},
    {86, "RTX 3090", 1.695, 6, 0.56, 35.6, 35.6, 71, 284},
    {89, "RTX 4090", 2.52, 72, 1.3, 82.6, 82.6, 165.2, 660.6},
    {90, "H100 SXM", 1.98, 50, 34, 67, 494.7, 989.4, 1979},
    {100, "B200", 1.965, 126, 40, 80, 1125, 2250, 4500},
    {120, "RTX 5090", 2.407, 96, 1.6, 104.8, 104.8, 209.5, 838},
}};

double macs_per_ns(const KernelWork& work, const CudaCard& card) {
  double tera = card.f32;
  if (work.products == 8) tera = card.f64;
  if (work.products == 4 && work.rounds) tera = card.tf32;
  if (work.products == 2) tera = card.f16;
  if (work.products == 1) tera = card.i8;
  return tera * 1000 / 2;
}

/// Bytes a nanosecond out of the smaller level that holds `bytes`.
double bytes_per_ns(int64_t bytes, const CudaModel& gpu, const CudaCard& card) {
  return bytes <= card.l2_mib << 20 ? gpu.multiprocessors * 64 * card.ghz : gpu.dram_gbs;
}

}  // namespace

const CudaCard& card_of(const CudaModel& gpu) {
  const auto it = std::find_if(kCards.begin(), kCards.end(), [&](const CudaCard& c) { return c.sm == gpu.sm; });
  check(it != kCards.end(), "a card for every row of --arch");
  return *it;
}

double floor_ns(const KernelWork& work, int64_t run_bytes, const CudaModel& gpu) {
  const CudaCard& card = card_of(gpu);
  const double products = double(work.macs) / macs_per_ns(work, card);
  const double operands = double(work.bytes - work.weight_bytes) / bytes_per_ns(work.bytes, gpu, card) +
                          double(work.weight_bytes) / bytes_per_ns(std::max(run_bytes, work.bytes), gpu, card);
  return std::max(products, operands);
}

}  // namespace tc
