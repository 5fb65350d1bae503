// SPDX-License-Identifier: 0BSD -- support text of tc-emit; do not edit
// Where code and constants lie in the program, and which line of source an address belongs to. addr2line knows it, if it is
// installed.
#include "cuda_on_cpu_places_check.h"

#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <vector>

extern char **environ;

namespace tc_cpu {
namespace {

struct Module {  // a segment of the program or of a library
  std::string path;
  uintptr_t base, start, end;
  bool constant;
};

struct Known {
  std::vector<Module> modules;
  std::map<const void *, std::string> places;
};
Known &known()
{
  static Known *k = new Known;  // accesses may come until the end
  return *k;
}

int add_module(dl_phdr_info *info, size_t, void *)
{
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &h = info->dlpi_phdr[i];
    const bool relocated = h.p_type == PT_GNU_RELRO;
    if (h.p_type != PT_LOAD && !relocated) continue;
    const uintptr_t start = info->dlpi_addr + h.p_vaddr;
    const char *name = info->dlpi_name != nullptr && info->dlpi_name[0] != 0 ? info->dlpi_name : "/proc/self/exe";
    known().modules.push_back({name, (uintptr_t)info->dlpi_addr, start, start + h.p_memsz, relocated || (h.p_flags & PF_W) == 0});
  }
  return 0;
}
const Module *module_of(const void *p, bool constant)
{
  for (int attempt = 0; attempt < 2; attempt++) {
    for (const Module &m : known().modules)
      if ((uintptr_t)p >= m.start && (uintptr_t)p < m.end && (m.constant || !constant)) return &m;
    if (attempt == 0) {
      known().modules.clear();
      dl_iterate_phdr(add_module, nullptr);
    }
  }
  return nullptr;
}

// What addr2line -i says about a place in a module: lines "file:line", the innermost inlined call first.
std::string addr2line(const Module &m, uintptr_t offset)
{
  char address[32], self[4096];
  snprintf(address, sizeof address, "0x%zx", (size_t)offset);
  std::string path = m.path;
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (path == "/proc/self/exe" && length > 0) path.assign(self, (size_t)length);
  int ends[2];
  if (pipe(ends) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  char name[] = "addr2line", flags[] = "-ise";
  char *arguments[] = {name, flags, &path[0], address, nullptr};
  pid_t child;
  const bool started = posix_spawnp(&child, name, &actions, nullptr, arguments, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t n; started && (n = read(ends[0], part, sizeof part)) > 0;) text.append(part, (size_t)n);
  close(ends[0]);
  if (started) waitpid(child, nullptr, 0);
  return text;
}

}  // namespace

std::string place_of(const void *pc)
{
  std::string &place = known().places[pc];
  if (!place.empty()) return place;
  const Module *m = module_of(pc, false);
  if (m == nullptr) return place = "?";
  const uintptr_t offset = (uintptr_t)pc - 1 - m->base;
  const std::string text = addr2line(*m, offset);
  for (size_t at = 0; at < text.size();) {  // the first line that is not of a support header
    const size_t end = text.find('\n', at) == std::string::npos ? text.size() : text.find('\n', at);
    const std::string line = text.substr(at, text.find_first_of(" \n", at) - at);
    at = end + 1;
    if (line.compare(0, 2, "??") != 0 && line.compare(0, 11, "cuda_on_cpu") != 0 && line.compare(0, 3, "tc_") != 0) return place = line;
  }
  char unknown[64];
  snprintf(unknown, sizeof unknown, "+0x%zx", (size_t)offset);
  return place = m->path + unknown;
}

bool is_constant(const void *p) { return module_of(p, true) != nullptr; }

}  // namespace tc_cpu
