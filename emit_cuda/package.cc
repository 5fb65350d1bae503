#include "emit_cuda/package.h"

#include <set>

#include "emit_c/executor.h"
#include "emit_c/fill.h"
#include "emit_c/header.h"
#include "emit_c/main_source.h"
#include "emit_c/manifest.h"
#include "emit_c/readme.h"
#include "emit_c/weights.h"
#include "emit_cuda/executor.h"
#include "emit_cuda/kernel.h"
#include "templates/text.h"

namespace tc {
namespace {

std::string device_kernels_header(const std::vector<KernelText>& kernels, const ProgramNames& n, bool jit) {
  SourceWriter out;
  for (const KernelText& k : kernels) {
    out.line(k.prototype + ";");
    if (!k.setup.empty()) out.line(k.setup_prototype + ";");
  }
  const std::string guard = n.upper + "_KERNELS_CUH";
  const std::string include =
      jit ? "#ifdef TC_LAUNCH_ONLY\n#include \"tc_jit.h\"\n#else\n#include \"tc_cuda.h\"\n#endif\n"
          : "#include \"tc_cuda.h\"\n";
  return std::string(kLicenseLine) + "\n#ifndef " + guard + "\n#define " + guard + "\n" + include + "\n" + out.text() +
         "\n#endif\n";
}

void add_support(std::set<std::string>& support, const Needs& needs) {
  if (needs.runtime) support.insert("tc_rt.h");
  if (needs.scalar) support.insert("tc_scalar.h");
  if (needs.types) support.insert("tc_types.h");
}

ExecutorParts parts_in_files(const ProgramNames& n) {
  return {"#include \"" + n.lower + "_kernels.cuh\"\n#include \"" + n.lower + "_plan.h\"\n", ""};
}

// --single-file: the plan, and the kernels, now static, stand in the executor's text.
ExecutorParts parts_in_place(const Program& p, const ProgramNames& n, const std::vector<KernelText>& kernels) {
  Needs needs = needs_of(kernels);
  needs.math = needs.parallel = false;  // tc_cuda.h has the functions
  std::string text = "\n" + plan_text(p, n, "d.room");
  for (const KernelText& k : kernels) {
    text += "\n" + static_kernel(k);
    if (!k.setup.empty()) text += "\nstatic " + k.setup;
  }
  return {"#include \"tc_cuda.h\"\n" + include_lines(needs, ""), text};
}

void add_jit(const Program& p, const ProgramNames& n, std::vector<OutputFile>& files,
             const std::vector<KernelFile>& sources, const std::vector<std::string>& headers) {
  std::vector<std::string> kernels;
  for (const KernelFile& f : sources) kernels.push_back("kernels/" + f.stem + ".cu");
  std::vector<std::string> all = kernels;
  all.insert(all.end(), headers.begin(), headers.end());
  files.push_back({n.lower + "_jit.cc", jit_source(p, n, kernels, headers)});
  files.push_back({n.lower + "_kernels.S", jit_assembly(n, all)});
}

}  // namespace

std::vector<OutputFile> cuda_package(const Program& p, const PackageOptions& o) {
  const ProgramNames n(p);
  const std::string& x = n.lower;
  const uint64_t layout_id = p.weights_layout;
  std::vector<OutputFile> files;
  std::set<std::string> support{"tc_cuda.h", "tc_rt.h", "tc_trace.h", "tc_main.h"};
  if (o.jit)
    support.insert({"tc_jit.h", "tc_scalar.h", "tc_types.h"});  // NVRTC gets every header that a kernel may include
  if (p.external_weights) support.insert("tc_map.h");
  std::vector<KernelText> kernels;
  std::string sources = "  " + x + ".cu";
  for (const Kernel& k : p.kernels) kernels.push_back(print_cuda_kernel(k, x, p.cpu));
  add_support(support, needs_of(kernels));
  const std::vector<KernelFile> apart = kernel_files(p, kernels);
  files.push_back({x + ".h", api_header(p, n)});
  files.push_back({x + "_cuda.h", cuda_header(p, n)});
  const ExecutorParts parts = o.single_file ? parts_in_place(p, n, kernels) : parts_in_files(n);
  files.push_back({x + ".cu", cuda_executor_source(p, n, layout_id, o.jit, parts, o.cuda_graphs)});
  if (!o.single_file) {
    files.push_back({x + "_plan.h", plan_header(p, n, "d.room")});
    files.push_back({x + "_kernels.cuh", device_kernels_header(kernels, n, o.jit)});
    for (const KernelFile& f : apart) {
      files.push_back({"kernels/" + f.stem + ".cu", cuda_kernel_source(f, x, o.jit)});
      sources += "\n  kernels/" + f.stem + ".cu";
    }
  }
  files.push_back(weights_file(p, n, o.progress));
  if (!p.external_weights) files.push_back({x + "_weights.S", weights_assembly(x)});
  files.push_back({"main.c", main_source(p, n)});
  files.push_back({x + "_profile.h", profile_header(p, n, TracedCalls::None)});
  const std::vector<std::string_view> wanted(support.begin(), support.end());
  if (o.jit) add_jit(p, n, files, apart, std::vector<std::string>{"tc_cuda.h", "tc_rt.h", "tc_scalar.h", "tc_types.h"});
  for (const std::string_view f : with_included(wanted)) files.push_back({std::string(f), support_for(f, false)});
  for (const SupportFile& f : support_files())
    if (f.name.starts_with("cuda_on_cpu/")) files.push_back({std::string(f.name), std::string(f.text)});
  std::vector<Hole> holes = weights_holes(p, n, " ");
  holes.insert(holes.end(), {{"name", x}, {"sources", sources}, {"jit", o.jit ? "ON" : "OFF"}});
  const CudaArchitectures compiled_for = cuda_architectures(p);
  holes.insert(holes.end(), {{"architectures", compiled_for.list}, {"default_architectures", compiled_for.words}});
  files.push_back({"CMakeLists.txt", fill(support_text("CMakeLists_cuda.txt.in"), holes)});
  files.push_back({"README.md", cuda_package_readme(p, n)});
  files.push_back({"manifest.json", manifest(p, n, o, files, layout_id, "cuda")});
  return files;
}

}  // namespace tc
