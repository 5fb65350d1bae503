// The schedule templates of a CPU, one file each. A template looks at the canonical form of a function and either
// returns its loops or nothing, when the computation has another shape.
#pragma once
#include "passes/schedule/planner.h"
#include "templates/canonical.h"
#include "templates/cpu/cpu_model.h"
#include "templates/join_stages.h"
#include "templates/packed.h"

namespace tc {

struct TemplateArgs {
  const TensorFn& fn;
  const Canonical* canonical;  // null: the function has no canonical form
  const std::vector<bool>& constant_input;
  const CpuModel& cpu;
  const ScheduleOptions& options;
  bool few_columns = false;  // contractions of two columns and more: there is no better form
  PlanEntry plan = {};       // where the template's own numbers are decided
  bool no_columns = false;   // no vectors of results: the only other form is plain loops
};

/// 3 x 3 convolutions of stride 1 by Winograd's filtering. Declines under strict_fp, others than f32, weights that are
/// not known, fewer than 32 channels, channels that are no whole vectors, images of fewer than 7 rows or columns, where the direct
/// sum is cheaper, and results that end early in some runs.
std::optional<Scheduled> schedule_winograd(const TemplateArgs& a);
/// Sums of products of f32 or bytes. Declines if no axis of at least 4 has unit stride in the result, if both factors
/// read that axis or none does, or if an index is not affine.
std::optional<Scheduled> schedule_contraction(const TemplateArgs& a);
/// Sums of products that schedule_contraction takes if one factor is known: it is packed in every run. Declines where each weight is used
/// a few times only, and results that end early.
std::optional<Scheduled> schedule_packed_at_run(const TemplateArgs& a);
/// Sums of products of f32 with known weights and few columns, whose terms lie side by side. Declines under strict_fp, costly
/// epilogues, pieces of fewer than 8 terms, and columns enough to fill vectors.
std::optional<Scheduled> schedule_dots(const TemplateArgs& a);
/// Sums of products of f32 that lie side by side along the sum in both factors, neither known. Declines under strict_fp, many rows on
/// both sides, short sums, and costly epilogues.
std::optional<Scheduled> schedule_row_products(const TemplateArgs& a);
/// Sums of products of f32 with known weights that are numbers of few bits (few_bits.h). Declines under strict_fp, batches,
/// and a border around the result.
std::optional<Scheduled> schedule_few_bits(const TemplateArgs& a);
/// Sums of products of bytes in blocks, with a scale for each block of both factors (block_products.cc). Declines others.
std::optional<Scheduled> schedule_block_products(const TemplateArgs& a);
/// Sums of which a result takes every s-th term. Declines without a condition of that form, and if no other template takes the parts.
std::optional<Scheduled> schedule_subpixels(const TemplateArgs& a);
/// Whether results that lie side by side are of different subpixels.
bool cuts_columns(const TemplateArgs& a);
/// Sums of products of bytes with a move in front of them or behind them: part by part. Declines others, and moves in front of what is no
/// product that schedule_contraction takes.
std::optional<Scheduled> schedule_moves_apart(const TemplateArgs& a, const SchedulePart& part);
/// Windows along the vectors. Declines others than f32 maxima, minima and sums (sums under strict_fp), wide strides,
/// long and short rows, and what schedule_window does in fewer steps.
std::optional<Scheduled> schedule_window_rows(const TemplateArgs& a);
/// Reductions whose results lie side by side. Declines types and combiners without vectors, results of fewer than 4
/// neighbours, and operands that cannot be read in vectors.
std::optional<Scheduled> schedule_window(const TemplateArgs& a);
/// Reductions along rows. Declines stages of other shapes (match_rows, Strict), what vectors cannot compute, strict_fp.
std::optional<Scheduled> schedule_rows(const TemplateArgs& a);
/// Arg-reductions across rows. Declines others: one reduction by a combiner of value and index, results of one value a
/// column, columns side by side.
std::optional<Scheduled> schedule_arg_reduce(const TemplateArgs& a);
/// Arg-reductions along rows. Declines others: one reduction by a combiner of floats and their positions, which decide ties,
/// results of one value a row, rows of fewer than 64 elements or with strides between them.
std::optional<Scheduled> schedule_arg_rows(const TemplateArgs& a);
/// Declines reductions, and results whose operands all lie side by side along the same axis; short axes and types of
/// odd sizes, too.
std::optional<Scheduled> schedule_transpose(const TemplateArgs& a);
/// Declines reductions, others than f32, and results that are not 2 to 4 interleaved vectors.
std::optional<Scheduled> schedule_interleaved_store(const TemplateArgs& a);
/// Costly functions of elements that lie apart. Declines reductions, what vectors can read as it lies, and costly functions that have no
/// vector form.
std::optional<Scheduled> schedule_gathered_lanes(const TemplateArgs& a);
/// Declines functions in which no position, or nothing that costs, is shared by all channels.
std::optional<Scheduled> schedule_shared_values(const TemplateArgs& a);
/// Declines reductions and what has no canonical form.
std::optional<Scheduled> schedule_elementwise(const TemplateArgs& a);
/// Declines what is no single scan, and a past that is not read as `t > 0 ? h[t - 1] : initial`.
std::optional<Scheduled> schedule_recurrence(const TemplateArgs& a);
/// Reductions of terms that only a part of a row has. Declines others, and conditions that are no bounds of the row's index.
std::optional<Scheduled> schedule_terms_in_range(const TemplateArgs& a);
/// Sums of which each goes on from the one before it. Declines other scans, results that are more than moved and converted, and
/// vectors across sums of another type than the results.
std::optional<Scheduled> schedule_prefix_sums(const TemplateArgs& a);
/// The first elements of rows in order of size. Declines others, and one element a row.
std::optional<Scheduled> schedule_top_k(const TemplateArgs& a);
/// Attention over keys of which the mask says at run time how many there are. Declines strict_fp, others than f32, heads that are
/// no whole vectors, and what is written otherwise than the definition in ir/ops/attention.cc.
std::optional<Scheduled> schedule_streaming_attention(const TemplateArgs& a);
/// Functions of which stages in front of a sum have no upper bound: these are computed where they are read. Declines where one would
/// have to be stored.
std::optional<Scheduled> schedule_inlined(const TemplateArgs& a);
/// Updates in rows that are joined with the rows of a result that data say. Declines others, updates that replace what is there, and
/// results that stay in the first cache or have few updates.
std::optional<Scheduled> schedule_scatter_rows(const TemplateArgs& a);
/// Takes every function.
std::optional<Scheduled> schedule_naive(const TemplateArgs& a);
/// Steps over the plain loops, whose sizes are numbers: for who looks for better ones, never the model's choice. Declines where no
/// step is possible.
std::optional<Scheduled> schedule_sketch(const TemplateArgs& a);
/// `fn`, which computes what a.fn does by a nest of other loops: what threads may share of them, vectors innermost. `what`: says so.
/// `caches`: steps in between, left out if one of them is refused.
Scheduled schedule_nest(const TemplateArgs& a, const TensorFn& fn, const std::string& family, const std::string& what,
                        const std::function<void(Schedule&)>& caches);
/// What becomes of the loops of a.fn after these steps.
Scheduled with_steps(const TemplateArgs& a, const Schedule& loops);

/// Whether all loads of `e`, which may read fn.inputs or their flat views, are of operands known at compile time.
inline bool is_constant(const Expr& e, const TemplateArgs& a) { return is_constant(e, *a.canonical, a.constant_input); }

/// Fills the border around the interior that a template stores; null if there is none.
Stmt fill_border(const Canonical& c);

/// Fewer scalar operations than this are not worth waking a second thread.
inline constexpr int64_t kParallelThreshold = 1 << 15;

}  // namespace tc
