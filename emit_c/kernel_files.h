// Which kernels stand in which file of a package.
#pragma once
#include <string>
#include <vector>

#include "emit_c/kernel.h"

namespace tc {

/// Programs of more kernels have them together in sixteen files: a compiler reads the headers sixteen times, and nobody
/// pages through thousands of files.
inline constexpr size_t kKernelsApart = 256;

struct KernelFile {
  std::string stem;  // of "kernels/STEM.c"
  std::vector<KernelText> kernels;
  std::vector<int> variants = {};  // Kernel::variants, which are the same for all of them
};

/// `texts`: of p.kernels, in their order. A file is called as its only kernel is, or, together, "kernels_D" with the
/// last digit of its kernels' names; that digit is the kernel's own, so that an edit of the model moves no other
/// kernel. Of a list of processors, kernels together are those of the same ones: "kernels_D_v3_v4".
std::vector<KernelFile> kernel_files(const Program& p, const std::vector<KernelText>& texts);

/// What the kernels need together.
Needs needs_of(const std::vector<KernelText>& kernels);

/// A whole file: license line, includes, text.
std::string kernel_source(const KernelFile& f, const std::string& prefix);

}  // namespace tc
