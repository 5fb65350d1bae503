#include "support/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace tc {
namespace {

// A handler can reach nothing but globals. It writes `came` and into the pipe, which notice_interrupts() has opened before;
// nobody else writes either.
volatile sig_atomic_t came = 0;
int pipe_ends[2] = {-1, -1};

void on_signal(int signal) {
  const int before = errno;
  came = signal;
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], &byte, 1);
  errno = before;
}

}  // namespace

void notice_interrupts() {
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) return;  // then signals end the process as they always do
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

int interrupting_signal() { return came; }

void stop_if_interrupted() {
  if (came != 0) throw Interrupted{came};
}

int interrupt_descriptor() { return pipe_ends[0]; }

}  // namespace tc
