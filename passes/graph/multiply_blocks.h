// Products whose model allows bytes for the factor that is computed (MatMulNBits with accuracy_level = 4).
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Quantises x in blocks, as the weights are, and multiplies bytes.
///   w = tc.unpack_weights <accuracy_level = 4> (p, sw, zw)      s = tc.block_scales(x)  q = tc.quantize_blocks(x, s)
///   y = MatMul(x, w)                                       ->   y = tc.matmul_blocks(q, s, p, sw, zw)
/// Preconditions: f32; 4 or 8 bits; weights, their scales and zero points are known, zero points are integers; blocks are whole
/// words of neighbours. Bodies of control flow are graphs like any other. The result is what the model means, and ONNX Runtime computes.
void multiply_blocks(Graph& g);

/// Allows that of every product of weights of few bits, whatever its model says (--activations int8).
void allow_byte_products(Graph& g);

}  // namespace tc
