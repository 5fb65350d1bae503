// A package as one file of C.
#pragma once
#include <set>

#include "emit_c/header.h"

namespace tc {

/// --single-file: support text, plan, kernels (static) and executor as one NAME.c. The support files that it holds are
/// taken out of `support`.
std::string single_file(const ProgramNames& n, const std::string& executor, const std::string& plan,
                        const std::vector<KernelText>& kernels, std::set<std::string>& support);

}  // namespace tc
