// Values that share the memory of others.
#pragma once
#include "ir/graph/graph.h"

namespace tc {

/// Does the result share the memory of the operand, once operators are functions? Identity and Reshape move no data.
bool is_view(const Node& n);
/// The value whose memory v shares, through views; v itself if it shares none.
const Value* root_of(const Value* v);

}  // namespace tc
