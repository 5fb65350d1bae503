// What changed from one model to another: nodes, edges and weights, before any pass.
#pragma once
#include "cli/review/changes.h"
#include "ir/graph/graph.h"

namespace tc {

/// The sections "model" and "weights" of two graphs as import_model() gives them. Two nodes are one by their name, else by
/// the name of their first result, else because they compute the same from the same, else by their order among nodes that
/// look alike. Bodies of If, Loop and Scan are included.
std::vector<Section> compare_models(const Graph& a, const Graph& b);

/// "[1,1]", "\"SAME\"", "f32[3] #0123abcd": the type of a constant and a hash of its bytes.
std::string attr_text(const Attr& a);

}  // namespace tc
