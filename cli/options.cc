#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

#include "passes/loop/loop_pass.h"
#include "support/reserved.h"

namespace tc {
namespace {

struct Option {
  std::string_view flag, value, help;  // value: its placeholder, empty for a switch
  void (*apply)(CommandLine&, const std::string&);
};

[[noreturn]] void usage(const std::string& message) {
  throw Error(Diagnostic{"TC0001", ExitCode::Usage, {}, message, {"tc-emit --help lists commands and options"}, false});
}

int64_t integer(std::string_view what, std::string_view text) {
  int64_t v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size())
    usage(std::string(what) + " needs a whole number, not '" + printable(text) + "'");
  return v;
}

int64_t limit(std::string_view what, std::string_view text, int64_t most) {
  const int64_t v = integer(what, text);
  if (v < 1 || v > most) usage(std::string(what) + " needs a number from 1 to " + to_text(most));
  return v;
}

double number(std::string_view what, std::string_view text) {
  double v = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || !(v >= 0))
    usage(std::string(what) + " needs a number, not '" + printable(text) + "'");
  return v;
}

std::pair<std::string, std::string> key_value(std::string_view what, const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) usage(std::string(what) + " needs NAME=VALUE, not '" + printable(text) + "'");
  return {text.substr(0, at), text.substr(at + 1)};
}

void set_dim(CommandLine& c, const std::string& v) {
  const auto [name, size] = key_value("--dim", v);
  const int64_t n = integer("--dim", size);
  if (n < 0) usage("--dim needs a size of at least 0, not " + to_text(n));
  c.request.import.dims[name] = n;
}

// What stands between the separators; an empty text has no parts.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// "3x4" is {3, 4}.
std::vector<int64_t> shape_of(std::string_view what, std::string_view text) {
  std::vector<int64_t> sizes;
  for (const std::string_view part : parts_of(text, 'x')) {
    if (part.find(',') != part.npos) usage(std::string(what) + " has an x between sizes, as in 1x3x8x8, no comma");
    sizes.push_back(integer(what, part));
    if (sizes.back() < 0) usage(std::string(what) + " needs sizes of at least 0");
  }
  return sizes;
}

// X=3x4,5x4: two tensors; X=: none; X=none: an optional without a value.
void set_elements(CommandLine& c, const std::string& v) {
  const auto [name, text] = key_value("--elements", v);
  ListElements e;
  e.present = text != "none";
  if (e.present)
    for (const std::string_view part : parts_of(text, ',')) {
      if (part.empty()) usage("--elements needs the shape of each tensor, or scalar");
      e.shapes.push_back(part == "scalar" ? std::vector<int64_t>() : shape_of("--elements", part));
    }
  c.request.import.elements[name] = std::move(e);
}

void set_shape(CommandLine& c, const std::string& v) {
  const auto [name, sizes] = key_value("--input-shape", v);
  c.request.import.input_shapes[name] = shape_of("--input-shape", sizes);
}

// X=1,2.5: the numbers of an input.
void set_input_value(CommandLine& c, const std::string& v) {
  const auto [name, text] = key_value("--input-value", v);
  std::vector<std::string>& numbers = c.request.import.input_values[name];
  numbers.clear();
  for (const std::string_view part : parts_of(text, ',')) numbers.emplace_back(part);
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) row[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t up = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = up;
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  size_t distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string_view k : known)
    if (const size_t d = edit_distance(word, k); d < distance) {
      distance = d;
      best = k;
    }
  return best.empty() ? "" : "; did you mean '" + std::string(best) + "'?";
}

void set_cpu(CommandLine& c, const std::string& v) {
  const CpuModel* row = v == "native" ? &native_cpu() : find_cpu(v);
  if (!row) {
    std::vector<std::string_view> names{"native"};
    for (const CpuModel& m : cpu_models()) names.push_back(m.name);
    std::string list;
    for (const std::string_view n : names) list += (list.empty() ? "" : ", ") + std::string(n);
    const std::string guess = did_you_mean(v, names);
    usage("unknown --cpu '" + printable(v) + "'" + guess + (guess.empty() ? "; known: " : " Known: ") + list);
  }
  c.request.target.cpu = *row;
  c.native = v == "native";
}

