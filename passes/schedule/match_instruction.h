// Whether loops around a store compute what a row of the table of instructions says (tensorize.cc).
#pragma once
#include <optional>
#include <vector>

#include "ir/loop/instruction.h"

namespace tc {

/// Loops right inside each other, and the store inside of them.
struct StoreNest {
  std::vector<const For*> loops;
  const Store* store = nullptr;
};
/// Null if `s` is anything else, or the store is one of vectors.
std::optional<StoreNest> store_nest(const Stmt& s);

/// Where an operand lies: at `begin`, an index of the buffer's elements if it is memory, else one of its last axis behind
/// `lead`. `steps`: of the nest's loops.
struct OperandPlace {
  Buffer buffer;
  Exprs lead;
  Expr begin;
  std::vector<int64_t> steps;
};

/// How the nest is the row.
struct MatchedNest {
  std::vector<OperandPlace> places;             // of its operands
  std::vector<std::optional<int64_t>> scalars;  // that the nest says
  std::optional<size_t> lanes;                  // the loop over lanes
};

/// The nest as the row, if it is that. `meaning`: what the row does with operands of such types.
std::optional<MatchedNest> match_instruction(const Instruction& row, const StoreNest& nest, Stmt& meaning);

}  // namespace tc
