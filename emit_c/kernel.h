// One kernel as text: head comment, helpers, the function itself.
#pragma once
#include <string>

#include "emit_c/expr.h"
#include "emit_c/source_writer.h"
#include "ir/program.h"

namespace tc {

struct KernelText {
  std::string prototype;  // without the semicolon
  std::string before;     // head comment and helpers: of C the parts that threads share, of CUDA the device's functions
  std::string function;   // the function that the executor calls, without includes
  std::string setup_prototype, setup;  // CUDA: a function that an instance calls once; empty if there is nothing to do
  Needs needs;
};

/// `prefix`: the model's identifier. Throws InternalError if the body is not in printable form.
KernelText print_kernel(const Kernel& k, const std::string& prefix, const std::string& cpu);

/// The comment above a kernel: formula, what it computes, shapes and layouts, schedule for `target`.
void print_head_comment(SourceWriter& out, const Kernel& k, const std::string& target);

/// In a file with others: nothing of it is seen outside.
std::string static_kernel(const KernelText& t);

/// The #include lines for what is needed, relative to `dir` ("" or "../").
std::string include_lines(const Needs& n, const std::string& dir);

}  // namespace tc
