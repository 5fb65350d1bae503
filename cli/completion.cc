// completion: what bash, zsh and fish complete, made from the tables of commands and options.
#include "cli/commands.h"
#include "cli/option_words.h"

namespace tc {
namespace {

using Kind = ValueWords::Kind;

// Inside single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string s = "'";
  for (const char ch : text) s += ch == '\'' ? std::string("'\\''") : std::string(1, ch);
  return s + "'";
}

std::string flags_of(const Command& c) {
  std::vector<std::string> flags;
  for (const Option& o : options())
    if (o.commands & c.bit) flags.emplace_back(o.flag);
  return join(flags, " ");
}

std::string names_of_commands() {
  std::vector<std::string> names;
  for (const std::string_view n : command_names()) names.emplace_back(n);
  return join(names, " ");
}

constexpr std::string_view kModels = "onnx|onnxtxt";

// The line of bash that fills COMPREPLY.
std::string bash_reply(const ValueWords& v) {
  switch (v.kind) {
    case Kind::Words: return "COMPREPLY=($(compgen -W " + quoted(join(v.words, " ")) + " -- \"$cur\"))";
    case Kind::Folder: return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")";
    case Kind::File: return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")";
    case Kind::Free: break;
  }
  return "COMPREPLY=()";
}

std::string bash_completion() {
  std::string s =
      "# bash completion of tc-emit, written by `tc-emit completion bash`.\n"
      "_tc_emit() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=emit flags word\n"
      "  # --cpu=NAME comes as three words.\n"
      "  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  case $prev in\n";
  for (const Option& o : options())
    if (!o.value.empty()) s += "    " + std::string(o.flag) + ") " + bash_reply(value_words(o)) + "; return ;;\n";
  s += "  esac\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $word in\n      ";
  std::string names = names_of_commands();
  for (char& ch : names)
    if (ch == ' ') ch = '|';
  s += names + ") command=$word; break ;;\n    esac\n  done\n  case $command in\n";
  for (const Command& c : commands()) {
    s += "    " + std::string(c.name) + ")\n      flags=" + quoted(flags_of(c)) + "\n";
    if (const ValueWords v = operand_words(c); v.kind == Kind::Words)
      s += "      if [[ $cur != -* ]]; then " + bash_reply(v) + "; return; fi\n";
    s += "      ;;\n";
  }
  s += "  esac\n"
       "  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")); return; fi\n"
       "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W " +
       quoted(names_of_commands()) +
       " -- \"$cur\")); fi\n"
       "  compopt -o filenames\n"
       "  local file\n"
       "  while IFS= read -r file; do\n"
       "    if [[ -d $file || $file == *.@(" +
       std::string(kModels) +
       ") ]]; then COMPREPLY+=(\"$file\"); fi\n"
       "  done < <(compgen -f -- \"$cur\")\n"
       "}\n"
       "shopt -s extglob\n"
       "complete -F _tc_emit tc-emit\n";
  return s;
}

// Inside [...] of a specification of _arguments.
std::string zsh_help(std::string_view text) {
  std::string s;
  for (const char ch : text) {
    if (ch == '[' || ch == ']' || ch == ':' || ch == '\\') s += '\\';
    s += ch;
  }
  return s;
}

std::string zsh_action(const ValueWords& v) {
  switch (v.kind) {
    case Kind::Words: return "(" + join(v.words, " ") + ")";
    case Kind::Folder: return "_files -/";
    case Kind::File: return "_files";
    case Kind::Free: break;
  }
  return " ";
}