void set_arch(CommandLine& c, const std::string& v) {
  const CudaModel* row = find_arch(v);
  if (!row) {
    std::vector<std::string_view> names;
    for (const CudaModel& m : cuda_models()) names.push_back(m.name);
    std::string list;
    for (const std::string_view n : names) list += (list.empty() ? "" : ", ") + std::string(n);
    usage("unknown --arch '" + printable(v) + "'; known: " + list);
  }
  c.request.target.gpu = *row;
}

void set_target(CommandLine& c, const std::string& v) {
  if (v == "c")
    c.request.target.kind = Target::Kind::C;
  else if (v == "cuda")
    c.request.target.kind = Target::Kind::Cuda;
  else
    usage("unknown --target '" + printable(v) + "'" + did_you_mean(v, {"c", "cuda"}));
}

void set_fp(CommandLine& c, const std::string& v) {
  if (v != "strict" && v != "fast") usage("--fp is strict or fast, not '" + printable(v) + "'");
  c.request.options.strict_fp = v == "strict";
}

void set_precision(CommandLine& c, const std::string& v) {
  constexpr std::pair<std::string_view, Precision> kNames[] = {{"fp32", Precision::F32},
                                                               {"tf32", Precision::Tf32},
                                                               {"fp16", Precision::F16},
                                                               {"bf16", Precision::Bf16},
                                                               {"int8", Precision::Int8}};
  for (const auto& [name, precision] : kNames) {
    if (v != name) continue;
    c.request.options.precision = precision;
    return;
  }
  usage("--precision is fp32, tf32, fp16, bf16 or int8, not '" + printable(v) + "'");
}

void set_name(CommandLine& c, const std::string& v) {
  std::string lower = v;
  for (char& ch : lower)
    if (ch >= 'A' && ch <= 'Z') ch = char(ch - 'A' + 'a');
  if (make_identifier(v, 40) == v + "_")
    usage("--name '" + v + "' is a word of C, C++ or CUDA, or may be a macro; try '" +
          (make_identifier(lower, 40) == lower ? lower : lower + "_model") + "'");
  if (make_identifier(v, 40) != v)
    usage("--name needs a C identifier of at most 40 characters, not '" + printable(v) + "'");
  if (is_library_name(lower))
    usage("--name '" + v + "' is a name of the C library or of the emitted text; try '" + v + "_model'");
  c.request.name = v;
}

void set_level(CommandLine& c, const std::string& v) {
  const int64_t level = integer("-O", v);
  if (level < 0 || level > 3) usage("-O needs 0 to 3, not " + to_text(level));
  c.request.options.opt_level = int(level);
}

std::string known_pass(const std::string& v, const std::vector<std::string_view>& names) {
  if (std::find(names.begin(), names.end(), v) != names.end()) return v;
  usage("no pass is called '" + printable(v) + "'" + did_you_mean(v, names) + "; tc-emit passes lists them");
}

void disable_pass(CommandLine& c, const std::string& v) {
  std::vector<std::string_view> names;
  for (const PassInfo& p : graph_passes()) names.push_back(p.name);
  for (const std::string_view p : loop_pass_names())
    if (v == p) usage("'" + v + "' is a loop pass, and nothing can be printed without it");
  c.request.options.disabled.insert(known_pass(v, names));
}

void print_after(CommandLine& c, const std::string& v) {
  std::vector<std::string_view> names = loop_pass_names();
  for (const PassInfo& p : graph_passes()) names.push_back(p.name);
  names.push_back("all");
  c.request.options.print_after.insert(known_pass(v, names));
}

