// Runs programs that are shared libraries, one after the other, in one process: what it takes to begin with a GPU, which
// is longer than a small model runs, is done once. Reads requests, fields that a byte 1 separates and a line that ends
// them: folder, file of the output, library, the arguments of its main(). Answers each with a line, what main() returned.
// A program that ends the process, by exit() or a signal, ends the server with it.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

// The device's context lives as long as this process; without a GPU there is none.
void hold_context() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  const auto init = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : nullptr;
  const auto retain = driver ? (int (*)(void**, int))dlsym(driver, "cuDevicePrimaryCtxRetain") : nullptr;
  void* context = nullptr;
  if (init && retain && init(0) == 0) retain(&context, 0);
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line)
    if (c == '\1')
      fields.emplace_back();
    else
      fields.back() += c;
  return fields;
}

int run(std::vector<std::string> fields) {
  void* library = dlopen(fields[2].c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto program = library ? (int (*)(int, char**))dlsym(library, "main") : nullptr;
  if (!program) return std::fprintf(stderr, "error: %s\n", dlerror()), 127;
  std::vector<char*> arguments;
  for (size_t i = 2; i < fields.size(); i++) arguments.push_back(fields[i].data());
  arguments.push_back(nullptr);
  const int status = program((int)arguments.size() - 1, arguments.data());
  std::fflush(nullptr);
  dlclose(library);
  return status;
}

}  // namespace

int main() {
  hold_context();
  const int answers = dup(1);
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::vector<std::string> fields = fields_of(line);
    const int to = fields.size() < 3 ? -1 : open(fields[1].c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (to < 0 || chdir(fields[0].c_str()) != 0) return 126;
    dup2(to, 1), dup2(to, 2), close(to);
    dprintf(answers, "%d\n", run(fields));
  }
  return 0;
}
