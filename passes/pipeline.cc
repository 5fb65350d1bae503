// The pipelines: tables whose order is the way of a model through the compiler.
#include "passes/graph/passes.h"

namespace tc {

const std::vector<PassInfo>& graph_passes() {
  static const std::vector<PassInfo> list = {
      {"dynamic_to_static", 0, dynamic_to_static, "infers types and evaluates shape arithmetic"},
      {"dead_code", 0, dead_code, "removes what no output needs"},
      {"scan_first_axis", 0, scan_first_axis, "makes scans run along the first axis"},
      {"widen_halves", 1, widen_halves, "computes layers of halves in single precision, in C"},
      {"simplify_inference", 1, simplify_inference, "turns batch normalisation into a multiplication and an addition"},
      {"eliminate_identity", 1, eliminate_identity, "removes nodes that copy their operand"},
      // Equal operands are one value from here on; the patterns of the next two compare values.
      {"eliminate_common_subexpr", 1, eliminate_common_subexpr, "computes equal things once"},
      {"qlinear_to_qdq", 1, qlinear_to_qdq, "writes quantised operators as those of floats between quantisers"},
      {"realize_quantization", 0, realize_quantization,
       "multiplies quantised tensors as integers: in C, and for CUDA under --precision int8"},
      {"recognize_idioms", 1, recognize_idioms, "finds operators that exporters spell out in smaller ones"},
      {"canonicalize_ops", 1, canonicalize_ops, "writes operators that say the same thing in one way"},
      {"simplify_expr", 1, simplify_expr, "applies algebra to operators and pairs of them"},
      {"fold_constant", 1, fold_constant, "evaluates what depends on constants only"},
      {"scatter_to_concat", 1, scatter_to_concat, "puts together what scatters with constant positions write"},
      {"hoist_from_loops", 1, hoist_from_loops, "computes before a loop what is the same in every iteration"},
      {"fold_scale_axis", 1, fold_scale_axis, "folds constants per channel into weights"},
      {"combine_parallel_dense", 2, combine_parallel_dense, "makes one matrix product of several of the same operand"},
      {"combine_parallel_conv2d", 2, combine_parallel_conv2d,
       "makes one convolution of several of the same operand that leave vectors partly empty"},
      {"subpixel_convolution", 1, subpixel_convolution,
       "makes channels of what lies between the elements of a transposed convolution, on a GPU"},
      {"convert_layout", 1, convert_layout, "puts channels last around convolutions"},
      {"explicit_pad", 1, explicit_pad, "gives padding a node of its own"},
      {"simplify_expr", 1, simplify_expr, "lets the transpositions and reshapes of the last two meet"},
      {"fold_constant", 1, fold_constant, "evaluates what they made of constants"},
      {"eliminate_identity", 1, eliminate_identity, "removes what copies now"},
      {"keep_axes_apart", 1, keep_axes_apart, "joins no sizes of the run for a product of matrices only"},
      {"end_at_counts", 1, end_at_counts, "ends softmaxes and products of matrices behind the sizes of the run"},
      {"open_axes_first", 0, open_axes_first,
       "stores tensors with the axis of a size without an upper bound outermost"},
      {"to_functions", 0, to_functions, "replaces operators by their meanings, the only thing known from here on"},
      {"inline_positions", 1, inline_positions, "puts formulas into indices that tensors of positions say"},
      {"compose_moves", 1, compose_moves, "makes one move of several"},
      {"sink_reshape", 1, sink_reshape, "puts elementwise work directly behind sums of products"},
      {"infer_bounds", 2, infer_bounds, "computes of every tensor what somebody reads of it"},
      {"compose_moves", 1, compose_moves, "composes the reshapes that these two left"},
      {"read_few_bits", 1, read_few_bits, "lets products read weights of few bits as they are stored"},
      {"narrow_weights", 1, narrow_weights, "stores weights that are halves as such, where products widen them"},
      {"fuse_ops", 1, fuse_ops, "joins nodes into kernels"},
      {"inline_updates", 1, inline_updates, "computes what a scatter writes where it is written, in C"},
      {"form_regions", 2, form_regions, "puts several contractions into one kernel: inverted residuals, attention"},
      {"to_mixed_precision", 0, to_mixed_precision,
       "stores tensors between kernels in 16 bits, under --precision fp16"},
  };
  return list;
}

bool is_needed(std::string_view graph_pass) {
  return graph_pass == "dynamic_to_static" || graph_pass == "scan_first_axis" || graph_pass == "to_functions";
}

}  // namespace tc
