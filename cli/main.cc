#include <csignal>
#include <exception>
#include <new>

#include "cli/commands.h"
#include "cli/diagnostics_json.h"
#include "support/interrupt.h"

namespace {

// Says what ended the run; gives the exit code.
int last_words(const tc::Diagnostic& d, const std::vector<std::string>& args) {
  if (tc::wants_json_diagnostics(args))
    tc::print_err(tc::diagnostic_json(d));
  else if (d.exit == tc::ExitCode::Internal)
    tc::print_err("tc-emit: internal error: " + d.message + "\n  note: " + d.notes[0] + "\n");
  else
    tc::print_err("tc-emit: " + d.render() + "\n");
  return int(d.exit);
}

// What a shell reports of a program that the signal has ended.
int interrupted(int signal, const std::vector<std::string>& args) {
  const std::string name = signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "SIGHUP";
  if (!tc::wants_json_diagnostics(args)) tc::print_err("tc-emit: ended by " + name + "\n");
  return 128 + signal;
}

}  // namespace

// Every failure ends here, once: a diagnosis and its exit code.
int main(int argc, char** argv) {
  using namespace tc;
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  notice_interrupts();
  try {
    const int exit = int(run_command(parse_command_line(args)));
    // One that came when all was done ends the script or the loop that this is part of.
    return interrupting_signal() != 0 ? 128 + interrupting_signal() : exit;
  } catch (const Interrupted& i) {
    return interrupted(i.signal, args);
  } catch (const Error& e) {
    return last_words(e.diagnostic(), args);
  } catch (const std::bad_alloc&) {
    return last_words({"TC0501", ExitCode::Limit, {}, "out of memory", {"the model needs more memory than there is"}},
                      args);
  } catch (const std::exception& e) {
    return last_words({"",
                       ExitCode::Internal,
                       {},
                       printable(e.what(), 2000),
                       {"this is a defect of tc-emit; please report it with the model"}},
                      args);
  }
}
