#include "cli/options.h"

#include <algorithm>
#include <set>

#include "cli/option_table.h"

namespace tc {
namespace {

// "-O2" and "--dim=K" in two parts.
bool split_flag(const std::string& arg, std::string& flag, std::string& value) {
  if (arg.size() > 2 && arg.starts_with("-O")) {
    flag = "-O";
    value = arg.substr(2);
    return true;
  }
  if (!arg.starts_with("--")) return false;
  const size_t at = arg.find('=');
  if (at == std::string::npos) return false;
  flag = arg.substr(0, at);
  value = arg.substr(at + 1);
  return true;
}

const Option& option_of(const std::string& flag) {
  if (const Option* o = find_option(flag)) return *o;
  std::vector<std::string_view> flags;
  for (const Option& o : options()) flags.push_back(o.flag);
  usage("unknown option '" + printable(flag) + "'" + did_you_mean(flag, flags));
}

void refuse_options_of_other_commands(const CommandLine& c) {
  const Command& command = *find_command(c.command);
  for (const auto& [flag, value] : c.given)
    if (const Option& o = option_of(flag); !(o.commands & command.bit))
      usage(flag + " is for " + command_list(o.commands) + ", not for " + c.command,
            "tc-emit help " + c.command + " lists its options");
}

// Which of a list's schedules a single file runs, the vectors of the compiler's flags say.
void refuse_equal_vectors(const CommandLine& c) {
  std::vector<CpuModel> rows = c.request.target.others;
  rows.push_back(c.request.target.cpu);
  for (size_t i = 0; i < rows.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (rows[i].vector_lanes == rows[j].vector_lanes && rows[i].march.empty() == rows[j].march.empty())
        usage("--single-file holds one schedule for each length of vectors, and " + std::string(rows[j].name) +
                  " and " + std::string(rows[i].name) + " have the same",
              "leave out one of them, or --single-file");
}

void refuse_contradictions(const CommandLine& c) {
  if (c.request.int8_activations && c.request.options.strict_fp)
    usage("--activations int8 rounds what --fp strict would not: leave out one of them");
  if (c.jit && c.single_file) usage("--jit needs a file per kernel: leave out --single-file");
  if (c.single_file && !c.request.target.others.empty()) refuse_equal_vectors(c);
  if (c.command == "tune" && !c.request.target.others.empty())
    usage("tune measures on one processor: give one --cpu, and its records to emit");
  if (c.check && c.list_outputs) usage("--check and --list-outputs both write nothing: give one of them");
  if (!c.depfile.empty() && (c.check || c.list_outputs))
    usage("--depfile is for a run that writes: leave out --check and --list-outputs");
  if (c.json + c.markdown > 1) usage("--json and --markdown are two forms of the same: give one of them");
  if (c.progress == ProgressMode::Plain && (c.quiet || c.json_diagnostics))
    usage("--progress plain writes lines of text to stderr: leave out --quiet and --diagnostics json");
  if (!c.after.empty() && c.write_ir.empty()) usage("--after says where --write-ir FILE.tc writes; that is missing");
  if (!c.write_ir.empty() && !c.write_ir.ends_with(".tc"))
    usage("--write-ir needs a file that ends with .tc, by which it is known again");
  if (!c.request.options.stop_after.empty() && c.makes_program())
    usage(
        "a run that ends with --stop-after makes no package: leave out -o, --check, --list-outputs and "
        "--write-schedules");
}

void set_operand(CommandLine& c, const std::string& word, bool& command_given) {
  if (!command_given && c.model.empty() && find_command(word)) {
    c.command = word;
    command_given = true;
  } else if (command_given && find_command(c.command)->operands.empty()) {
    usage("tc-emit " + c.command + " takes nothing but options, not '" + printable(word) + "'");
  } else if (c.command == "records") {
    c.records.push_back(word);
  } else if (c.model.empty()) {
    c.model = word;
  } else if (c.command == "diff" && c.other.empty()) {
    c.other = word;
  } else if (c.command == "diff") {
    usage("diff compares two, not a third: '" + printable(word) + "'");
  } else {
    usage("more than one model: '" + printable(c.model) + "' and '" + printable(word) + "'" +
          (command_given ? "" : did_you_mean(c.model, command_names())));
  }
}

/// What runs here is made for this machine, unless another is asked for.
void take_native_cpu(CommandLine& c) {
  c.request.target.cpu = native_cpu();
  c.request.target.others.clear();
  c.native = true;
  c.any_cpu = false;
}

std::string option_lines(unsigned commands, bool of_one) {
  std::string s;
  for (const Option& o : options()) {
    if (!(o.commands & commands)) continue;
    std::string left = std::string(o.flag) + (o.value.empty() ? "" : " " + std::string(o.value));
    left += std::string(left.size() < 26 ? 26 - left.size() : 1, ' ');
    // The default command's own options need no name in front.
    if (!of_one && !(o.commands & kEmit)) left += command_list(o.commands) + ": ";
    if (o.target == OptionTarget::C) left += "C: ";
    if (o.target == OptionTarget::Cuda) left += "CUDA: ";
    s += "  " + left + std::string(o.help) + "\n";
  }
  return s;
}

std::string help_of(const Command& c) {
  const std::string operands = c.operands.empty() ? "" : " " + std::string(c.operands);
  return "usage: tc-emit " + std::string(c.name) + " [OPTIONS]" + operands + "\n\n" + std::string(c.summary) +
         "\n\nexamples:\n" + std::string(c.examples) + "\noptions:\n" + option_lines(c.bit, true);
}

}  // namespace

// Options that the target has no use for would be ignored in silence.
void refuse_idle_options(const CommandLine& c) {
  for (const auto& [flag, value] : c.given) {
    const Option& o = option_of(flag);
    if (o.target == OptionTarget::Cuda && !c.request.target.is_cuda()) usage(flag + " is for --target cuda");
    if (o.target == OptionTarget::C && c.request.target.is_cuda())
      usage(flag + " is for --target c" + (flag == "--cpu" ? "; the other way is --arch" : ""));
  }
}

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command& c : commands()) names.push_back(c.name);
  return names;
}