std::string zsh_completion() {
  std::string s =
      "#compdef tc-emit\n# zsh completion of tc-emit, written by `tc-emit completion zsh`.\n"
      "_tc_emit() {\n  local command=emit word\n  local -a commands arguments\n  commands=(\n";
  for (const Command& c : commands()) s += "    " + quoted(std::string(c.name) + ":" + zsh_help(c.summary)) + "\n";
  s += "  )\n  for word in ${words[2,CURRENT-1]}; do\n"
       "    if (( ${commands[(I)$word:*]} )); then command=$word; break; fi\n  done\n  case $command in\n";
  for (const Command& c : commands()) {
    s += "    " + std::string(c.name) + ") arguments=(\n";
    for (const Option& o : options()) {
      if (!(o.commands & c.bit)) continue;
      std::string spec = "*" + std::string(o.flag) + "[" + zsh_help(o.help) + "]";
      if (!o.value.empty()) spec += ":" + zsh_help(o.value) + ":" + zsh_action(value_words(o));
      s += "      " + quoted(spec) + "\n";
    }
    ValueWords v = operand_words(c);
    const bool model = v.kind == Kind::File;
    if (v.kind != Kind::Free)
      s += "      " +
           quoted("*:" + zsh_help(c.operands) + ":" +
                  (model ? "_files -g \"*.(" + std::string(kModels) + ")\"" : zsh_action(v))) +
           "\n";
    s += "    ) ;;\n";
  }
  return s +
         "  esac\n  if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then _describe command commands; fi\n"
         "  _arguments $arguments\n}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _tc_emit \"$@\"; else compdef _tc_emit tc-emit; fi\n";
}

std::string fish_value(const ValueWords& v) {
  switch (v.kind) {
    case Kind::Words: return " -x -a " + quoted(join(v.words, " "));
    case Kind::Folder: return " -x -a '(__fish_complete_directories)'";
    case Kind::File: return " -r -F";
    case Kind::Free: break;
  }
  return " -x";
}

std::string fish_completion() {
  const std::string line = "complete -c tc-emit", names = names_of_commands();
  std::string s = "# fish completion of tc-emit, written by `tc-emit completion fish`.\n" + line + " -f\n";
  std::vector<std::string> without_model;
  for (const Command& c : commands())
    if (operand_words(c).kind != Kind::File) without_model.emplace_back(c.name);
  s += line + " -n 'not __fish_seen_subcommand_from " + join(without_model, " ") +
       "' -a '(__fish_complete_suffix .onnx; __fish_complete_suffix .onnxtxt)'\n";
  for (const Command& c : commands())
    s += line + " -n '__fish_use_subcommand' -a " + quoted(c.name) + " -d " + quoted(c.summary) + "\n";
  for (const Option& o : options()) {
    // What emit takes needs no command in front of it.
    std::vector<std::string> takes, refuses;
    for (const Command& c : commands()) (o.commands & c.bit ? takes : refuses).emplace_back(c.name);
    std::string condition;
    if (o.commands & kEmit) {
      if (!refuses.empty()) condition = " -n 'not __fish_seen_subcommand_from " + join(refuses, " ") + "'";
    } else {
      condition = " -n '__fish_seen_subcommand_from " + join(takes, " ") + "'";
    }
    const bool is_long = o.flag.starts_with("--");
    s += line + condition + (is_long ? " -l " : " -s ") + std::string(o.flag.substr(is_long ? 2 : 1)) +
         (o.value.empty() ? "" : fish_value(value_words(o))) + " -d " + quoted(o.help) + "\n";
  }
  for (const Command& c : commands())
    if (const ValueWords v = operand_words(c); v.kind == Kind::Words)
      s += line + " -n '__fish_seen_subcommand_from " + std::string(c.name) + "' -a " + quoted(join(v.words, " ")) +
           "\n";
  return s;
}

}  // namespace

ExitCode completion_command(const CommandLine& c) {
  if (c.model == "bash")
    print_out(bash_completion());
  else if (c.model == "zsh")
    print_out(zsh_completion());
  else if (c.model == "fish")
    print_out(fish_completion());
  else
    usage(c.model.empty() ? "no shell given" : "no completions for '" + printable(c.model) + "'",
          "usage: tc-emit completion bash|zsh|fish");
  return ExitCode::Ok;
}

}  // namespace tc
