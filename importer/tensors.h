// Tensors of the model as our constants. Internal to importer/.
//
// load_tensors() checks every tensor of the model and reads it once. Small ones stay in the message in their plain form
// (ONNX's inference and converter look at axes, shapes and scales). Large ones move to Context::stored; what remains in
// the message is name, type, dims and a reference that travels through ONNX's library unchanged: external data with the
// single key "tc", which no tensor of a model has after load_tensors().
#pragma once
#include "importer/context.h"

namespace tc::importer {

/// The constant of a tensor after load_tensors(): the stored one, or a fresh one made from the message.
Constant constant_of(const Context& c, const onnx::TensorProto& t);

/// A name for an element type of ONNX, also for those that have no DType ("float6e2m3").
std::string element_type_name(int32_t onnx_type);
/// The DType of an ONNX element type, Undefined if there is none.
DType element_type(int32_t onnx_type);

}  // namespace tc::importer
