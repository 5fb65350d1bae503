// Rows that no cache holds are read from memory once for each panel of the right factor, if a panel is what goes around
// rows. Where that takes longer than to read the panels again, a block of rows goes around the panels:
//
//   for panels: for rows            the left factor comes `panels` times, the right one once: it is large, or rows are few
//   for blocks of rows: for panels  the left factor comes once, the right one `blocks` times: rows are many, as those of large pictures
//                                   and of batches are
//
// Where a cache holds them, threads decide: of a loop's chunks each takes a run of neighbours. Panel by panel, each computes columns, and the
// next kernel, which reads all channels of a pixel, fetches half of them from another core; block by block, each has rows from
// kernel to kernel. So it is where weights, which then all threads read, are small beside the rows.
//
// Of a batch of images whose rows do not lie side by side (windows), each image is cut by itself.
#include "templates/cpu/row_blocks.h"

#include <algorithm>

#include "ir/open_size.h"

namespace tc {
namespace {

// Of a third-level cache, which cores share: rows that it holds come from there while others are multiplied.
constexpr double kShareOfCache = 4;
constexpr double kMoreRows = 2;  // than weights
constexpr double kGain = 0.8;    // of the time for what comes from memory: by less another order is not worth its while

double bytes_of_number(const Contraction& m) { return m.bytes ? 1 : info(m.type).bytes; }

// From the first to the last element of the left factor that so many axes of rows, the last ones, reach.
double left_bytes(const Contraction& m, size_t row_axes) {
  double n = 1;
  const auto add = [&](const Axis& a) { n += double(std::abs(m.p_at.of(a.var))) * double(a.extent.value - 1); };
  std::for_each(m.rows.end() - std::ptrdiff_t(row_axes), m.rows.end(), add);
  std::for_each(m.k.begin(), m.k.end(), add);
  return n * bytes_of_number(m);
}

double nanoseconds(const CpuModel& cpu, double bytes, double times) {
  return bytes * times /
         (bytes <= cpu.l2_bytes                   ? cpu.l2_gbs
          : kShareOfCache * bytes <= cpu.l3_bytes ? cpu.l3_gbs
                                                  : cpu.dram_gbs);
}

// At least so many blocks that one fits; a number of them near that which cuts evenly.
int64_t blocks_of(double bytes, const CpuModel& cpu, int64_t runs) {
  const auto needed = std::clamp<int64_t>(int64_t(2 * bytes / cpu.l2_bytes) + 1, 1, runs);
  for (int64_t n = needed; n <= std::min(runs, needed + needed / 2); n++)
    if (runs % n == 0) return n;
  return needed;
}

}  // namespace

int64_t blocks_for_threads(int64_t runs) { return runs % 2 == 1 && runs < 16 ? runs : std::min<int64_t>(runs, 2); }

RowBlocks choose_cache_blocks(const Contraction& m, const CpuModel& cpu, int64_t panels, int64_t tile_rows) {
  RowBlocks b;
  if (m.rows.empty() || m.rows.size() > 3 || panels < 2 || m.right == Contraction::Right::Repacked) return b;
  for (const Axis& a : m.rows)
    if (is_open(a.extent.value)) return b;
  const double all = left_bytes(m, m.rows.size());
  const double weights = double(points(m.k)) * double(m.n.extent.value) * bytes_of_number(m);
  if (all <= std::max(double(cpu.l2_bytes), cpu.l3_bytes / kShareOfCache)) {
    const Axis& outermost = m.rows[0];
    const int64_t runs = m.rows.size() > 1 ? outermost.extent.value : outermost.extent.value / tile_rows;
    if (runs < 2 || !m.outer.empty() || all < kMoreRows * weights) return b;
    b.panels_inside = true;
    b.count = blocks_for_threads(runs);
    return b;
  }
  b.images_outside = m.rows.size() == 3;
  const Axis& cut = m.rows[b.images_outside ? 1 : 0];
  const int64_t runs = m.rows.size() > 1 ? cut.extent.value : std::max<int64_t>(1, cut.extent.value / tile_rows);
  const double one = b.images_outside ? left_bytes(m, 2) : all;
  b.count = one <= cpu.l2_bytes ? 1 : blocks_of(one, cpu, runs);
  const double blocks = double(b.count) * double(b.images_outside ? m.rows[0].extent.value : 1);
  const double outside = nanoseconds(cpu, all, double(panels)) + nanoseconds(cpu, weights, 1);
  const double inside = nanoseconds(cpu, all, 1) + nanoseconds(cpu, weights, blocks);
  b.panels_inside = inside < kGain * outside && (b.count > 1 || b.images_outside);
  return b.panels_inside ? b : RowBlocks{};
}

Contraction with_images_outside(Contraction m) {
  m.outer.push_back(m.rows[0]);
  m.rows.erase(m.rows.begin());
  return m;
}

}  // namespace tc
