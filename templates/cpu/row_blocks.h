// How the rows of a sum of products are cut for the caches. See row_blocks.cc.
#pragma once
#include "templates/cpu/contraction.h"

namespace tc {

struct RowBlocks {
  bool panels_inside = false;   // a block of rows meets all panels before the next block comes; else a panel all blocks
  bool images_outside = false;  // of rows with three axes, the first is none of a block, but of what goes around blocks
  int64_t count = 1;            // blocks, where panels are inside
};

/// Into how many blocks threads share `runs` of rows, each of which is nobody else's neighbour but at one edge.
int64_t blocks_for_threads(int64_t runs);

/// What moves the fewest bytes. `panels` of the right factor, tiles of `tile_rows` rows. Nothing but `m` and the processor decide on the
/// order; the count may be another.
RowBlocks choose_cache_blocks(const Contraction& m, const CpuModel& cpu, int64_t panels, int64_t tile_rows);

/// The same contraction, the first of three row axes being an outer one.
Contraction with_images_outside(Contraction m);

}  // namespace tc
