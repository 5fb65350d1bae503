// Putting the body of a function in the place of a call. Internal to importer/.
#pragma once
#include "importer/scope.h"

namespace tc::importer {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// What the names of a function's values become.
struct Naming {
  UniqueNames* unique = nullptr;  // null: names stay as they are (a body on its own)
  std::string prefix;             // the call's name; "/" and the inner name follow
};

/// The nodes of `f` with the operands and attributes of `call` in place of the formal ones; attributes that the call
/// does not give take their default or disappear. An output that is an input of the function comes through an Identity.
Nodes instantiate(const onnx::FunctionProto& f, const onnx::NodeProto& call, const Naming& naming);

/// A readable prefix for what comes out of a call.
std::string call_prefix(const onnx::NodeProto& call);

}  // namespace tc::importer
