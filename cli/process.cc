#include "cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "support/error.h"
#include "support/interrupt.h"

extern char** environ;

namespace tc {

namespace {

constexpr int kTick = 100;                           // milliseconds between two calls of `waiting`
constexpr auto kPatience = std::chrono::seconds(5);  // for a program that is asked to end

/// A program that runs, in a process group of its own: what it starts ends with it.
class Child {
 public:
  /// `in`: what it reads; -1: nothing.
  Child(const std::vector<std::string>& argv, bool with_stderr, int in = -1) {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return;
    out_ = fds[0];
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (in >= 0)
      posix_spawn_file_actions_adddup2(&files, in, 0);
    else
      posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fds[1], 1);
    if (with_stderr) posix_spawn_file_actions_adddup2(&files, fds[1], 2);
    posix_spawnattr_t own_group;
    posix_spawnattr_init(&own_group);
    posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
    std::vector<char*> args;
    for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
    args.push_back(nullptr);
    if (::posix_spawnp(&pid_, args[0], &files, &own_group, args.data(), environ) != 0) pid_ = -1;
    posix_spawnattr_destroy(&own_group);
    posix_spawn_file_actions_destroy(&files);
    ::close(fds[1]);
  }
  ~Child() {
    if (out_ >= 0) ::close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool started() const { return pid_ > 0; }

  /// Waits for output, for at most a tick or, with `until_signal`, for a signal; false at the end of the output.
  bool read(std::string& output, bool until_signal) const {
    pollfd fds[2] = {{out_, POLLIN, 0}, {until_signal ? interrupt_descriptor() : -1, POLLIN, 0}};
    if (::poll(fds, 2, kTick) <= 0 || fds[0].revents == 0) return true;
    char buffer[4096];
    const ssize_t n = ::read(out_, buffer, sizeof buffer);
    if (n > 0) output.append(buffer, size_t(n));
    return n > 0 || (n < 0 && errno == EINTR);
  }

  int wait() const {
    int status = 0;
    while (::waitpid(pid_, &status, 0) != pid_)
      if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// Asks the group to end. Compilers remove their files then; the output ends when the last of the group is gone.
  void end() const {
    ::kill(-pid_, SIGTERM);
    const auto last = std::chrono::steady_clock::now() + kPatience;
    for (std::string rest; read(rest, false);)
      if (std::chrono::steady_clock::now() > last) break;
    ::kill(-pid_, SIGKILL);
    wait();
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv, bool with_stderr,
                          const std::function<void()>& waiting) {
  stop_if_interrupted();
  ProcessResult r;
  const Child child(argv, with_stderr);
  if (!child.started()) return r;
  try {
    while (child.read(r.output, true)) {
      stop_if_interrupted();
      if (waiting) waiting();
    }
  } catch (...) {
    child.end();
    throw;
  }
  r.status = child.wait();
  return r;
}

ProcessResult run_limited(const std::vector<std::string>& argv, double seconds) {
  struct TookTooLong {};
  const auto last = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  try {
    return run_process(argv, true, [&] {
      if (std::chrono::steady_clock::now() > last) throw TookTooLong();
    });
  } catch (const TookTooLong&) {
    return {kTimedOut, ""};
  }
}

struct Conversation::Ends {
  int ours = -1;
  std::optional<Child> child;
  std::string heard;
};

// A pair of sockets, whose end says that the program is gone without a signal.
Conversation::Conversation(const std::vector<std::string>& argv) : ends_(std::make_unique<Ends>()) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  ends_->ours = ends[0];
  ends_->child.emplace(argv, false, ends[1]);
  ::close(ends[1]);
}

Conversation::~Conversation() {
  if (ends_->ours >= 0) ::close(ends_->ours);
  if (ends_->child && ends_->child->started()) ends_->child->end();
}

bool Conversation::say(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::send(ends_->ours, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return false;
    stop_if_interrupted();
    if (n > 0) at += size_t(n);
  }
  return true;
}

std::optional<std::string> Conversation::hear(double seconds) {
  const auto last = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::string& heard = ends_->heard;
  while (heard.find('\n') == std::string::npos) {
    stop_if_interrupted();
    if (std::chrono::steady_clock::now() > last) return {};
    if (!ends_->child || !ends_->child->started() || !ends_->child->read(heard, true)) return {};
  }
  const size_t end = heard.find('\n');
  std::string line = heard.substr(0, end);
  heard.erase(0, end + 1);
  return line;
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
