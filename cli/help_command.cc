// help and explain: what the tool has to say about itself.
#include <algorithm>

#include "cli/commands.h"
#include "cli/diagnostics_text.h"

namespace tc {

ExitCode help_command(const CommandLine& c) {
  const std::vector<std::string_view> names = command_names();
  if (!c.model.empty() && std::find(names.begin(), names.end(), c.model) == names.end()) {
    std::vector<std::string> known(names.begin(), names.end());
    throw Error(Diagnostic{"TC0001",
                           ExitCode::Usage,
                           {},
                           "there is no command '" + printable(c.model) + "'",
                           {"the commands are: " + join(known, ", ")},
                           false});
  }
  print_out(help_text(c.model));
  return ExitCode::Ok;
}

ExitCode explain_command(const CommandLine& c) {
  std::string code = c.model;
  std::transform(code.begin(), code.end(), code.begin(),
                 [](char x) { return x >= 'a' && x <= 'z' ? char(x - 32) : x; });
  if (code.empty())
    throw Error(Diagnostic{"TC0001", ExitCode::Usage, {}, "no code given", {"usage: tc-emit explain TC0301"}, false});
  const std::string text = explanation_of(code);
  if (text.empty())
    throw Error(Diagnostic{"TC0001",
                           ExitCode::Usage,
                           {},
                           "there is no message with the code '" + printable(c.model) + "'",
                           {"codes look like TC0301 and stand in brackets in front of a message"},
                           false});
  print_out(text);
  return ExitCode::Ok;
}

}  // namespace tc
