// The part of a buffer that a statement touches, as a box, and the nests that fill buffers.
#pragma once
#include <optional>
#include <vector>

#include "passes/analysis/dependence.h"
#include "passes/analysis/nest.h"

namespace tc {

/// Elements begin[d] .. begin[d] + size[d] - 1 of a buffer, in every dimension.
struct Region {
  Exprs begin;  // over variables that are visible outside the statement
  Dims size;
  std::vector<bool> in;  // per dimension: the box never leaves the buffer
};

/// A box that holds all accesses of `list` to `b` (scalar ones; nullopt for vectors and buffers of run-time size).
/// `inner`: variables that `begin` must not use. `outer`: what is known where the region is used.
std::optional<Region> region_of(const std::vector<Access>& list, const Buffer& b, const std::vector<Var>& inner,
                                const Ranges& outer);

/// `begin + i` for every dimension, and the condition that it lies in the buffer (null: it always does).
Exprs index_in(const Region& r, const Exprs& i);
Expr inside(const Region& r, const Buffer& b, const Exprs& i);

/// Whether the stores to `b` in `s` reach every element of the region that lies in the buffer whenever `s` runs: one of
/// them counts through the box without gaps, and nothing but the buffer's own bounds is asked on the way. `plain`: only
/// stores that do not join count. `outer`: of the variables around `s`.
bool fills(const Stmt& s, const Buffer& b, const Region& r, bool plain, const Ranges& outer = {});

/// A nest in the form of lower_naive: `for a0: ... for an: point`, where every store to the buffer is at [a0, ..., an].
struct PlainNest {
  Stmt stmt;                      // the nest
  std::vector<Var> vars;          // per dimension of the buffer
  std::vector<const For*> loops;  // in the order in which they stand
  Stmt point;
};
std::optional<PlainNest> plain_nest(const Stmt& s, const Buffer& b);
/// The point of the nest at `index`, with names of its own.
Stmt point_at(const PlainNest& n, const Exprs& index);

/// Statements one after the other, seen through allocations and comments.
Stmts siblings_of(const Stmt& s);
/// `s` and where its buffer `b` is allocated; null if it is not.
const Alloc* find_alloc(const Stmt& s, const Buffer& b, Stmt* where = nullptr);

bool touches(const Accesses& a, const Buffer& b, bool reads, bool writes);
/// Loads of `b` moved: index -> index - begin, in another buffer; stores too.
Stmt redirect(const Stmt& s, const Buffer& from, const Buffer& to, const Exprs& begin);

/// Simplifies the expressions of `s`, drops decided conditions and what they leave empty; keeps every other loop.
Stmt tidy(const Stmt& s, const Ranges& ranges);

}  // namespace tc
