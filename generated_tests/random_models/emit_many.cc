// Runs tc-emit for many models without starting it for each: every line of stdin is a command, its words and at last the
// file for its messages separated by tabs. Each runs in a process of its own, forked from this one, which has read ONNX's
// schemas once. Answers each line with the exit code, or 1000 and the signal.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace {

constexpr unsigned kSeconds = 60;  // that a command may take

int run(const std::vector<std::string>& words) {
  using namespace tc;
  try {
    return int(run_command(parse_command_line(words)));
  } catch (const Error& e) {
    print_err("tc-emit: " + e.diagnostic().render() + "\n");
    return int(e.diagnostic().exit);
  } catch (const std::bad_alloc&) {
    return int(ExitCode::Limit);
  } catch (const std::exception& e) {
    print_err("tc-emit: internal error: " + printable(e.what(), 2000) + "\n");
    return int(ExitCode::Internal);
  }
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('\t', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// The exit code of a command that a child runs.
int in_child(std::vector<std::string> words) {
  const std::string messages = words.back();
  words.pop_back();
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int file = open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, 1);
    dup2(file, 2);
    alarm(kSeconds);
    const int status = run(words);
    fflush(nullptr);
    _exit(status);
  }
  int ended = 0;
  waitpid(child, &ended, 0);
  return WIFSIGNALED(ended) ? 1000 + WTERMSIG(ended) : WEXITSTATUS(ended);
}

}  // namespace

// The argument is a model that is checked first, so that what any model needs is there; nobody hears what it says.
int main(int argc, char** argv) {
  const int answers = dup(1);
  const int nobody = open("/dev/null", O_WRONLY);
  dup2(nobody, 1);
  if (argc > 1) run({"check", argv[1], "--quiet"});
  for (std::string line; std::getline(std::cin, line);) dprintf(answers, "%d\n", in_child(split(line)));
  return 0;
}
