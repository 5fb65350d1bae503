#include "templates/cuda/schedule_cuda.h"

#include "templates/choose_template.h"
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

// In order; the first that knows the shape of the computation builds the loops.
constexpr Template<CudaArgs> kTemplates[] = {
    {"transpose", cuda_transpose},          // no reduction, neighbours of the result are far apart in an operand
    {"elementwise", cuda_elementwise},      // no reduction
    {"matrix_vector", cuda_matrix_vector},  // sums of products with few rows
    {"contraction", cuda_contraction},      // sums of products
    {"window", cuda_window},                // pooling, depthwise convolutions, channels last
    {"columns", cuda_columns},              // one reduction across rows, or few and long ones
    {"rows", cuda_rows},                    // reductions along rows, with several stages around them
    {"per_result", cuda_per_result},        // one reduction, its epilogue: a thread per result
    {"attention", cuda_attention},          // two sums of products with a softmax in between
    {"prefix_rows", cuda_prefix_rows},      // sequences of sums whose number has no upper bound
    {"prefix_scan", cuda_prefix_scan},      // few long sequences of sums, each of which goes on from the one before
    {"recurrence", cuda_recurrence},        // stages that advance together, with sums over their past
    {"scan", cuda_scan},                    // stages that advance together
    {"stages", cuda_stages},                // several of these, one after the other
    {"stage", cuda_stage},                  // any other formula: a thread per result
    {"sort", cuda_sort},                    // top-k
    {"nest", cuda_nest},                    // loops that no formula says
    {"naive", cuda_naive},                  // what a stated schedule makes of the definition's loops
    {"sketch", cuda_sketch},                // the same by numbers, where they are asked for
};

}  // namespace

Scheduled schedule_cuda(const TensorFn& fn, const std::vector<bool>& constant_input, const CudaModel& gpu,
                        const ScheduleOptions& options) {
  check(constant_input.size() == fn.inputs.size(), "one flag per input");
  const std::optional<Canonical> canonical = canonicalize(fn);
  return choose_template<CudaArgs>(kTemplates, {fn, canonical ? &*canonical : nullptr, constant_input, gpu, options});
}

std::vector<std::string_view> cuda_templates() {
  std::vector<std::string_view> names;
  for (const Template<CudaArgs>& t : kTemplates) names.push_back(t.name);
  return names;
}

bool cuda_region_pays(const TensorFn& fn, const std::vector<bool>& constant_input, const CudaModel& gpu,
                      const ScheduleOptions& options) {
  return cuda_attention_pays({fn, nullptr, constant_input, gpu, options});
}

}  // namespace tc
