// ONNX's shape inference. Internal to importer/.
#pragma once
#include <string>

namespace onnx {
class ModelProto;
}

namespace tc::importer {

/// Types the model's values by ONNX's definitions, on a copy, with what ShapeRegistry guards against; if that throws, false, the
/// reason, and the model as it was.
bool try_infer(onnx::ModelProto& m, std::string& why);

}  // namespace tc::importer
