#include "cli/build_model.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/commands.h"

namespace tc {
namespace {

/// The compiler that make takes; its own default is cc.
std::string c_compiler() {
  const char* cc = std::getenv("CC");
  return cc && *cc ? cc : "cc";
}

/// The one that CMake looks for first.
std::string cxx_compiler() {
  const char* cxx = std::getenv("CXX");
  return cxx && *cxx ? cxx : "c++";
}

void need_tool(const std::string& what, const std::vector<std::string>& command, const std::string& way_out) {
  if (run_process(command, true).status != 0) tool_missing(what, way_out);
}

std::string build_with_make(const CommandLine& c, const std::string& dir, const std::string& target) {
  const ProcessResult r = run_phase(c, "build", {"make", "-s", "-C", dir, target});
  if (r.status != 0) {
    need_tool("make", {"make", "--version"}, "install make and a C compiler (Debian: apt install build-essential)");
    // CC may have arguments, so that only the shell that make uses knows the program.
    need_tool("C compiler '" + printable(c_compiler()) + "'", {"sh", "-c", c_compiler() + " --version"},
              "install one (Debian: apt install build-essential), or set CC to one");
    tool_failed("make", r);
  }
  return dir + "/" + target;
}

std::string build_with_cmake(const CommandLine& c, const std::string& dir, const std::string& target) {
  const bool gpu = has_gpu();
  std::vector<std::string> configure{"cmake", "-S", dir, "-B", dir + "/build"};
  configure.push_back(gpu ? "-DCMAKE_CUDA_ARCHITECTURES=native" : "-DTC_CUDA_ON_CPU=ON");
  for (const std::vector<std::string>& command :
       {configure, {"cmake", "--build", dir + "/build", "--parallel", "2", "--target", target}}) {
    const ProcessResult r = run_phase(c, "build", command);
    if (r.status < 0) need_tool("cmake", {"cmake", "--version"}, "install it (Debian: apt install cmake)");
    if (r.status == 0) continue;
    need_tool("C++ compiler '" + printable(cxx_compiler()) + "'", {"sh", "-c", cxx_compiler() + " --version"},
              "install one (Debian: apt install build-essential), or set CXX to one");
    tool_failed("cmake", r);
  }
  return dir + "/build/";
}

}  // namespace

std::vector<std::string> printable_lines(const std::string& said) {
  constexpr size_t kMost = 40;  // the last ones: there tools say what is wrong
  std::vector<std::string> lines;
  for (size_t at = 0, end; at < said.size(); at = end + 1) {
    end = std::min(said.find('\n', at), said.size());
    if (end > at) lines.push_back(printable(said.substr(at, end - at), 400));
  }
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  return lines;
}

void tool_missing(const std::string& what, const std::string& way_out) {
  throw Error(Diagnostic{"TC0705", ExitCode::Tool, {}, "no " + what + " on this machine", {way_out}, false});
}

void tool_failed(const std::string& what, const ProcessResult& r) {
  throw Error(Diagnostic{
      "TC0701",
      ExitCode::Tool,
      {},
      what + (r.status < 0 ? " could not be started" : " failed with exit code " + to_text(int64_t(r.status))),
      printable_lines(r.output),
      false});
}

ProcessResult run_phase(const CommandLine& c, const std::string& phase, const std::vector<std::string>& argv) {
  const auto tell = [&] { c.request.listener.tell(phase); };
  tell();
  return run_process(argv, true, tell);
}

bool has_gpu() {
  return std::filesystem::exists("/dev/nvidia0") && run_process({"nvcc", "--version"}, true).status == 0;
}

Compilation compile_for_here(const CommandLine& c, Diagnostics& problems) {
  say_native_cpu(c);
  return compile(c.request, problems);
}

std::string build_package(const CommandLine& c, const Program& p, const std::string& dir, bool profile) {
  c.request.listener.tell("text");
  write_package(dir, package_of(p, c));
  if (!c.request.target.is_cuda()) return build_with_make(c, dir, p.name + (profile ? "_profile" : ""));
  return build_with_cmake(c, dir, p.name + (profile ? "_profile" : "_program")) + p.name + (profile ? "_profile" : "");
}

Built build_model(const CommandLine& c, const std::string& dir, Diagnostics& problems) {
  Built b{compile_for_here(c, problems), ""};
  if (problems.has_errors()) return b;
  b.program = build_package(c, b.compilation.program, dir);
  c.request.listener.tell("");
  if (c.request.target.is_cuda())
    print_out(has_gpu() ? "on the GPU\n" : "on the CPU, through the package's cuda_on_cpu\n");
  return b;
}

}  // namespace tc
