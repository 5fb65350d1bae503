#include <exception>
#include <new>

#include "cli/commands.h"

// Every failure ends here, once: a diagnosis and its exit code.
int main(int argc, char** argv) {
  using namespace tc;
  try {
    return int(run_command(parse_command_line({argv + (argc > 0 ? 1 : 0), argv + argc})));
  } catch (const Error& e) {
    print_err("tc-emit: " + e.diagnostic().render() + "\n");
    return int(e.diagnostic().exit);
  } catch (const std::bad_alloc&) {
    print_err("tc-emit: error[TC0501]: out of memory\n  note: the model needs more memory than there is\n");
    return int(ExitCode::Limit);
  } catch (const std::exception& e) {
    print_err("tc-emit: internal error: " + printable(e.what(), 2000) +
              "\n  note: this is a defect of tc-emit; please report it with the model\n");
    return int(ExitCode::Internal);
  }
}
