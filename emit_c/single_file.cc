#include "emit_c/single_file.h"

#include "emit_c/kernel_files.h"
#include "templates/text.h"

namespace tc {
namespace {

// Drops the license line and the includes of files that stand in the same text.
std::string without_includes(const std::string& text) {
  std::string s;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string_view line(text.data() + at, (end == std::string::npos ? text.size() : end) - at);
    if (!line.starts_with("#include \"") && !line.starts_with("/* SPDX-License-Identifier")) {
      s.append(line);
      s += '\n';
    }
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return s;
}

}  // namespace

std::string single_file(const ProgramNames& n, const std::string& executor, const std::string& plan,
                        const std::vector<KernelText>& kernels, std::set<std::string>& support) {
  std::string s = std::string(kLicenseLine) + "\n\n";
  // clang warns of unused inline functions in a file that is compiled; not every model needs all of the support text
  s += "#ifdef __clang__\n#  pragma clang diagnostic ignored \"-Wunused-function\"\n#endif\n\n";
  // Before anything is included, which tc_pool.c asks of a file of its own.
  if (support.count("tc_pool.c") != 0)
    s += "#ifndef _GNU_SOURCE\n#  define _GNU_SOURCE\n#endif\n#ifndef _DARWIN_C_SOURCE\n#  define "
         "_DARWIN_C_SOURCE\n#endif\n\n";
  // in the order in which they include each other
  for (const char* f : {"tc_map.h", "tc_simd.h", "tc_types.h", "tc_half.h", "tc_double.h", "tc_int.h", "tc_bits.h",
                        "tc_tiles.h", "tc_cpu.h", "tc_tail.h", "tc_transpose.h", "tc_math.h", "tc_rt.h", "tc_scalar.h",
                        "tc_string.h", "tc_case.h", "tc_parallel.h", "tc_pool.c"})
    if (support.count(f) != 0) s += without_includes(std::string(support_text(f))) + "\n";
  for (const char* f : {"tc_half.h", "tc_double.h", "tc_int.h", "tc_bits.h", "tc_tiles.h", "tc_cpu.h", "tc_tail.h",
                        "tc_transpose.h", "tc_math.h", "tc_scalar.h", "tc_pool.c", "tc_map.h"})
    support.erase(f);
  if (needs_of(kernels).math) s += "#include <math.h>\n";
  for (const KernelText& k : kernels) s += static_kernel(k) + "\n";
  // The API comes last: its type has the model's name, which elsewhere may be a variable's.
  return s + "#include \"" + n.lower + ".h\"\n" + without_includes(plan) + "\n" + without_includes(executor);
}

}  // namespace tc
