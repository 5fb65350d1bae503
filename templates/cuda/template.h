// The schedule templates of a GPU, one file each. A template looks at a function, or at its canonical form, and either
// returns its loops or nothing, when the computation has another shape.
//
// The body of a CUDA schedule is a sequence of launches, each one nest: Block loops outermost, inside them the Allocs
// of Shared buffers, inside them Thread loops, inside them the code of a thread with its Barriers. Block and Thread
// loops have constant extents and begin at 0; an axis occurs once in a nest. Launches run one after the other: what one
// stores, the next may read. A Serial loop of constant extent around launches makes them once an iteration. Memory
// between launches is an Alloc of scope Workspace around them. A statement outside of any nest runs in a single thread.
#pragma once
#include <functional>
#include <string>

#include "ir/loop/cuda_limits.h"
#include "passes/schedule/planner.h"
#include "passes/schedule/primitives.h"
#include "templates/canonical.h"
#include "templates/cuda/cuda_model.h"

namespace tc {

struct CudaArgs {
  const TensorFn& fn;
  const Canonical* canonical;  // null: the function has no canonical form
  const std::vector<bool>& constant_input;
  const CudaModel& gpu;
  const ScheduleOptions& options;
  PlanEntry plan = {};  // where the template's own decisions are made
};

/// Declines all but attention (match_cuda_attention), and what no plan fits.
std::optional<Scheduled> cuda_attention(const CudaArgs& a);
/// Declines reductions, and operands whose neighbours are the result's.
std::optional<Scheduled> cuda_transpose(const CudaArgs& a);
/// Declines reductions and what has no canonical form.
std::optional<Scheduled> cuda_elementwise(const CudaArgs& a);
/// Declines what is no sum of products, more than a few rows, short sums, and strict_fp.
std::optional<Scheduled> cuda_matrix_vector(const CudaArgs& a);
/// Declines what is no sum of products of f32 or i32, and grids that are too large.
std::optional<Scheduled> cuda_contraction(const CudaArgs& a);
/// Declines what is no reduction over a window with channels last.
std::optional<Scheduled> cuda_window(const CudaArgs& a);
/// Declines combiners of several values, narrow sums, strict_fp, and results whose neighbours read no neighbours.
std::optional<Scheduled> cuda_columns(const CudaArgs& a);
/// Declines stages that do not walk the same rows, rows that overlap, too few of them to keep the GPU busy; sums under
/// strict_fp.
std::optional<Scheduled> cuda_rows(const CudaArgs& a);
/// Declines what is no single reduction in canonical form.
std::optional<Scheduled> cuda_per_result(const CudaArgs& a);
/// Declines several stages, nests and scans.
std::optional<Scheduled> cuda_stage(const CudaArgs& a);
/// Declines all but running sums, products and extremes of sequences whose number has no upper bound.
std::optional<Scheduled> cuda_prefix_rows(const CudaArgs& a);
/// Declines all but running sums, products and extremes of 4 or 8 bytes, few steps, many sequences; floats under
/// strict_fp.
std::optional<Scheduled> cuda_prefix_scan(const CudaArgs& a);
/// Declines all but scans with sums of products of their own past; strict_fp.
std::optional<Scheduled> cuda_recurrence(const CudaArgs& a);
/// Declines what is no single scan.
std::optional<Scheduled> cuda_scan(const CudaArgs& a);
/// Declines all but top-k (ir/ops/top_k.h).
std::optional<Scheduled> cuda_sort(const CudaArgs& a);
/// Takes every function.
std::optional<Scheduled> cuda_nest(const CudaArgs& a);
/// The loops of the definition under the steps of a stated schedule. Declines where none is stated.
std::optional<Scheduled> cuda_naive(const CudaArgs& a);
/// Steps over the plain loops, whose sizes are numbers: for who looks for better ones, never the model's choice. Declines where no
/// step is possible.
std::optional<Scheduled> cuda_sketch(const CudaArgs& a);

/// Why loops under steps are no sequence of launches as described above; "" if they are.
std::string why_no_kernel(const Stmt& s);
/// Gives independent iterations of every nest outside of launches a thread each; the threads of a block are a number of the plan.
/// `apart`: loops of several launches have names of their own, so that the steps give the same text when they are read again.
void bind_independent(Schedule& s, const PlanEntry& plan, bool apart);

/// Of a thread's own arrays, where nothing else is known.
inline constexpr int64_t kThreadBytes = 1024;

/// `body` for `count` pieces, shared by the `threads` threads of a block; it gets the numbers of iteration and piece.
/// `kind`: of the loop over iterations, where there are several.
Stmt pieces_by_thread(int64_t count, const Var& thread, int64_t threads, ForKind kind,
                      const std::function<Stmt(const Expr& iteration, const Expr& piece)>& body);

/// "sum", "product", "max" or "min"; "acc" for other operations.
std::string name_of_reduction(Op op);

/// Threads of a block where nothing else is known.
inline constexpr int64_t kBlockThreads = 256;

/// The code at a point of a reduction: start value, sum, result. `name`: of the sum.
Stmt reduce_at_point(const Canonical& c, const std::string& name);
/// The plain loops over `axes`, whose iterations are independent of each other, around the code at a point.
Schedule point_loops(const std::vector<Axis>& axes, const Stmt& body, const ScheduleOptions& options = {});
/// Makes loops right inside each other a launch with a thread per point. `threads`: of a block, a multiple of a warp's; fewer
/// points have fewer. `apart`: the new loops have names that nothing else has.
void bind_points(Schedule& s, const std::vector<Var>& loops, int64_t threads, bool apart = false);
/// Both; null if there is no point.
Stmt thread_per_point(const std::vector<Axis>& axes, const Stmt& body, int64_t threads = kBlockThreads);
/// Decides on the threads of a block of thread_per_point() over `points` points, as a number of the plan.
/// Which dimension of a grid has each of three loops of blocks: x, y and z, but x, the longest, for the second or third where y and z
/// are too short for it and not for the first. Null where none fits.
std::optional<std::array<ForKind, 3>> grid_kinds(int64_t first, int64_t second, int64_t third = 1);

int64_t decide_threads(const PlanEntry& plan, int64_t points, const std::string& name = "threads");
/// The same points, shared by the `threads` threads of a block; `thread` is the index of a thread.
Stmt points_by_thread(const std::vector<Axis>& axes, const Stmt& body, const Var& thread, int64_t threads);

/// `s` where `condition` holds; null: always.
Stmt if_some(const Expr& condition, const Stmt& s);

/// The buffer with another scope: a buffer of its own.
Buffer in_scope(const Buffer& b, Scope scope);

/// A launch that fills the border around the interior that a template stores; null if there is none.
Stmt border_launch(const Canonical& c);

/// All operands of the function, as they are.
Scheduled with_operands(const TensorFn& fn, std::string family, std::string description);

}  // namespace tc