CommandLine parse_command_line(const std::vector<std::string>& args) {
  CommandLine c;
  c.request.target.cpu = any_cpu();
  bool only_operands = false;
  for (size_t i = 0; i < args.size(); i++) {
    const std::string& a = args[i];
    if (only_operands || a.empty() || a[0] != '-' || a == "-") {
      set_operand(c, a, c.command_given);
      continue;
    }
    if (a == "--") {
      only_operands = true;
      continue;
    }
    std::string flag = a, value;
    const bool joined = split_flag(a, flag, value);
    if (flag == "-h") flag = "--help";
    const Option& o = option_of(flag);
    if (o.value.empty() && joined) usage("option '" + flag + "' takes no value");
    if (!o.value.empty() && !joined) {
      if (i + 1 >= args.size()) usage("option '" + flag + "' needs " + std::string(o.value));
      value = args[++i];
    }
    o.apply(c, value);
    c.given.emplace_back(flag, value);
  }
  refuse_options_of_other_commands(c);
  if (!c.reads_ir()) refuse_idle_options(c);  // a file of --write-ir says the target
  if ((find_command(c.command)->bit & kBuilds) != 0 && !c.was_given("--cpu") && !c.request.target.is_cuda())
    take_native_cpu(c);
  refuse_contradictions(c);
  c.request.import.number_labels = c.request.target.is_cuda();  // it has no strings
  c.request.model = c.model;
  return c;
}

std::string help_text(std::string_view command) {
  if (const Command* c = find_command(command)) return help_of(*c);
  std::string s = "examples:\n" + std::string(find_command("emit")->examples) +
                  "\nusage: tc-emit [COMMAND] [OPTIONS] MODEL [-o DIR]\n\ncommands:\n";
  for (const Command& c : commands())
    s += "  " + std::string(c.name) + std::string(12 - c.name.size(), ' ') + std::string(c.summary) + "\n";
  s += "\noptions:\n" + option_lines(kEvery, false) + "\ntc-emit help COMMAND lists the options of a command\n";
  s += "\nexit codes: 0 done, 1 model rejected, 2 usage, 3 unsupported, 4 mismatch, 5 limit, 6 file, 7 external tool, "
       "70 defect of tc-emit\n";
  return s;
}

}  // namespace tc
