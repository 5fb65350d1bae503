// One kernel as C: head comment, part functions, the function itself.
#pragma once
#include <string>

#include "emit_c/expr.h"
#include "emit_c/source_writer.h"
#include "ir/program.h"

namespace tc {

struct KernelText {
  std::string prototype;  // without the semicolon
  std::string body;       // head comment, helpers and function, without includes
  std::string host;       // CUDA: the function that launches those of the body
  Needs needs;
};

/// `prefix`: the model's identifier. Throws InternalError if the body is not in printable form.
KernelText print_kernel(const Kernel& k, const std::string& prefix, const std::string& cpu);

/// The comment above a kernel: formula, what it computes, shapes and layouts, schedule for `target`.
void print_head_comment(SourceWriter& out, const Kernel& k, const std::string& target);

/// A whole file: license line, includes, text.
std::string kernel_file(const KernelText& t, const std::string& prefix);

/// The #include lines for what is needed, relative to `dir` ("" or "../").
std::string include_lines(const Needs& n, const std::string& dir);

}  // namespace tc
