// The form in which schedule templates see a fused function: injective stages inlined into their consumers, every
// buffer flat (rank 1) with affine offsets, at most one reduction followed by one pointwise epilogue, a trailing zero
// border set apart. Templates then classify axes by arithmetic on coefficients, whatever operator the function came
// from.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/schedule/schedule.h"
#include "templates/points.h"

namespace tc {

/// constant + sum(coefficient * axis): an offset into a flat buffer.
struct Offset {
  int64_t constant = 0;
  std::map<const VarDef*, int64_t> coefficient;  // no order comes from it; absent: 0
  int64_t of(const Var& v) const;
};

/// A border of a constant around the result: the function fills `out` of the given dims, the interior starts at
/// `begin`.
struct Border {
  Dims dims, begin, interior;
  Expr value;
};

struct Canonical {
  std::vector<Axis> axes;   // data-parallel, extents > 1, outermost first
  std::vector<Axis> raxes;  // of the reduction, extents > 1
  Expr value;               // what is reduced, over axes and raxes; null: no reduction
  Expr shaped_value;        // the same before buffers were made flat: reads fn.inputs
  Op combine = Op::Add;
  Expr init;                 // joins first; over axes
  Buffer reduced;            // rank 0: its load in `epilogue` stands for the reduced value
  Expr epilogue;             // over axes
  Buffer out, original_out;  // flat, and fn.outputs[0]
  Expr out_index;            // over axes, affine
  std::optional<Border> border;
  std::vector<Buffer> inputs;     // flat views of all inputs of the function
  std::vector<Buffer> originals;  // fn.inputs
  std::string name;               // of the reduction, or of the last stage
};

/// Null if the function has another form (several outputs or reductions, scans, nests, run-time sizes), or a formula of
/// more than `largest` nodes, shared ones counted each time: what would be printed.
std::optional<Canonical> canonicalize(const TensorFn& fn, int64_t largest = 4000);

/// The offset of a load or store in terms of `vars`; null unless it is affine in them with a constant rest.
std::optional<Offset> offset_of(const Expr& index, const std::vector<Var>& vars);
/// All loads of `e` but those of `except`, each once: equal ones may be one expression or several.
std::vector<const Load*> loads_of(const Expr& e, const Buffer& except = nullptr);
/// `e` with `value` for the loads of the scalar `reduced`.
Expr with_reduced(const Expr& e, const Buffer& reduced, const Expr& value);
/// True if `v` occurs in `e` outside of load indices.
bool uses_as_value(const Expr& e, const Var& v);

/// Whether n neighbours along `inner` lie side by side and begin on n elements wherever the other axes are.
bool begins_on(const Offset& o, const Var& inner, int64_t n);

/// sum(coefficient * at[var]) + constant: larger strides first.
Expr offset_expr(const Offset& o, const std::vector<std::pair<Var, Expr>>& at);

/// Merges neighbours of `axes` which every index among `loads`' expressions and `indices` walks as one axis: with b the
/// inner one, coefficient(a) = coefficient(b) * extent(b). Rewrites the expressions in place.
/// None of `apart` becomes the inner one.
void merge_axes(std::vector<Axis>& axes, std::vector<Expr*> values, std::vector<Expr*> indices,
                const std::vector<Var>& apart = {});

/// Keeps the inputs that the body reads, sets views and outputs.
void bind_operands(Scheduled& s, const Canonical& c);

}  // namespace tc
