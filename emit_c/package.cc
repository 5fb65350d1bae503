#include "emit_c/package.h"

#include <cmath>
#include <cstring>
#include <set>

#include "emit_c/executor.h"
#include "emit_c/fill.h"
#include "emit_c/header.h"
#include "emit_c/kernel_files.h"
#include "emit_c/main_source.h"
#include "emit_c/manifest.h"
#include "emit_c/readme.h"
#include "emit_c/single_file.h"
#include "emit_c/strings.h"
#include "support/xxh64.h"
#include "templates/text.h"

namespace tc {

std::string weights_assembly(const std::string& x) {
  std::string s = std::string(kLicenseLine) + "\n";
  s += "#if defined(__APPLE__)\n  .const_data\n  .globl _" + x + "_weights_blob\n  .balign 64\n_" + x +
       "_weights_blob:\n#else\n";
  s += "  .section .rodata\n  .globl " + x + "_weights_blob\n  .hidden " + x + "_weights_blob\n  .balign 64\n" + x +
       "_weights_blob:\n#endif\n";
  s +=
      "  .incbin \"" + x +
      "_weights.bin\"\n#if defined(__linux__) && defined(__ELF__)\n  .section .note.GNU-stack,\"\",%progbits\n#endif\n";
  return s;
}

std::string weights_blob(const Program& p, uint64_t layout_id) {
  std::string blob(size_t(p.weights_bytes), '\0');
  for (const Weight& w : p.weights)
    if (w.data->num_bytes > 0) std::memcpy(blob.data() + w.offset, w.data->bytes.get(), w.data->num_bytes);
  const uint32_t order = 0x01020304, version = 1;
  const uint64_t bytes = blob.size(), content = xxh64(blob.data() + 64, blob.size() - 64);
  std::memcpy(blob.data(), "TCWEIGHT", 8);
  std::memcpy(blob.data() + 8, &order, 4);
  std::memcpy(blob.data() + 12, &version, 4);
  std::memcpy(blob.data() + 16, &bytes, 8);
  std::memcpy(blob.data() + 24, &layout_id, 8);
  std::memcpy(blob.data() + 32, &content, 8);
  return blob;
}

std::vector<OutputFile> c_package(const Program& p, const PackageOptions& o) {
  const ProgramNames n(p);
  const std::string& x = n.lower;
  const uint64_t layout_id = p.weights_layout;
  std::vector<OutputFile> files;
  std::set<std::string> support{"tc_simd.h", "tc_rt.h", "tc_trace.h", "tc_main.h"};
  std::vector<KernelText> kernels;
  std::string sources = "  " + x + ".c", objects = "  " + x + ".o \\\n";
  for (const Kernel& k : p.kernels) kernels.push_back(print_kernel(k, x, p.cpu));
  const Needs needs = needs_of(kernels);
  if (needs.vector_math) support.insert("tc_math.h");
  if (needs.ints) support.insert("tc_int.h");
  if (needs.few_bits) support.insert({"tc_int.h", "tc_bits.h"});
  if (needs.tails) support.insert("tc_tail.h");
  if (needs.transposes) support.insert("tc_transpose.h");
  if (needs.scalar) support.insert("tc_scalar.h");
  if (needs.types) support.insert("tc_types.h");
  if (needs.parallel) support.insert("tc_parallel.h");
  const bool strings = has_strings(p);
  if (strings) support.insert("tc_string.h");
  if (needs.letters) support.insert("tc_case.h");
  files.push_back({x + ".h", api_header(p, n)});
  const std::string executor = executor_source(p, n, layout_id), tables = string_tables(p, n);
  if (o.single_file) {
    files.push_back({x + ".c", single_file(n, executor, plan_header(p, n) + tables, kernels, support)});
  } else {
    files.push_back({x + ".c", executor});
    files.push_back({x + "_plan.h", plan_header(p, n)});
    if (!tables.empty()) files.push_back({x + "_strings.h", tables});
    files.push_back({x + "_kernels.h", kernels_header(kernels, n)});
    for (const KernelFile& f : kernel_files(p, kernels)) {
      files.push_back({"kernels/" + f.stem + ".c", kernel_source(f, x)});
      sources += "\n  kernels/" + f.stem + ".c";
      objects += "  kernels/" + f.stem + ".o \\\n";
    }
  }
  files.push_back({x + "_weights.bin", weights_blob(p, layout_id)});
  files.push_back({x + "_weights.S", weights_assembly(x)});
  files.push_back({"main.c", main_source(p, n)});
  files.push_back({x + "_profile.h", profile_header(p, n, true)});
  const std::vector<std::string_view> wanted(support.begin(), support.end());
  for (const std::string_view f : with_included(wanted, strings))
    files.push_back({std::string(f), support_for(f, strings)});
  const std::string march =
      p.march.empty() ? "" : "-march=" + p.march + (p.lanes >= 16 ? " -mprefer-vector-width=512" : "");
  objects += "  " + x + "_weights.o";
  const std::vector<Hole> holes = {{"name", x}, {"march_flags", march}, {"sources", sources}, {"objects", objects}};
  files.push_back({"Makefile", fill(support_text("Makefile.in"), holes)});
  files.push_back({"CMakeLists.txt", fill(support_text("CMakeLists.txt.in"), holes)});
  files.push_back({"README.md", package_readme(p, n)});
  files.push_back({"manifest.json", manifest(p, n, o, files, layout_id, "c")});
  return files;
}

}  // namespace tc
