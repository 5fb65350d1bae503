// See outline_chunks.cc.
#pragma once
#include "ir/program.h"

namespace tc {

/// Sets k.parts, k.part_views and k.part_names. Needs: no loop of kind Parallel inside of another statement than Let, Alias, Alloc, Seq,
/// Comment and serial loops.
void outline_chunks(Kernel& k);

}  // namespace tc
