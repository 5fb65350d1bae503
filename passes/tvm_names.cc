#include "passes/tvm_names.h"

#include <utility>

namespace tc {

std::string_view tvm_name(std::string_view graph_pass) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"dynamic_to_static", "InferType, DynamicToStatic"},
      {"dead_code", "DeadCodeElimination"},
      {"widen_halves", "ToMixedPrecision, the other way round"},
      {"simplify_inference", "SimplifyInference"},
      {"eliminate_identity", "SimplifyExpr"},
      {"eliminate_common_subexpr", "EliminateCommonSubexpr"},
      {"qlinear_to_qdq", "CanonicalizeOps of QNN"},
      {"realize_quantization", "FakeQuantizationToInteger"},
      {"canonicalize_ops", "CanonicalizeOps, Legalize"},
      {"simplify_expr", "SimplifyExpr, CanonicalizeCast"},
      {"fold_constant", "FoldConstant"},
      {"hoist_from_loops", "PartialEvaluate"},
      {"fold_scale_axis", "FoldScaleAxis"},
      {"combine_parallel_dense", "CombineParallelDense, CombineParallelBatchMatmul"},
      {"combine_parallel_conv2d", "CombineParallelConv2D"},
      {"convert_layout", "ConvertLayout"},
      {"explicit_pad", "FoldExplicitPadding, the other way round"},
      {"to_functions", "the lowering of Relay to TE"},
      {"infer_bounds", "InferBound of TE, between functions"},
      {"fuse_ops", "FuseOps"},
      {"to_mixed_precision", "ToMixedPrecision"},
  };
  for (const auto& [name, tvm] : kNames)
    if (name == graph_pass) return tvm;
  return {};
}

}  // namespace tc
