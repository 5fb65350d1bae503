// man: the manual page, made from the tables of commands and options.
#include "cli/commands.h"
#include "cli/option_table.h"
#include "cli/version.h"

namespace tc {
namespace {

// Text of a line of roff: hyphens that are typed, no escapes, no requests.
std::string roff(std::string_view text) {
  std::string s;
  for (const char ch : text) {
    if (ch == '-')
      s += "\\-";
    else if (ch == '\\')
      s += "\\e";
    else if ((ch == '.' || ch == '\'') && (s.empty() || s.back() == '\n'))
      s += std::string("\\&") + ch;
    else
      s += ch;
  }
  return s;
}

std::string option_entry(const Option& o) {
  std::string s = ".TP\n.B " + roff(o.flag);
  if (!o.value.empty()) s += " \\fI" + roff(o.value) + "\\fR";
  s += "\n" + roff(o.help) + ".";
  if (o.target == OptionTarget::C) s += " Target c only.";
  if (o.target == OptionTarget::Cuda) s += " Target cuda only.";
  return s + (o.commands == kEvery ? "" : " For " + command_list(o.commands) + ".") + "\n";
}

constexpr std::pair<int, std::string_view> kExitCodes[] = {
    {0, "done"},
    {1, "the model is wrong, or needs --dim"},
    {2, "the command line is wrong"},
    {3, "the model needs something that is not supported"},
    {4, "verify or --check found a difference"},
    {5, "a limit was exceeded"},
    {6, "a file could not be read or written"},
    {7, "an external tool (make, the C compiler, ONNX Runtime) failed"},
    {70, "a defect of tc-emit"},
    {129, "ended by SIGHUP: the package is the old one or the new one, and nothing else is left; so for the next two"},
    {130, "ended by SIGINT, which Ctrl-C sends"},
    {143, "ended by SIGTERM"}};

}  // namespace

ExitCode man_command(const CommandLine&) {
  std::string s = ".TH TC-EMIT 1 \"\" \"tc-emit " + std::string(version()) + "\" \"User Commands\"\n";
  s += ".SH NAME\ntc-emit \\- compile ONNX models to C or CUDA source that people can read\n";
  s += ".SH SYNOPSIS\n.B tc-emit\n[\\fICOMMAND\\fR] [\\fIOPTIONS\\fR] \\fIMODEL\\fR [\\fB\\-o\\fR \\fIDIR\\fR]\n";
  s +=
      ".SH DESCRIPTION\nWrites a folder with a header, one function per distinct kernel, a weights file and build "
      "files: C99 that needs nothing but libc and libm, or CUDA C++. The same model and the same options give the same "
      "bytes. A model is a binary \\fI.onnx\\fR file (external data is read from files below its folder) or, named "
      "\\fI.onnxtxt\\fR, ONNX's text syntax.\n.SH COMMANDS\n";
  for (const Command& c : commands())
    s += ".TP\n.B " + roff(c.name) + (c.operands.empty() ? "" : " \\fI" + roff(c.operands) + "\\fR") + "\n" +
         roff(c.summary) + "\n";
  s += ".SH OPTIONS\n";
  for (const Option& o : options()) s += option_entry(o);
  s += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitCodes) s += ".TP\n.B " + to_text(int64_t(code)) + "\n" + roff(meaning) + "\n";
  s += ".SH EXAMPLES\n.nf\n";
  for (const Command& c : commands()) s += roff(c.examples);
  print_out(s + ".fi\n");
  return ExitCode::Ok;
}

}  // namespace tc
