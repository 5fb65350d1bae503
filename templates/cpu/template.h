// The schedule templates of a CPU, one file each. A template looks at the canonical form of a function and either
// returns its loops or nothing, when the computation has another shape.
#pragma once
#include "templates/canonical.h"
#include "templates/cpu/cpu_model.h"
#include "templates/packed.h"

namespace tc {

struct TemplateArgs {
  const TensorFn& fn;
  const Canonical* canonical;  // null: the function has no canonical form
  const std::vector<bool>& constant_input;
  const CpuModel& cpu;
  const ScheduleOptions& options;
  bool few_columns = false;  // contractions of two columns and more: there is no better form
};

std::optional<Scheduled> schedule_winograd(const TemplateArgs& a);
std::optional<Scheduled> schedule_contraction(const TemplateArgs& a);
std::optional<Scheduled> schedule_subpixels(const TemplateArgs& a);
std::optional<Scheduled> schedule_window_rows(const TemplateArgs& a);
std::optional<Scheduled> schedule_window(const TemplateArgs& a);
std::optional<Scheduled> schedule_rows(const TemplateArgs& a);
std::optional<Scheduled> schedule_arg_reduce(const TemplateArgs& a);
std::optional<Scheduled> schedule_transpose(const TemplateArgs& a);
std::optional<Scheduled> schedule_interleaved_store(const TemplateArgs& a);
std::optional<Scheduled> schedule_shared_values(const TemplateArgs& a);
std::optional<Scheduled> schedule_elementwise(const TemplateArgs& a);
std::optional<Scheduled> schedule_recurrence(const TemplateArgs& a);
std::optional<Scheduled> schedule_naive(const TemplateArgs& a);

/// Whether all loads of `e`, which may read fn.inputs or their flat views, are of operands known at compile time.
inline bool is_constant(const Expr& e, const TemplateArgs& a) { return is_constant(e, *a.canonical, a.constant_input); }

/// Fills the border around the interior that a template stores; null if there is none.
Stmt fill_border(const Canonical& c);

/// Fewer scalar operations than this are not worth waking a second thread.
inline constexpr int64_t kParallelThreshold = 1 << 15;

}  // namespace tc
