// What changed from one package to another, by their manifests and files.
#pragma once
#include "cli/review/changes.h"
#include "cli/review/package_facts.h"

namespace tc {

/// Two models are compared by their graphs; then `models` has the sections of compare_models(), and nodes and weights of
/// the packages are left out.
Comparison compare_packages(const PackageFacts& a, const PackageFacts& b, const std::vector<Section>* models);

}  // namespace tc
