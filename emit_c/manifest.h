// manifest.json: what a package is, as data. docs/output.md describes its fields.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "emit_c/names.h"
#include "emit_c/package.h"
#include "emit_c/variants.h"

namespace tc {

/// Numbers; of an axis without an upper bound the formula: "n", "9 * n".
nlohmann::ordered_json shape_json(const Dims& dims);

/// The text of manifest.json of a package of `files`. Steps, tensors and weights have a line each, so that a change of the
/// model shows in the lines that it is about. ASCII only: what a name shows is what it is.
std::string manifest(const Program& p, const ProgramNames& n, const PackageOptions& o,
                     const std::vector<OutputFile>& files, uint64_t layout_id, const std::string& target,
                     const std::vector<Variant>& variants = {});

}  // namespace tc
