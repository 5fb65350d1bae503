// The headers of a package: NAME.h (the API), NAME_plan.h (where tensors live), NAME_kernels.h (prototypes).
#pragma once
#include "emit_c/kernel.h"
#include "emit_c/names.h"
#include "emit_c/source_writer.h"
#include "emit_c/variants.h"

namespace tc {

/// `variants`: of a package for several processors; else none.
std::string api_header(const Program& p, const ProgramNames& n, const std::vector<Variant>& variants = {});
/// `room`: the instance's member that says for how large sizes it is made, where they have no upper bound.
std::string plan_header(const Program& p, const ProgramNames& n, const std::string& room);
/// What plan_header has below its license line.
std::string plan_text(const Program& p, const ProgramNames& n, const std::string& room);
std::string kernels_header(const std::vector<KernelText>& kernels, const ProgramNames& n, bool has_variants = false);

}  // namespace tc
