// Axes as both targets look at them.
#pragma once
#include <optional>

#include "templates/canonical.h"

namespace tc {

/// Whether the variable of one of the axes occurs.
bool uses_any(const Expr& e, const std::vector<Axis>& axes);
/// The axis along which neighbours of the result lie side by side; null if there is none.
std::optional<Axis> unit_axis(const Canonical& c);

}  // namespace tc
