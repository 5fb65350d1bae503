// Operands that are known at compile time, in the order in which the loops of a schedule read them.
#pragma once
#include "templates/canonical.h"

namespace tc {

/// Whether all loads of `e`, which may read the operands or their flat views, are of operands known at compile time;
/// one flag per operand.
bool is_constant(const Expr& e, const Canonical& c, const std::vector<bool>& constant_input);

/// The prologue that stores `value` (it reads the operands) at every point of `axes`, row-major, and the flat view that
/// the body reads. The buffer is named after the first operand that `value` reads. `layout`: text for the weight's
/// comment.
Buffer add_packed(Scheduled& s, const Canonical& c, std::vector<Axis> axes, const Expr& value, std::string layout);

/// The same, and the read of the buffer at the axes' point.
Expr read_packed(Scheduled& s, const Canonical& c, const std::vector<Axis>& axes, const Expr& value);

/// `e` with its largest parts that are computed from known operands and depend on `lane` alone read from a buffer of their
/// own: scales of channels. Loads and conversions of loads stay.
Expr pack_known(Scheduled& s, const Canonical& c, const std::vector<bool>& constant_input, const Expr& e,
                const Axis& lane);

/// `e` with reads of known operands that depend on `lane` alone, and run through them otherwise than evenly, from a buffer of their own:
/// channels of which several columns are.
Expr pack_known_loads(Scheduled& s, const Canonical& c, const std::vector<bool>& constant_input, const Expr& e,
                      const Axis& lane);

/// The prologue of sum(raxes) value.
Buffer add_packed_sums(Scheduled& s, const Canonical& c, std::vector<Axis> axes, std::vector<Axis> raxes,
                       const Expr& value, std::string layout);

}  // namespace tc
