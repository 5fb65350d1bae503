// The parts of compare_packages().
#pragma once
#include "cli/review/changes.h"
#include "cli/review/package_facts.h"

namespace tc {

Section compare_options(const PackageFacts& a, const PackageFacts& b);
/// The model's nodes as the steps name them, and where steps of the same nodes read from.
Section compare_nodes(const PackageFacts& a, const PackageFacts& b);
Section compare_interface(const PackageFacts& a, const PackageFacts& b);
Section compare_memory(const PackageFacts& a, const PackageFacts& b);
/// Tensor by tensor where both blobs hold it in the same form.
Section compare_stored_weights(const PackageFacts& a, const PackageFacts& b);
Section compare_kernels(const PackageFacts& a, const PackageFacts& b);
std::vector<FileChange> compare_files(const PackageFacts& a, const PackageFacts& b);

/// "conv2d_8x8_k3" of "conv2d_8x8_k3_0084": what a kernel computes, without the digits that tell schedules apart.
std::string stem_of(const std::string& kernel);

}  // namespace tc
