#include "emit_c/source_writer.h"
#include "emit_cuda/executor.h"

namespace tc {
namespace {

std::string label(const ProgramNames& n, size_t i) { return n.lower + "_text_" + to_text(int64_t(i)); }

}  // namespace

std::string jit_assembly(const ProgramNames& n, const std::vector<std::string>& files) {
  std::string s = std::string(kLicenseLine) +
                  "\n/* The text that NVRTC compiles, each file ended by a zero byte. */\n  .section .rodata\n";
  for (size_t i = 0; i < files.size(); i++)
    s += "  .globl " + label(n, i) + "\n  .hidden " + label(n, i) + "\n" + label(n, i) + ":\n  .incbin \"" + files[i] +
         "\"\n  .byte 0\n";
  return s + "#if defined(__linux__) && defined(__ELF__)\n  .section .note.GNU-stack,\"\",%progbits\n#endif\n";
}

std::string jit_source(const Program& p, const ProgramNames& n, const std::vector<std::string>& kernel_files,
                       const std::vector<std::string>& headers) {
  const size_t count = kernel_files.size();
  SourceWriter out;
  for (size_t i = 0; i < count + headers.size(); i++) out.line("extern \"C\" const char " + label(n, i) + "[];");
  out.blank();
  out.line("tc_jit_program " + n.lower + "_jit_program()");
  out.open();
  out.line("tc_jit_program p;");
  out.line("p.sources = {");
  for (size_t i = 0; i < count; i++) out.line("  {\"" + kernel_files[i] + "\", " + label(n, i) + "},");
  out.line("};");
  out.line("p.headers = {  /* as kernels include them, and as they include each other */");
  for (size_t i = 0; i < headers.size(); i++)
    out.line("  {\"../" + headers[i] + "\", " + label(n, count + i) + "}, {\"" + headers[i] + "\", " +
             label(n, count + i) + "},");
  out.line("};");
  out.line("p.kernels = {");
  for (const Kernel& k : p.kernels)
    for (const DeviceFunction& f : k.device) out.line("  \"" + n.lower + "_" + k.name + "_" + f.name + "\",");
  out.line("};");
  out.line("return p;");
  out.close();
  return std::string(kLicenseLine) + "\n#include \"tc_jit.h\"\n\n" + out.text();
}

}  // namespace tc