const std::vector<Option>& options() {
  static const std::vector<Option> table = {
      {"-o", "DIR", "where the package goes", [](CommandLine& c, const std::string& v) { c.out = v; }},
      {"--target", "c|cuda", "what to print (default c)", set_target},
      {"--cpu", "NAME", "schedule for generic (default), x86-64-v3, x86-64-v4, znver4, znver5, aarch64 or native",
       set_cpu},
      {"--arch", "NAME", "CUDA: schedule for sm_75, sm_80 (default), sm_86, sm_89, sm_90, sm_100 or sm_120", set_arch},
      {"--jit", "", "CUDA: NVRTC compiles the kernels when an instance is made",
       [](CommandLine& c, const std::string&) { c.jit = true; }},
      {"--precision", "P",
       "CUDA: what tensor cores multiply: fp32 (default: halves and bytes only), tf32, fp16, bf16 or int8",
       set_precision},
      {"--name", "NAME", "prefix of every symbol (default: the model's file name)", set_name},
      {"--dim", "D=K", "size of a symbolic dimension, or of one axis: INPUT:AXIS=K; may be repeated", set_dim},
      {"--input-shape", "X=1x3x8x8", "whole shape of an input; may be repeated", set_shape},
      {"--elements", "X=3x4,5x4", "shapes of the tensors in a sequence or optional input (scalar, or none: empty)",
       set_elements},
      {"--input-value", "X=16000", "fix an input: numbers, separated by commas; may be repeated", set_input_value},
      {"--single-file", "", "one NAME.c instead of a file per kernel",
       [](CommandLine& c, const std::string&) { c.single_file = true; }},
      {"--string-bytes", "N", "C: room in the workspace for the strings that a run makes (default 65536)",
       [](CommandLine& c, const std::string& v) {
         c.request.options.string_bytes = (limit("--string-bytes", v, int64_t(1) << 40) + 63) / 64 * 64;
       }},
      {"--fp", "strict|fast", "strict: sums in the order of the definition, no Winograd (default fast)", set_fp},
      {"-O", "0..3", "optimisation level of the graph passes (default 2)", set_level},
      {"--disable-pass", "PASS", "leave a pass out; may be repeated", disable_pass},
      {"--print-ir-after", "PASS", "print the graph after a pass, or after all", print_after},
      {"--dump-ir", "DIR", "write the graph after every pass into a folder",
       [](CommandLine& c, const std::string& v) { c.request.options.dump_dir = v; }},
      {"--time-passes", "", "say how long each pass took",
       [](CommandLine& c, const std::string&) { c.request.options.time_passes = true; }},
      {"--verify-each", "", "check the graph's invariants after every pass",
       [](CommandLine& c, const std::string&) { c.request.options.verify_each = true; }},
      {"--limit-memory", "MIB", "how much the model's constants may take (default 16384)",
       [](CommandLine& c, const std::string& v) {
         c.request.import.max_tensor_bytes = limit("--limit-memory", v, INT64_MAX >> 20) << 20;
       }},
      {"--limit-nodes", "N", "how many nodes the model may have once functions are expanded (default 1000000)",
       [](CommandLine& c, const std::string& v) { c.request.import.max_nodes = limit("--limit-nodes", v, INT64_MAX); }},
      {"--check", "", "write nothing; exit code 4 if DIR is not what would be written",
       [](CommandLine& c, const std::string&) { c.check = true; }},
      {"--against", "onnxruntime|interpreter", "verify: what to compare with",
       [](CommandLine& c, const std::string& v) { c.against = v; }},
      {"--seed", "N", "verify, bench: seed of generated inputs",
       [](CommandLine& c, const std::string& v) { c.seed = uint64_t(integer("--seed", v)); }},
      {"--seconds", "S", "bench: how long to run (default 2)",
       [](CommandLine& c, const std::string& v) { c.seconds = number("--seconds", v); }},
      {"--threads", "N", "bench: threads",
       [](CommandLine& c, const std::string& v) { c.threads = int(integer("--threads", v)); }},
      {"--json", "", "info, ops, bench: JSON instead of a table",
       [](CommandLine& c, const std::string&) { c.json = true; }},
      {"--quiet", "", "no summary", [](CommandLine& c, const std::string&) { c.quiet = true; }},
      {"--help", "", "this text", [](CommandLine& c, const std::string&) { c.help = true; }},
      {"--version", "", "version of tc-emit and of the operator set",
       [](CommandLine& c, const std::string&) { c.version = true; }},
  };
  return table;
}

