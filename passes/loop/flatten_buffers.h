// flatten_buffers: buffers in memory get one axis.
#pragma once
#include <map>

#include "ir/loop/visit.h"

namespace tc {

/// Many-dimensional accesses become accesses of rank-1 buffers; Register buffers keep their shape. `flat` receives the
/// flat twin of every buffer that was replaced, parameters included.
Stmt flatten_buffers(const Stmt& s, BufferMap& flat);

}  // namespace tc
