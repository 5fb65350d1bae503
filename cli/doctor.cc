#include "cli/doctor.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "cli/new_file.h"
#include "cli/process.h"
#include "cli/reference.h"
#include "support/error.h"
#include "support/text.h"

namespace tc {
namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

/// CC may have arguments, so that only the shell that make uses knows the program.
ProcessResult in_shell(const std::string& command) { return run_process({"sh", "-c", command}, true); }

std::string version_of(const std::string& command) {
  const ProcessResult r = in_shell(command + " --version");
  if (r.status != 0) return "";
  const std::string line = version_line(r.output);
  return line.empty() ? "of an unknown version" : line;
}

/// What a compiler is, if it makes a program that runs; "" if not.
std::string compiler(const std::string& command, const std::string& file, const std::string& flags) {
  const std::string version = version_of(command);
  if (version.empty()) return "";
  const TemporaryDir dir;
  const NewFile source(dir.path() + "/" + file,
                       "#include <math.h>\n#include <stdio.h>\nint main(int n, char **v) { return puts(v[0]) < 0 || "
                       "sqrt((double)n) != 1; }\n");
  source.put_in_place();
  const std::string build = command + " -O1 " + file + " " + flags + " -lm -o p";
  const ProcessResult r = run_process({"sh", "-c", "cd \"$1\" && " + build, "sh", dir.path()}, true);
  const bool works = r.status == 0 && run_process({dir.path() + "/p"}, true).status == 0;
  return works ? command + ": " + version : "";
}

void look_for_c(std::vector<Finding>& list) {
  const std::string cc = variable("CC", "cc");
  list.push_back({"C", "C compiler", compiler(cc, "p.c", ""), "building packages; verify, run, bench, tune",
                  "apt install gcc libc6-dev, or set CC"});
  for (const std::string other : {"gcc", "clang", "arm-none-eabi-gcc"})
    if (const std::string version = other == cc ? "" : version_of(other); !version.empty())
      list.push_back({"C", "also", other + ": " + version, "", ""});
  list.push_back({"C", "threads", compiler(cc, "p.c", "-pthread -include pthread.h").empty() ? "" : "-pthread",
                  "kernels on several threads", "a C library with pthreads"});
  list.push_back({"C", "make", version_of("make"), "verify, run, bench, tune", "apt install make"});
  list.push_back({"C", "CMake", version_of("cmake"), "find_package(tc-emit), packages in CMake projects, CUDA",
                  "apt install cmake"});
}

void look_for_cuda(std::vector<Finding>& list) {
  list.push_back({"CUDA", "C++ compiler", compiler(variable("CXX", "c++"), "p.cc", ""), "CUDA packages on the CPU",
                  "apt install g++, or set CXX"});
  list.push_back({"CUDA", "nvcc", version_of(variable("CUDACXX", "nvcc")), "CUDA packages on a GPU",
                  "install CUDA's toolkit and put nvcc on PATH"});
  const ProcessResult gpu = run_process({"nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"}, false);
  list.push_back({"CUDA", "GPU", gpu.status == 0 ? gpu.output.substr(0, gpu.output.find('\n')) : "",
                  "verify, run and bench of --target cuda, which else use the CPU", "a GPU and NVIDIA's driver"});
}

void look_for_references(std::vector<Finding>& list) {
  struct Module {
    const char* name;
    std::string_view shown, serves, way_out;
  };
  static constexpr Module kModules[] = {
      {"onnxruntime", "ONNX Runtime", "verify compares with it, else with the interpreter", "pip install onnxruntime"},
      {"numpy", "NumPy", "ONNX Runtime, and run() of the Python module", "pip install numpy"},
      {"onnx", "onnx", "verify --reference; models with strings", "pip install onnx"},
  };
  std::vector<std::string> names;
  for (const Module& m : kModules) names.emplace_back(m.name);
  const auto found = python_modules(names);
  list.push_back(
      {"references", "Python", found ? version_of("python3") : "", "references of verify", "apt install python3"});
  for (const Module& m : kModules) {
    const bool there = found && found->contains(m.name);
    list.push_back({"references", m.shown, there ? found->at(m.name) : "", m.serves, m.way_out});
  }
}

}  // namespace

std::string version_line(std::string_view printed) {
  while (!printed.empty()) {
    const size_t end = std::min(printed.find('\n'), printed.size());
    const std::string_view line = printed.substr(0, end);
    for (size_t i = 1; i + 1 < line.size(); i++)
      if (line[i] == '.' && std::isdigit((unsigned char)line[i - 1]) && std::isdigit((unsigned char)line[i + 1]))
        return printable(line, 80);
    printed.remove_prefix(std::min(end + 1, printed.size()));
  }
  return "";
}

std::vector<Finding> examine_machine() {
  std::vector<Finding> list;
  look_for_c(list);
  look_for_cuda(list);
  look_for_references(list);
  return list;
}

}  // namespace tc
