// Which loops of a nest may run over lanes of vectors, as it stands or with operands copied in another order.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "ir/loop/ir.h"

namespace tc {

/// Whether the stores in `s` have a vector form whose lanes are iterations of `v`; sums in registers then are vectors.
bool runs_in_lanes(const Stmt& s, const Var& v);

/// Operands whose elements for neighbouring results lie apart, and the dimension along which they are neighbours. Looked up only.
using OperandsApart = std::map<Buffer, size_t>;
/// Those of `s` for results along `v`; null where there are none, or a copy in another order would not bring them together.
std::optional<OperandsApart> operands_apart(const Stmt& s, const Var& v);
/// The order of a copy's dimensions in which `last` is the last one.
std::vector<int64_t> order_with(size_t rank, size_t last);
/// `s` as if those operands were copied.
Stmt brought_together(const Stmt& s, const OperandsApart& apart);

}  // namespace tc
