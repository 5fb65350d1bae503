// Which registers of loops of kind Vector may stay registers, and how much room they need. For lower_lanes.
#pragma once
#include <functional>
#include <set>

#include "ir/loop/ir.h"
#include "ir/loop/max_lanes.h"

namespace tc {

using Buffers = std::set<const BufferDef*>;  // looked up only

void for_each_access(const Stmt& body, const std::function<void(const Buffer&, const Exprs&)>& look);

/// To whole vectors, however many lanes they have.
inline int64_t round_up(int64_t n) { return (n + kMaxLanes - 1) / kMaxLanes * kMaxLanes; }

/// Before loops become vectors: registers are reached by whole vectors from their first element on; those that are not lie in
/// memory.
Stmt settle_unaligned(const Stmt& s);
/// Registers of which a vector stores fewer lanes than others read lie in memory, where lanes that do not exist stay as they
/// are.
Stmt settle_partial(const Stmt& s);
/// Behind it: registers that are reached in vectors, whoever made these, and one element at a time as well.
Buffers mixed_registers(const Stmt& s);
/// Behind it: registers of vectors have room for whole ones; those of `kept` that are read one element at a time as well lie in
/// memory.
Stmt settle_registers(const Stmt& s, const Buffers& kept);

}  // namespace tc
