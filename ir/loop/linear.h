// Linear forms of index expressions and interval arithmetic: what simplify.cc and its neighbours share.
#pragma once
#include <vector>

#include "ir/loop/ir.h"
#include "ir/loop/simplify.h"

namespace tc {

/// constant + sum(coefficient * atom). Atoms are what is not a sum or a multiple (variables, divisions, products of
/// variables); they are distinct, in order of appearance. Arithmetic wraps, as I64 does.
struct Linear {
  struct Term {
    Expr atom;
    int64_t coefficient;
  };
  std::vector<Term> terms;
  int64_t constant = 0;

  void add(const Expr& atom, int64_t coefficient);
  void add(const Linear& other, int64_t times = 1);
  bool is_constant() const { return terms.empty(); }
  /// The atom, if the form is that atom and nothing else; else null.
  Expr single() const;
};

/// Of a scalar I64 expression.
Linear linear_form(const Expr& e);
/// Terms in order; a positive one leads when there is one; the constant is last.
Expr to_expr(const Linear& l);

/// Quiet comparison of atoms: same node, same variable, or same tree.
bool same_atom(const Expr& a, const Expr& b);

// --- intervals: the ends of int64 stand for "not bounded"
inline constexpr Range kAnything{INT64_MIN, INT64_MAX};
inline bool bounded(const Range& r) { return r.min != INT64_MIN && r.max != INT64_MAX; }
Range operator+(const Range& a, const Range& b);
Range operator*(const Range& a, const Range& b);
Range join(const Range& a, const Range& b);

/// Always an interval, kAnything if nothing is known. Of places and extents: I64 arithmetic is taken not to overflow; narrower
/// types that may wrap give the range of their type.
Range interval(const Expr& e, const Ranges& ranges);
Range interval(const Linear& l, const Ranges& ranges);
/// Of what may be the model's own numbers: I64 arithmetic that is not bounded may wrap, too.
Range value_interval(const Expr& e, const Ranges& ranges);

int64_t floor_div_int(int64_t a, int64_t b);  // b > 0
int64_t floor_mod_int(int64_t a, int64_t b);

/// The values that the variable of a loop takes.
Range loop_range(const For& f, const Ranges& ranges);

/// Narrows `ranges` by what `condition` says about single variables.
void assume(Ranges& ranges, const Expr& condition, bool holds);

}  // namespace tc
