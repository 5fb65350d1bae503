// Families that fill more than one file: what the family's own file collects.
#pragma once
#include "ir/ops/op.h"

namespace tc {

OpFamily activation_ops();           // elementwise
OpFamily cast_ops();                 // elementwise
OpFamily softmax_ops();              // reduction
OpFamily search_ops();               // reduction: ArgMax, ArgMin, TopK
OpFamily loss_ops();                 // reduction
OpFamily determinant_ops();          // reduction
OpFamily training_ops();             // elementwise: optimiser steps
OpFamily text_ops();                 // reduction: n-gram counts
OpFamily token_ops();                // movement: texts as rows of tokens
OpFamily string_ops();               // movement: operators on the text of strings
OpFamily pad_ops();                  // movement
OpFamily gather_ops();               // movement
OpFamily select_ops();               // movement: sizes that depend on values
OpFamily non_max_suppression_ops();  // movement: a size that depends on values
OpFamily scatter_ops();              // movement
OpFamily signal_ops();               // generator
OpFamily random_ops();               // generator

OpFamily microsoft_language_ops();  // microsoft: attention over a cache, rotated positions
OpFamily microsoft_weights_ops();   // microsoft: weights of few bits
OpFamily microsoft_experts_ops();   // microsoft: mixtures of experts
OpFamily microsoft_linear_ops();    // microsoft: attention as a recurrence, causal convolution, with their states
OpFamily microsoft_layout_ops();    // microsoft: channels last, and operators that stand for a few of ONNX
OpFamily microsoft_fused_ops();     // microsoft: operators that stand for several of ONNX
OpFamily qlinear_ops();             // microsoft: quantised operators

/// tc.linear_attention, which LinearAttention becomes (linear_attention.cc).
void define_linear_attention(OpBuilder& op);

/// Fourier transforms of f32 whose parameters are known, as products with a matrix (fourier.cc); false: too long.
bool expand_dft(Graph& g, Node* n);
bool expand_stft(Graph& g, Node* n);

/// The scale (f32) and the zero point (u8) of what lies between 0, the largest element of `high` and the least of `low`; both have rank 0.
struct QuantizedRange {
  Tensor scale, zero_point;
};
QuantizedRange quantized_range(OpBuilder& op, const Tensor& high, const Tensor& low);

/// x quantised by its own range, as DynamicQuantizeLinear does: u8 values, an f32 scale and a u8 zero point (rank 0).
struct DynamicQuantization {
  Tensor y, scale, zero_point;
};
DynamicQuantization dynamic_quantization(OpBuilder& op, const Tensor& x);

/// The index (I64) of the largest or smallest element along `axis`: the first one, or the last one with `last`.
Tensor arg_extremum(OpBuilder& b, const Tensor& x, int axis, bool keepdims, bool largest, bool last);

/// Random number `stream` of the element at `index` of a tensor with `dims`, uniform in (0, 1): an f64 that depends on
/// the node's seed (its output's name without one) and on nothing else.
Expr uniform_random(const OpBuilder& b, const Exprs& index, const Dims& dims, uint32_t stream = 0);

}  // namespace tc
