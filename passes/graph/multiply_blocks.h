// Products whose model or user allows bytes for the factor that is computed: the weights' node has accuracy_level = 4.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Quantises x in blocks and multiplies bytes.
///   w = tc.unpack_weights <accuracy_level = 4> (p, sw, zw)      s = tc.block_scales(x)  q = tc.quantize_blocks(x, s)
///   y = MatMul(x, w)                                       ->   y = tc.matmul_blocks(q, s, p, sw, zw)
///   w = DequantizeLinear <accuracy_level = 4> (p, sw, zw)
///   y = MatMul(x, w)                                       ->   y = tc.matmul_dequantized(q, s, p, sw, zw)
///   y = tc.expert_matmul <accuracy_level = 4>
///         (x, chosen, w, b, sw, zw)                        ->   y = tc.expert_matmul_blocks(q, s, chosen, p, b, sw, zw)
/// A Gemm is one like a MatMul, with a bias behind it, and a Transpose of the weights stays in the order in which they are read. Who
/// reads the same x in the same blocks shares q and s. A block is one of the weights or a part of it, 128 numbers at most, but where
/// the model says so: then it is what the model says, and ONNX Runtime computes.
/// Preconditions: f32; weights, their scales and zero points are known, zero points are integers, and weights a matrix (or one for
/// each expert) with four columns at least; scales are one number, one for each column, or for blocks along the sum of whole words
/// of neighbours. A Gemm has alpha = beta = 1 and does not transpose x. Products of two tensors that are dequantised from bytes are
/// exact as they are (realize_quantization). Bodies of control flow are graphs like any other.
void multiply_blocks(Graph& g);

/// Allows that of every product with weights of few bits, whatever its model says (--activations int8).
void allow_byte_products(Graph& g);

}  // namespace tc
