// What ONNX's version converter gets wrong. Internal to importer/.
#pragma once
#include "importer/scope.h"

namespace tc::importer {

/// PRelu before version 7 applies a slope of shape [C] along axis 1; later versions broadcast it along the last axis. A
/// slope gets an Unsqueeze to [C,1,...] where the rank of the data asks for it. Types must have been inferred.
void fix_prelu_slopes(onnx::ModelProto& m);

/// ONNX takes the number of a LinearClassifier's classes from its intercepts, which may be absent: then there are zeros.
void give_intercepts(onnx::ModelProto& m);

/// ONNX Runtime's optimiser writes SimplifiedLayerNormalization into the default domain, where no operator set has it,
/// and LayerNormalization into models of operator sets before 17, which do not have it yet. Both wait in another domain
/// while the converter runs; the former is RMSNormalization afterwards. show_norms says whether there was one.
void hide_norms(onnx::ModelProto& m);
bool show_norms(onnx::ModelProto& m);
/// Is it such a LayerNormalization?
bool is_early_norm(const onnx::NodeProto& n, int64_t version);

/// Scan of version 8 has a batch axis in front of every operand; later versions have none. The converter only drops the
/// operand for sequence lengths. The Scan goes into the body of another one, which runs over the batch axis.
class Scan8 {
 public:
  /// Before conversion: remembers the Scan nodes. Reports those with sequence lengths and returns false.
  bool collect(Context& c, onnx::GraphProto& g);
  /// After conversion.
  void batch(onnx::GraphProto& g);

 private:
  std::set<std::string> outputs_;  // the first output of each Scan
};

/// Resize of operator set 10, and Upsample before it, read element index / scale of the operand; the converter makes a
/// Resize of them whose defaults mean something else. `m`, converted from such a set, gets Upsample instead, whose row
/// keeps that meaning.
void restore_upsample(onnx::ModelProto& m);

}  // namespace tc::importer
