// The weights of a package: the blob, what links it into the program, and what opens it where it stays outside. Of every target.
#pragma once
#include <functional>

#include "emit_c/fill.h"
#include "emit_c/names.h"
#include "support/output_dir.h"

namespace tc {

/// NAME_weights.bin: a header, then every weight at its offset. `progress` is told which weight is made.
OutputFile weights_file(const Program& p, const ProgramNames& n,
                        const std::function<void(const std::string&)>& progress);

/// NAME_weights.S, which includes the blob.
std::string weights_assembly(const std::string& name);

/// The line that includes what map_functions() call; the first one.
std::string map_include(const Program& p);

/// NAME_weights and the blob that it returns; nothing if that is no part of the program.
std::string linked_weights(const Program& p, const ProgramNames& n);

/// NAME_map_weights and NAME_unmap_weights, behind fits(); nothing if the blob is part of the program.
std::string map_functions(const Program& p, const ProgramNames& n);

/// What CMakeLists.txt says of the weights; `between` stands in front of NAME_weights.S in a list of sources.
std::vector<Hole> weights_holes(const Program& p, const ProgramNames& n, const std::string& between);

}  // namespace tc
