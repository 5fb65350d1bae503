// The families of operators; each is one file beside this one. all_ops.cc concatenates them in this order.
#pragma once
#include "ir/ops/op.h"

namespace tc {

OpFamily elementwise_ops();  // unary, binary, comparison, logic, activations, Cast, Clip, Where
OpFamily reduction_ops();    // Reduce*, ArgMin/Max, CumSum, softmax family, losses, TopK, norms of vectors
OpFamily movement_ops();   // Reshape family, Transpose, Slice, Gather*, Scatter*, Concat, Split, Pad, Tile, Expand, ...
OpFamily generator_ops();  // Range, ConstantOfShape, EyeLike, OneHot, Trilu, Shape, Size, windows
OpFamily contraction_ops();    // MatMul, Gemm, Einsum, Conv, ConvTranspose, ConvInteger, MatMulInteger
OpFamily window_ops();         // pooling, LpPool, Resize, GridSample, RoiAlign, Col2Im, DepthToSpace
OpFamily normalization_ops();  // Batch/Layer/Instance/Group/RMS normalisation, LRN, MVN
OpFamily recurrent_ops();      // LSTM, GRU, RNN
OpFamily attention_ops();      // Attention, RotaryEmbedding
OpFamily quantization_ops();   // QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinear*
OpFamily microsoft_ops();      // domain com.microsoft: what ONNX Runtime's tools write
OpFamily ml_feature_ops();     // domain ai.onnx.ml: preparation of features, labels
OpFamily ml_linear_ops();      // domain ai.onnx.ml: linear models
OpFamily ml_tree_ops();        // domain ai.onnx.ml: ensembles of decision trees
OpFamily ml_svm_ops();         // domain ai.onnx.ml: support vector machines
OpFamily control_ops();        // If, Loop, Scan, Identity
OpFamily internal_ops();       // domain "tc": what passes insert (fused, packed layouts)

}  // namespace tc
