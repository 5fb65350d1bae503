// The conditions by which each result of a sum takes every s-th term only, and the subpixels of an axis.
#pragma once
#include "templates/canonical.h"

namespace tc {

/// (o + constant - k * dilation) mod stride = 0
struct SubpixelCondition {
  Axis o, k;  // without a variable: the one position or term
  int64_t stride = 1, dilation = 0, constant = 0;
};

/// Neighbouring subpixels that one function computes.
struct SubpixelRun {
  int64_t subpixel = 0, count = 1;  // first, number
  int64_t results = 0, terms = 0;   // of each subpixel
  int64_t first = 0, slope = 0;     // first term of the first subpixel, and how it moves
  int64_t step = 1;
};

/// The conditions that all have to hold; null where `e` is anything else, or two of them are of one axis.
std::optional<std::vector<SubpixelCondition>> subpixel_conditions(const Expr& e, const Canonical& c);

/// The subpixels of one axis, in order; neighbours are joined where that is possible and `join` is set.
std::vector<SubpixelRun> subpixel_runs(const SubpixelCondition& p, bool join);

/// Axis o becomes the subpixel, where there are several, which is returned, and the number of the result; `to` says what stands for o.
Expr split_results(std::vector<Axis>& axes, const SubpixelCondition& p, const SubpixelRun& r, VarMap& to);
/// The same of the terms: those that the subpixel takes.
void split_terms(std::vector<Axis>& raxes, const SubpixelCondition& p, const SubpixelRun& r, const Expr& subpixel,
                 VarMap& to);
/// "oh mod 2 = 0 to 1"
std::string describe(const SubpixelCondition& p, const SubpixelRun& r);

}  // namespace tc
