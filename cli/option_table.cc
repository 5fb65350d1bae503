#include "cli/option_table.h"

#include <algorithm>
#include <charconv>

#include "cli/ir_options.h"
#include "passes/loop/loop_pass.h"
#include "support/reserved.h"

namespace tc {
namespace {

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
  if (const auto sum = parse_size_expression(size)) {
    c.request.import.dims[name] = *sum;
    return;
  }
  const size_t dots = size.find("..");
  const int64_t least = integer("--dim", size.substr(0, dots));
  const int64_t most = dots == std::string::npos ? least : integer("--dim", size.substr(dots + 2));
  if (least < 0) usage("--dim needs a size of at least 0, not " + to_text(least));
  if (most < least) usage("--dim needs a range that is not empty, not " + printable(size));
  c.request.import.dims[name] = {least, most};
}

void set_state(CommandLine& c, const std::string& v) {
  const auto pair = key_value("--state", v);
  for (const std::string* pattern : {&pair.first, &pair.second})
    if (pattern->empty() || std::count(pattern->begin(), pattern->end(), '*') > 1)
      usage("--state needs INPUT=OUTPUT with one '*' in both at most, not '" + printable(v) + "'");
  c.request.import.states.push_back(pair);
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

void set_cpu(CommandLine& c, const std::string& v) {
  const CpuModel* row = v == "native" ? &native_cpu() : find_cpu(v == "any" ? "generic" : v);
  if (!row) {
    std::vector<std::string_view> names{"any", "native"};
    for (const CpuModel& m : cpu_models()) names.push_back(m.name);
    std::string list;
    for (const std::string_view n : names) list += (list.empty() ? "" : ", ") + std::string(n);
    const std::string guess = did_you_mean(v, names);
    usage("unknown --cpu '" + printable(v) + "'" + guess + (guess.empty() ? "; known: " : " Known: ") + list);
  }
  c.request.target.cpu = *row;
  c.native = v == "native";
  c.any_cpu = v == "any";
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

void set_fill(CommandLine& c, const std::string& v) {
  if (v != "random" && v != "zeros" && v != "ones")
    usage("--fill-mode is random, zeros or ones, not '" + printable(v) + "'");
  c.fill = v == "zeros" ? FillMode::Zeros : v == "ones" ? FillMode::Ones : FillMode::Random;
  c.fill_given = true;
}

void set_progress(CommandLine& c, const std::string& v) {
  if (v != "auto" && v != "plain" && v != "none")
    usage("--progress is auto, plain or none, not '" + printable(v) + "'");
  c.progress = v == "auto" ? ProgressMode::Auto : v == "plain" ? ProgressMode::Plain : ProgressMode::None;
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

// "fold_constant#2"; the first of a name may be called #1.
std::string known_label(std::string v) {
  if (v.ends_with("#1")) v.resize(v.size() - 2);
  std::vector<std::string> labels;
  for (size_t k = 0; k < graph_passes().size(); k++) labels.push_back(pass_label(graph_passes(), k));
  for (const std::string_view p : loop_pass_names())
    if (v == p) usage("'" + v + "' is a loop pass; graphs are written and end behind graph passes");
  return known_pass(v, {labels.begin(), labels.end()});
}

void print_after(CommandLine& c, const std::string& v) {
  std::vector<std::string_view> names = loop_pass_names();
  if (v.find('#') != v.npos) {
    c.request.options.print_after.insert(known_label(v));
    return;
  }
  for (const PassInfo& p : graph_passes()) names.push_back(p.name);
  names.push_back("all");
  c.request.options.print_after.insert(known_pass(v, names));
}

}  // namespace

void usage(const std::string& message, const std::string& note) {
  throw Error(Diagnostic{"TC0001", ExitCode::Usage, {}, message, {note}, false});
}

const std::vector<Option>& options() {
  using enum OptionTarget;
  static const std::vector<Option> table = {
      {"-o", "DIR", "where the package goes; reduce: the smaller model; report: the page",
       kEmit | kCmake | kReduce | kReport, Any, [](CommandLine& c, const std::string& v) { c.out = v; }},
      {"--target", "c|cuda", "what to print (default c)", kCompiles, Any, set_target, stated_target},
      {"--cpu", "NAME",
       "any (default of emit and check): compiled for several processors, chosen when an instance is made; or for one: "
       "generic, x86-64-v3, x86-64-v4, znver4, znver5, aarch64, native (default of verify, bench, run and reduce)",
       kCompiles, C, set_cpu, stated_cpu},
      {"--arch", "NAME", "schedule for sm_75, sm_80 (default), sm_86, sm_89, sm_90, sm_100 or sm_120", kCompiles, Cuda,
       set_arch, stated_arch},
      {"--jit", "", "NVRTC compiles the kernels when an instance is made", kPackages, Cuda,
       [](CommandLine& c, const std::string&) { c.jit = true; }},
      {"--cuda-graphs", "N", "with sizes chosen at run time: of how many choices graphs are kept (default 4)",
       kPackages, Cuda, [](CommandLine& c, const std::string& v) { c.cuda_graphs = limit("--cuda-graphs", v, 1024); },
       [](const CommandLine& c) { return std::vector<std::string>{to_text(c.cuda_graphs)}; }},
      {"--precision", "P",
       "what tensor cores multiply: fp32 (default: halves and bytes only), tf32, fp16, bf16 or int8", kCompiles, Cuda,
       set_precision, stated_precision},
      {"--name", "NAME", "prefix of every symbol (default: the model's file name)", kCompiles, Any, set_name,
       stated_name},
      {"--dim", "D=K",
       "size of a symbolic dimension, or of one axis: INPUT:AXIS=K; K..L: chosen at run time; A+B: follows from "
       "others; "
       "may be repeated",
       kImports, Any, set_dim, stated_dims},
      {"--state", "IN=OUT",
       "an input and an output that the instance keeps: what a run writes, the next one reads; '*' stands for any text "
       "in both; may be repeated",
       kImports, C, set_state, stated_states},
      {"--input-shape", "X=1x3x8x8", "whole shape of an input; may be repeated", kImports, Any, set_shape,
       stated_shapes},
      {"--elements", "X=3x4,5x4", "shapes of the tensors in a sequence or optional input (scalar, or none: empty)",
       kImports, Any, set_elements, stated_elements},
      {"--input-value", "X=16000", "fix an input: numbers, separated by commas; may be repeated", kImports, Any,
       set_input_value, stated_input_values},
      {"--ops", "FILE", "operators of your own, as formulas (docs/language.md); may be repeated", kImports | kOps, Any,
       [](CommandLine& c, const std::string& v) { c.ops_files.push_back(v); }},
      {"--single-file", "", "one NAME.c instead of a file per kernel", kPackages, Any,
       [](CommandLine& c, const std::string&) { c.single_file = true; }},
      {"--string-bytes", "N", "room in the workspace for the strings that a run makes (default 65536)", kCompiles, C,
       [](CommandLine& c, const std::string& v) {
         c.request.options.string_bytes = (limit("--string-bytes", v, int64_t(1) << 40) + 63) / 64 * 64;
       },
       stated_string_bytes},
      {"--fp", "strict|fast", "strict: sums in the order of the definition, no Winograd (default fast)", kCompiles, Any,
       set_fp, stated_fp},
      {"-O", "0..3", "optimisation level of the graph passes (default 2)", kCompiles, Any, set_level, stated_level},
      {"--disable-pass", "PASS", "leave a pass out; may be repeated", kCompiles, Any, disable_pass, stated_disabled},
      {"--print-ir-after", "PASS", "print the graph after a pass, or after all", kCompiles, Any, print_after},
      {"--dump-ir", "DIR", "write the graph after every pass into a folder", kCompiles, Any,
       [](CommandLine& c, const std::string& v) { c.request.options.dump_dir = v; }},
      {"--schedules", "FILE", "schedule the functions that a file names as it says (docs/schedules.md)", kCompiles, C,
       [](CommandLine& c, const std::string& v) { c.schedules = v; }},
      {"--write-schedules", "FILE", "write what is decided on each function as text, for --schedules", kEmit, C,
       [](CommandLine& c, const std::string& v) { c.write_schedules = v; }},
      {"--write-ir", "FILE", "write the graph as text (docs/language.md); tc-emit FILE.tc goes on from there", kEmit,
       Any, [](CommandLine& c, const std::string& v) { c.write_ir = v; }},
      {"--after", "PASS", "where --write-ir writes: after a pass, NAME or NAME#2 (default: after import)", kEmit, Any,
       [](CommandLine& c, const std::string& v) { c.after = known_label(v); }},
      {"--stop-after", "PASS", "end after a pass, NAME or NAME#2, and write no package", kEmit | kCheck, Any,
       [](CommandLine& c, const std::string& v) { c.request.options.stop_after = known_label(v); }},
      {"--time-passes", "", "say how long each pass took", kCompiles, Any,
       [](CommandLine& c, const std::string&) { c.request.options.time_passes = true; }},
      {"--verify-each", "", "check the graph's invariants after every pass", kCompiles, Any,
       [](CommandLine& c, const std::string&) { c.request.options.verify_each = true; }},
      {"--limit-memory", "MIB", "how much the model's constants may take (default 16384)", kImports, Any,
       [](CommandLine& c, const std::string& v) {
         c.request.import.max_tensor_bytes = limit("--limit-memory", v, INT64_MAX >> 20) << 20;
       }},
      {"--limit-nodes", "N", "how many nodes the model may have once functions are expanded (default 1000000)",
       kImports, Any,
       [](CommandLine& c, const std::string& v) { c.request.import.max_nodes = limit("--limit-nodes", v, INT64_MAX); }},
      {"--check", "", "write nothing, print what would change; exit code 4 if DIR is not what would be written", kEmit,
       Any, [](CommandLine& c, const std::string&) { c.check = true; }},
      {"--list-outputs", "", "write nothing, print the names of the files in DIR, one a line", kEmit, Any,
       [](CommandLine& c, const std::string&) { c.list_outputs = true; }},
      {"--depfile", "FILE", "list what was read, as a rule of make for DIR/manifest.json, whose time is set", kEmit,
       Any, [](CommandLine& c, const std::string& v) { c.depfile = v; }},
      {"--against", "onnxruntime|interpreter", "what to compare with", kVerify | kReduce, Any,
       [](CommandLine& c, const std::string& v) { c.against = v; }},
      {"--reference", "FILE", "compare with this: a Python function for each operator of --ops", kVerify | kReduce, Any,
       [](CommandLine& c, const std::string& v) { c.reference = v; }},
      {"--per-node", "", "compare what every node computes with ONNX Runtime, and name the first that is off", kVerify,
       Any, [](CommandLine& c, const std::string&) { c.per_node = true; }},
      {"--keep", "COMMAND",
       "a command of the shell that succeeds for models like this; {} is the file (default: verify)", kReduce, Any,
       [](CommandLine& c, const std::string& v) { c.keep = v; }},
      {"--inputs", "FILE", "an .npz, a folder with input_0.npy, ..., or X=FILE.npy for an input; may be repeated", kRun,
       Any, [](CommandLine& c, const std::string& v) { c.inputs.push_back(v); }},
      {"--fill-mode", "random|zeros|ones", "elements of inputs without a file (default random, from --seed)", kRun, Any,
       set_fill},
      {"--outputs", "FILE", "where outputs go: an .npz or a folder", kRun, Any,
       [](CommandLine& c, const std::string& v) { c.outputs = v; }},
      {"--print-top", "N", "print the N largest values of each output's last axis", kRun, Any,
       [](CommandLine& c, const std::string& v) { c.print_top = limit("--print-top", v, INT32_MAX); }},
      {"--repeat", "N", "time N runs", kRun, Any,
       [](CommandLine& c, const std::string& v) { c.repeat = limit("--repeat", v, INT32_MAX); }},
      {"--profile", "", "where the time goes, by kernel", kRun, Any,
       [](CommandLine& c, const std::string&) { c.profile = true; }},
      {"--trace", "FILE", "the steps of one run as Chrome's trace events", kRun, Any,
       [](CommandLine& c, const std::string& v) { c.trace = v; }},
      {"--seed", "N", "seed of generated inputs", kBuilds, Any,
       [](CommandLine& c, const std::string& v) { c.seed = uint64_t(integer("--seed", v)); }},
      {"--seconds", "S", "how long to run, of run with --profile (default 2)", kBench | kRun, Any,
       [](CommandLine& c, const std::string& v) { c.seconds = number("--seconds", v); }},
      {"--threads", "N", "threads", kBench | kRun, Any,
       [](CommandLine& c, const std::string& v) { c.threads = int(integer("--threads", v)); }},
      {"--json", "", "JSON instead of a table or words", kInfo | kOps | kBench | kRun | kDiff, Any,
       [](CommandLine& c, const std::string&) { c.json = true; }},
      {"--markdown", "", "for a comment of a review", kDiff, Any,
       [](CommandLine& c, const std::string&) { c.markdown = true; }},
      {"--stat", "", "how many lines of which files, instead of the lines", kDiff, Any,
       [](CommandLine& c, const std::string&) { c.stat = true; }},
      {"--quiet", "", "no summary, no progress; of --check only the files' names", kImports, Any,
       [](CommandLine& c, const std::string&) { c.quiet = true; }},
      {"--progress", "auto|plain|none",
       "auto (default): on a terminal a line that says what is being done; plain: a line with the seconds of each "
       "phase",
       kCompiles, Any, set_progress},
      {"--diagnostics", "text|json", "json: every message is one line of JSON", kImports, Any,
       [](CommandLine& c, const std::string& v) {
         if (v != "text" && v != "json") usage("--diagnostics is text or json, not '" + printable(v) + "'");
         c.json_diagnostics = v == "json";
       }},
      {"--help", "", "this text", kEvery, Any, [](CommandLine& c, const std::string&) { c.help = true; }},
      {"--version", "", "version of tc-emit and of the operator set", kEmit, Any,
       [](CommandLine& c, const std::string&) { c.version = true; }},
  };
  return table;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      {kEmit, "emit", "MODEL -o DIR", "print a model as source (the default)",
       "  tc-emit model.onnx -o out/\n  tc-emit --target cuda model.onnx -o out/\n  tc-emit --cpu x86-64-v4 --dim "
       "batch=1 resnet50.onnx -o out/\n  tc-emit --check model.onnx -o third_party/model/\n"},
      {kCheck, "check", "MODEL", "compile and write nothing: list every problem",
       "  tc-emit check model.onnx\n  tc-emit check --dim batch=1 model.onnx\n"},
      {kInfo, "info", "MODEL", "inputs, outputs, operators, parameters, multiply-accumulates",
       "  tc-emit info model.onnx\n  tc-emit info --json --dim batch=1 model.onnx\n"},
      {kOps, "ops", "[WORD]", "the operators that are supported, or those with a word in their names",
       "  tc-emit ops\n  tc-emit ops Conv\n  tc-emit ops --json\n  tc-emit ops --ops my_ops.tc\n"},
      {kPasses, "passes", "", "the passes in the order in which they run", "  tc-emit passes\n"},
      {kVerify, "verify", "MODEL", "emit, build, run, and compare with ONNX Runtime or the interpreter",
       "  tc-emit verify model.onnx\n  tc-emit verify --against interpreter --seed 7 model.onnx\n"},
      {kBench, "bench", "MODEL", "emit, build and time", "  tc-emit bench --seconds 5 model.onnx\n"},
      {kDiff, "diff", "A B", "what changed between two models, two packages, or a package and a model",
       "  tc-emit diff third_party/model new.onnx\n  tc-emit diff --stat old.onnx new.onnx\n  tc-emit diff --markdown "
       "old_package new_package > comment.md\n"},
      {kReport, "report", "MODEL -o FILE", "a page that shows a model or a package: graph, kernels, memory, weights",
       "  tc-emit report model.onnx -o report.html\n  tc-emit report third_party/model -o report.html\n"},
      {kRun, "run", "MODEL", "emit, build and run on inputs; programs are kept in a cache",
       "  tc-emit run model.onnx\n  tc-emit run --inputs x.npz --outputs y.npz model.onnx\n"
       "  tc-emit run --inputs image=cat.npy --print-top 5 model.onnx\n  tc-emit run --profile --trace trace.json "
       "model.onnx\n"},
      {kReduce, "reduce", "MODEL -o SMALL.onnx", "shrink a model that goes wrong to the smallest that still does",
       "  tc-emit reduce model.onnx -o small.onnx\n"
       "  tc-emit reduce --keep 'tc-emit check {} 2>&1 | grep -q TC0301' model.onnx -o small.onnx\n"},
      {kExplain, "explain", "CODE", "what the code of a message means", "  tc-emit explain TC0301\n"},
      {kCmake, "cmake", "MODEL -o DIR", "what CMake reads while it configures: the work of tc_emit_add_model",
       "  tc-emit cmake model.onnx -o build/model\n"},
      {kCompletion, "completion", "SHELL", "completions for bash, zsh or fish",
       "  source <(tc-emit completion bash)\n  tc-emit completion fish > ~/.config/fish/completions/tc-emit.fish\n"},
      {kMan, "man", "", "the manual page", "  tc-emit man | man -l -\n"},
      {kHelp, "help", "[COMMAND]", "this text, or that of a command", "  tc-emit help verify\n"},
  };
  return table;
}

const Option* find_option(std::string_view flag) {
  for (const Option& o : options())
    if (o.flag == flag) return &o;
  return nullptr;
}

const Command* find_command(std::string_view name) {
  for (const Command& c : commands())
    if (c.name == name) return &c;
  return nullptr;
}

std::string command_list(unsigned bits) {
  std::vector<std::string> names;
  for (const Command& c : commands())
    if (c.bit & bits) names.emplace_back(c.name);
  if (names.size() < 2) return join(names, "");
  const std::string last = names.back();
  names.pop_back();
  return join(names, ", ") + " and " + last;
}

namespace {

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

}  // namespace

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
}  // namespace tc
