#include "templates/cuda/schedule_cuda.h"

#include "templates/cuda/attention.h"
#include "templates/cuda/template.h"
#include "templates/join_stages.h"

namespace tc {
namespace {

// Each part by the template that fits it.
std::optional<Scheduled> cuda_stages(const CudaArgs& a) {
  auto part = [&](const TensorFn& fn, const std::vector<bool>& constant) {
    return schedule_cuda(fn, constant, a.gpu, a.options);
  };
  return join_stages(a.fn, a.constant_input, part, true);
}

struct Template {
  std::string_view name;
  std::optional<Scheduled> (*make)(const CudaArgs& a);
};

// In order; the first that knows the shape of the computation builds the loops.
constexpr Template kTemplates[] = {
    {"transpose", cuda_transpose},          // no reduction, neighbours of the result are far apart in an operand
    {"elementwise", cuda_elementwise},      // no reduction
    {"matrix_vector", cuda_matrix_vector},  // sums of products with few rows
    {"contraction", cuda_contraction},      // sums of products
    {"window", cuda_window},                // pooling, depthwise convolutions, channels last
    {"columns", cuda_columns},              // one reduction across rows, or few and long ones
    {"rows", cuda_rows},                    // reductions along rows, with several stages around them
    {"per_result", cuda_per_result},        // one reduction, its epilogue: a thread per result
    {"attention", cuda_attention},          // two sums of products with a softmax in between
    {"prefix_scan", cuda_prefix_scan},      // few long sequences of sums, each of which goes on from the one before
    {"recurrence", cuda_recurrence},        // stages that advance together, with sums over their past
    {"scan", cuda_scan},                    // stages that advance together
    {"stages", cuda_stages},                // several of these, one after the other
    {"stage", cuda_stage},                  // any other formula: a thread per result
    {"sort", cuda_sort},                    // top-k
    {"nest", cuda_nest},                    // loops that no formula says
    {"naive", cuda_naive},                  // what a stated schedule makes of the definition's loops
};

// A template's loops, where it is the one that is stated. What it decides is a line of the plan and those behind it.
std::optional<Scheduled> schedule_by(const Template& t, CudaArgs args) {
  Planner* const planner = args.options.planner;
  if (planner && !planner->wants(t.name)) return {};
  const size_t mark = planner ? planner->size() : 0;
  args.plan = PlanEntry(planner, t.name);
  std::optional<Scheduled> s = t.make(args);
  if (planner && !s) planner->forget_from(mark);
  return s;
}

}  // namespace

Scheduled schedule_cuda(const TensorFn& fn, const std::vector<bool>& constant_input, const CudaModel& gpu,
                        const ScheduleOptions& options) {
  check(constant_input.size() == fn.inputs.size(), "one flag per input");
  const std::optional<Canonical> canonical = canonicalize(fn);
  const CudaArgs args{fn, canonical ? &*canonical : nullptr, constant_input, gpu, options};
  for (const Template& t : kTemplates)
    if (auto s = schedule_by(t, args)) return std::move(*s);
  if (options.planner && options.planner->applies())
    options.planner->refuse(
        "no template of that name takes this function; the model's choice is what --write-schedules writes");
  throw InternalError("no schedule for " + to_text(fn));
}

bool cuda_region_pays(const TensorFn& fn, const std::vector<bool>& constant_input, const CudaModel& gpu,
                      const ScheduleOptions& options) {
  return cuda_attention_pays({fn, nullptr, constant_input, gpu, options});
}

}  // namespace tc
