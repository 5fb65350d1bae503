// From which iteration of a loop on a store lies behind what is needed.
#pragma once
#include <functional>
#include <optional>

#include "passes/loop/live_stores.h"

namespace tc {

/// The number of the first iteration of `f` whose store at `c` lies behind the first `number` elements of the axis, of a loop over
/// vectors that of its first element; nothing where that is not known, or where an element has all iterations. `stands`: is it the
/// variable of a loop, or a name, around this one? `exact` becomes false where an iteration is not one element of the axis.
std::optional<Expr> end_of_store(const For& f, const Expr& number, const LiveCoordinate& c, const LiveStores& stores,
                                 const std::function<bool(const Expr&)>& stands, bool& exact);

}  // namespace tc
