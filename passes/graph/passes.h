// The graph passes; each file tells its story. pipeline.cc lists them in order.
#pragma once
#include "passes/pass.h"

namespace tc {

void dynamic_to_static(Graph& g, PassContext& cx);
void fold_constant(Graph& g, PassContext& cx);
void scatter_to_concat(Graph& g, PassContext& cx);
void dead_code(Graph& g, PassContext& cx);
void hoist_from_loops(Graph& g, PassContext& cx);
void scan_first_axis(Graph& g, PassContext& cx);
void eliminate_common_subexpr(Graph& g, PassContext& cx);
void widen_halves(Graph& g, PassContext& cx);
void simplify_inference(Graph& g, PassContext& cx);
void eliminate_identity(Graph& g, PassContext& cx);
void canonicalize_ops(Graph& g, PassContext& cx);
void recognize_idioms(Graph& g, PassContext& cx);
void simplify_expr(Graph& g, PassContext& cx);
void fold_scale_axis(Graph& g, PassContext& cx);
void combine_parallel_dense(Graph& g, PassContext& cx);
void combine_parallel_conv2d(Graph& g, PassContext& cx);
void subpixel_convolution(Graph& g, PassContext& cx);
void convert_layout(Graph& g, PassContext& cx);
void explicit_pad(Graph& g, PassContext& cx);
void keep_axes_apart(Graph& g, PassContext& cx);
void end_at_counts(Graph& g, PassContext& cx);
void open_axes_first(Graph& g, PassContext& cx);
void to_functions(Graph& g, PassContext& cx);
void inline_positions(Graph& g, PassContext& cx);
void compose_moves(Graph& g, PassContext& cx);
void sink_reshape(Graph& g, PassContext& cx);
void infer_bounds(Graph& g, PassContext& cx);
void read_few_bits(Graph& g, PassContext& cx);
void narrow_weights(Graph& g, PassContext& cx);
void fuse_ops(Graph& g, PassContext& cx);
void inline_updates(Graph& g, PassContext& cx);
void form_regions(Graph& g, PassContext& cx);
void to_mixed_precision(Graph& g, PassContext& cx);
void qlinear_to_qdq(Graph& g, PassContext& cx);
void realize_quantization(Graph& g, PassContext& cx);

/// Is it no optimisation? What comes behind counts on what it leaves; --disable-pass does not take it.
bool is_needed(std::string_view graph_pass);

}  // namespace tc
