// assign_names: identifiers of C for everything that a kernel binds.
#pragma once
#include <set>
#include <string>

#include "ir/loop/ir.h"

namespace tc {

/// Is `name` a C function that a row of the op table calls? A variable of that name would hide it.
bool is_function_name(const std::string& name);

/// Every bound variable and local buffer gets a C identifier that is unique where it is visible, made from its hint.
/// `taken`: the kernel's parameters and whatever else may not be used.
Stmt assign_names(const Stmt& s, std::set<std::string> taken);

/// A C identifier from a hint that hides no function of the C library that kernels call: "exp" becomes "exp_v".
std::string value_name(const std::string& hint);

}  // namespace tc
