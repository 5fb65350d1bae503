// One kernel as C: head comment, part functions, the function itself.
#pragma once
#include <string>

#include "emit_c/expr.h"
#include "ir/program.h"

namespace tc {

struct KernelText {
  std::string prototype;  // without the semicolon
  std::string body;       // head comment, helpers and function, without includes
  Needs needs;
};

/// `prefix`: the model's identifier. Throws InternalError if the body is not in printable form.
KernelText print_kernel(const Kernel& k, const std::string& prefix, const std::string& cpu);

/// A whole file: license line, includes, text.
std::string kernel_file(const KernelText& t, const std::string& prefix);

/// The #include lines for what is needed, relative to `dir` ("" or "../").
std::string include_lines(const Needs& n, const std::string& dir);

}  // namespace tc
