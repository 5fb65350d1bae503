// What exporters write otherwise than ONNX's schemas have it, and an operator of ai.onnx.ml that was defined otherwise once. Internal to importer/.
#pragma once
#include "importer/scope.h"

namespace tc::importer {

/// ONNX takes the number of a LinearClassifier's classes from its intercepts, which may be absent: then there are zeros.
void give_intercepts(onnx::ModelProto& m);

/// LabelEncoder of ai.onnx.ml's version 1 numbers its classes from 0, or names them: a CategoryMapper says the same.
void name_encoders(onnx::ModelProto& m);

/// ONNX Runtime's optimiser writes SimplifiedLayerNormalization into the default domain, where no operator set has it:
/// it is RMSNormalization.
void name_norms(onnx::ModelProto& m);
/// Is it one that name_norms() gives another name?
bool is_named_otherwise(const onnx::NodeProto& n);

/// It also writes LayerNormalization into models of operator sets before 17, which do not have it yet.
bool is_early_norm(const onnx::NodeProto& n, int64_t version);

}  // namespace tc::importer
