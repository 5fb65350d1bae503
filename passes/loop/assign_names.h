#pragma once
#include <set>
#include <string>

#include "ir/loop/ir.h"

namespace tc {

/// Every bound variable and local buffer gets a C identifier that is unique where it is visible, made from its hint.
/// `taken`: the kernel's parameters and whatever else may not be used.
Stmt assign_names(const Stmt& s, std::set<std::string> taken);

}  // namespace tc
