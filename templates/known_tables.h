// Tables that a function computes from nothing but positions: how many taps an average has, weights of a resize.
#pragma once
#include <optional>

#include "passes/schedule/schedule.h"

namespace tc {

/// A function without the stages that need no operand, and a function of these stages, which compiling evaluates.
struct KnownTables {
  TensorFn rest;    // the tables it reads follow the inputs of the whole function
  TensorFn tables;  // no inputs
};

/// Null if there is no table worth it: of numbers that are not read from operands, with floats in their computation, and
/// with fewer points than a stage that reads them.
std::optional<KnownTables> known_tables(const TensorFn& fn);

/// The schedule of `rest`, which reads the tables as operands, as one of the whole function: they become outputs of the
/// prologue.
Scheduled with_known_tables(Scheduled s, const KnownTables& k);

}  // namespace tc