struct Command {
  std::string_view name, summary, examples;
};
constexpr Command kCommands[] = {
    {"emit", "print a model as source (the default)",
     "  tc-emit model.onnx -o out/\n  tc-emit --target cuda model.onnx -o out/\n  tc-emit --cpu x86-64-v4 --dim "
     "batch=1 resnet50.onnx -o out/\n  tc-emit --check "
     "model.onnx -o third_party/model/\n"},
    {"check", "compile and write nothing: list every problem",
     "  tc-emit check model.onnx\n  tc-emit check --dim batch=1 model.onnx\n"},
    {"info", "inputs, outputs, operators, parameters, multiply-accumulates",
     "  tc-emit info model.onnx\n  tc-emit info --json --dim batch=1 model.onnx\n"},
    {"ops", "the operators that are supported, or those with a word in their names",
     "  tc-emit ops\n  tc-emit ops Conv\n  tc-emit ops --json\n"},
    {"passes", "the passes in the order in which they run", "  tc-emit passes\n"},
    {"verify", "emit, build, run, and compare with ONNX Runtime or the interpreter",
     "  tc-emit verify model.onnx\n  tc-emit verify --against interpreter --seed 7 model.onnx\n"},
    {"bench", "emit, build and time", "  tc-emit bench --cpu native --seconds 5 model.onnx\n"},
    {"explain", "what the code of a message means", "  tc-emit explain TC0301\n"},
    {"help", "this text, or that of a command", "  tc-emit help verify\n"},
};

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

}  // namespace

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command& c : kCommands) names.push_back(c.name);
  return names;
}

CommandLine parse_command_line(const std::vector<std::string>& args) {
  CommandLine c;
  c.request.target.cpu = *find_cpu("generic");
  bool command_given = false, only_positional = false;
  std::set<std::string_view> given;
  for (size_t i = 0; i < args.size(); i++) {
    const std::string& a = args[i];
    if (only_positional || a.empty() || a[0] != '-' || a == "-") {
      const std::vector<std::string_view> names = command_names();
      if (!command_given && c.model.empty() && std::find(names.begin(), names.end(), a) != names.end()) {
        c.command = a;
        command_given = true;
      } else if (c.model.empty()) {
        c.model = a;
      } else {
        usage("more than one model: '" + printable(c.model) + "' and '" + printable(a) + "'" +
              (command_given ? "" : did_you_mean(c.model, names)));
      }
      continue;
    }
    if (a == "--") {
      only_positional = true;
      continue;
    }
    std::string flag = a, value;
    const bool joined = split_flag(a, flag, value);
    if (flag == "-h") flag = "--help";
    const Option* found = nullptr;
    std::vector<std::string_view> flags;
    for (const Option& o : options()) {
      flags.push_back(o.flag);
      if (o.flag == flag) found = &o;
    }
    if (!found) usage("unknown option '" + printable(flag) + "'" + did_you_mean(flag, flags));
    if (found->value.empty() && joined) usage("option '" + flag + "' takes no value");
    if (!found->value.empty() && !joined) {
      if (i + 1 >= args.size()) usage("option '" + flag + "' needs " + std::string(found->value));
      value = args[++i];
    }
    found->apply(c, value);
    given.insert(found->flag);
  }
  for (const std::string_view flag : {"--jit", "--precision", "--arch"})
    if (!c.request.target.is_cuda() && given.count(flag) != 0) usage(std::string(flag) + " is for --target cuda");
  if (c.request.target.is_cuda() && given.count("--cpu") != 0)
    usage("--cpu is for --target c; the other way is --arch");
  if (c.jit && c.single_file) usage("--jit needs a file per kernel: leave out --single-file");
  c.request.import.number_labels = c.request.target.is_cuda();  // it has no strings
  c.request.model = c.model;
  return c;
}

std::string help_text(std::string_view command) {
  std::string s;
  for (const Command& c : kCommands)
    if (command.empty() ? c.name == "emit" : c.name == command) s += std::string(c.examples);
  s = "examples:\n" + s + "\nusage: tc-emit [COMMAND] [OPTIONS] MODEL [-o DIR]\n\ncommands:\n";
  for (const Command& c : kCommands)
    s += "  " + std::string(c.name) + std::string(10 - c.name.size(), ' ') + std::string(c.summary) + "\n";
  s += "\noptions:\n";
  for (const Option& o : options()) {
    std::string left = std::string(o.flag) + (o.value.empty() ? "" : " " + std::string(o.value));
    left += std::string(left.size() < 26 ? 26 - left.size() : 1, ' ');
    s += "  " + left + std::string(o.help) + "\n";
  }
  s += "\nexit codes: 0 done, 1 model rejected, 2 usage, 3 unsupported, 4 mismatch, 5 limit, 6 file, 7 external tool, "
       "70 defect of tc-emit\n";
  return s;
}

}  // namespace tc
