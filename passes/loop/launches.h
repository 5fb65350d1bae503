// The launches of a CUDA schedule, one by one.
#pragma once
#include <functional>
#include <vector>

#include "ir/loop/ir.h"

namespace tc {

/// `f` of every launch, and of what runs in a single thread. The host's part around them (scratch memory, comments, serial
/// loops) stays.
Stmt each_launch(const Stmt& s, const std::function<Stmt(const Stmt& launch)>& f);

/// Does another of the launches read what these buffers stand for? Then more of it is needed than who calls the kernel needs.
bool is_read_elsewhere(const std::vector<Stmt>& launches, const Stmt& launch, const std::vector<Buffer>& memory);

/// Exchanges between the threads of each launch: reductions over a block and a warp's memory are lowered, barriers are
/// inserted (thread_sync). Where a template has inserted barriers it has inserted all of them.
Stmt synchronise(const Stmt& s);

}  // namespace tc
