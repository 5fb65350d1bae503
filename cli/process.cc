#include "cli/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/error.h"

extern char** environ;

namespace tc {

ProcessResult run_process(const std::vector<std::string>& argv, bool with_stderr) {
  ProcessResult r;
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return r;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
  if (with_stderr) posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(fds[1]);
  char buffer[4096];
  for (ssize_t n; (n = ::read(fds[0], buffer, sizeof buffer)) > 0;) r.output.append(buffer, size_t(n));
  ::close(fds[0]);
  if (failed != 0) return r;
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) return r;
  r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return r;
}

namespace {

std::string temporary_stem() {
  const char* base = std::getenv("TMPDIR");
  return std::string(base && *base ? base : "/tmp") + "/tc-emit-";
}

}  // namespace

TemporaryDir::TemporaryDir()
    : TemporaryDir(temporary_stem(), Error("TC0602", ExitCode::Io, "cannot make a temporary folder")) {}

TemporaryDir::TemporaryDir(const std::string& stem, const Error& otherwise) : path_(stem + "XXXXXX") {
  if (!::mkdtemp(path_.data())) throw otherwise;
}

TemporaryDir::~TemporaryDir() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
}

}  // namespace tc
