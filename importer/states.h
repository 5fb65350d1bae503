// Inputs and outputs that the instance of a package keeps (--state).
#pragma once
#include "importer/context.h"

namespace tc::importer {

/// The pairs that ImportOptions::states names, in the order of their inputs. A name that is none, an input or output that
/// is in two pairs: TC0154, if the function `tells`.
std::vector<StatePair> find_states(Context& c, const onnx::GraphProto& g, bool tells);

/// The output of a state has no more elements than the input has room for: neither has any other tensor of that symbol
/// (a mask of all tokens).
void limit_states(Context& c, const onnx::GraphProto& g, const std::vector<StatePair>& states);

}  // namespace tc::importer
