#include "cli/option_table.h"

#include "cli/ir_options.h"
#include "cli/option_values.h"

namespace tc {

void usage(const std::string& message, const std::string& note) {
  throw Error(Diagnostic{"TC0001", ExitCode::Usage, {}, message, {note}, false});
}

const std::vector<Option>& options() {
  using enum OptionTarget;
  static const std::vector<Option> table = {
      {"-o", "DIR", "where the package goes; reduce: the smaller model; report: the page; records: the file",
       kEmit | kCmake | kReduce | kReport | kRecords, Any, [](CommandLine& c, const std::string& v) { c.out = v; }},
      {"--target", "c|cuda", "what to print (default c); records: only of this target", kCompiles | kRecords, Any,
       set_target, stated_target},
      {"--cpu", "NAMES",
       "any (default of emit and check): compiled for several processors, chosen when an instance is made; a list, as "
       "x86-64-v3,x86-64-v4: with a schedule for each; or for one: "
       "generic, x86-64-v3, x86-64-v4, znver4, znver5, alderlake, cascadelake, icelake-server, sapphirerapids, "
       "aarch64, "
       "native (default of verify, bench, run, tune and reduce); records: only of this row",
       kCompiles | kRecords, C, set_cpu, stated_cpu},
      {"--arch", "NAME", "schedule for sm_75, sm_80 (default), sm_86, sm_89, sm_90, sm_90a, sm_100 or sm_120",
       kCompiles | kRecords, Cuda, set_arch, stated_arch},
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
       "size of a symbolic dimension, or of one axis: INPUT:AXIS=K; K..L: chosen at run time; K..: without an upper "
       "bound; A+B: follows from "
       "others; "
       "may be repeated",
       kImports, Any, set_dim, stated_dims},
      {"--state", "IN=OUT",
       "an input and an output that the instance keeps: what a run writes, the next one reads; '*' stands for any text "
       "in both; may be repeated",
       kImports, Any, set_state, stated_states},
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
      {"--weights", "linked|external",
       "external: the weights are a file that the program maps, or memory that it is given, and no part of it (default "
       "linked)",
       kCompiles, Any, set_weights, stated_weights},
      {"--string-bytes", "N", "room in the workspace for the strings that a run makes (default 65536)", kCompiles, C,
       [](CommandLine& c, const std::string& v) {
         c.request.options.string_bytes = (limit("--string-bytes", v, int64_t(1) << 40) + 63) / 64 * 64;
       },
       stated_string_bytes},
      {"--activations", "model|int8",
       "int8: what is multiplied by weights of 4 or 8 bits is rounded to bytes in blocks, as accuracy_level 4 of a "
       "model says (default model)",
       kCompiles, C, set_activations, stated_activations},
      {"--fp", "strict|fast", "strict: sums in the order of the definition, no Winograd (default fast)", kCompiles, Any,
       set_fp, stated_fp},
      {"-O", "0..3", "optimisation level of the graph passes (default 2)", kCompiles, Any, set_level, stated_level},
      {"--disable-pass", "PASS", "leave a pass out; may be repeated", kCompiles, Any, disable_pass, stated_disabled},
      {"--print-ir-after", "PASS", "print the graph after a pass, or after all", kCompiles, Any, print_after},
      {"--dump-ir", "DIR", "write the graph after every pass into a folder", kCompiles, Any,
       [](CommandLine& c, const std::string& v) { c.request.options.dump_dir = v; }},
      {"--schedules", "FILE", "schedule the functions that a file names as it says (docs/schedules.md)", kCompiles, Any,
       [](CommandLine& c, const std::string& v) { c.schedules = v; }},
      {"--records", "FILE",
       "schedule functions as tc-emit tune has measured it best (docs/tuning.md), also a folder of such files, or "
       "default: "
       "those that ship with it; may be repeated; tune: where it keeps what it measures",
       kCompiles, Any, [](CommandLine& c, const std::string& v) { c.records.push_back(v); }},
      {"--write-schedules", "FILE", "write what is decided on each function as text, for --schedules", kEmit, Any,
       [](CommandLine& c, const std::string& v) { c.write_schedules = v; }},
      {"--print-steps", "KERNEL",
       "print the loops of a kernel after every step of its schedule; '*' for any characters", kCompiles, Any,
       [](CommandLine& c, const std::string& v) { c.request.options.print_steps = v; }},
      {"--write-ir", "FILE", "write the graph as text (docs/language.md); tc-emit FILE.tc goes on from there", kEmit,
       Any, [](CommandLine& c, const std::string& v) { c.write_ir = v; }},
      {"--after", "PASS", "where --write-ir writes: after a pass, NAME or NAME#2 (default: after import)", kEmit, Any,
       [](CommandLine& c, const std::string& v) { c.after = known_label(v); }},
      {"--stop-after", "PASS", "end after a pass, NAME or NAME#2, and write no package", kEmit | kCheck, Any,
       [](CommandLine& c, const std::string& v) { c.request.options.stop_after = known_label(v); }},
      {"--time-passes", "", "say how long each pass took", kCompiles, Any,
       [](CommandLine& c, const std::string&) { c.request.options.time_passes = true; }},
      {"--verify-each", "", "check the invariants of graphs and loops after every pass, and the plan of memory",
       kCompiles, Any, [](CommandLine& c, const std::string&) { c.request.options.verify_each = true; }},
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
      {"--fill-mode", "random|zeros|ones", "elements of inputs without a file (default random, from --seed)",
       kRun | kVerify, Any, set_fill},
      {"--outputs", "FILE", "where outputs go: an .npz or a folder", kRun, Any,
       [](CommandLine& c, const std::string& v) { c.outputs = v; }},
      {"--print-top", "N", "print the N largest values of each output's last axis", kRun, Any,
       [](CommandLine& c, const std::string& v) { c.print_top = limit("--print-top", v, INT32_MAX); }},
      {"--repeat", "N", "time N runs; tune: how often a candidate and the best one take turns (default 5)",
       kRun | kTune, Any, [](CommandLine& c, const std::string& v) { c.repeat = limit("--repeat", v, INT32_MAX); }},
      {"--profile", "", "where the time goes, by kernel", kRun, Any,
       [](CommandLine& c, const std::string&) { c.profile = true; }},
      {"--trace", "FILE", "the steps of one run as Chrome's trace events", kRun, Any,
       [](CommandLine& c, const std::string& v) { c.trace = v; }},
      {"--times", "FILE", "measured times to show: what --profile --json or --trace of the same kernels has written",
       kReport, Any, [](CommandLine& c, const std::string& v) { c.times = v; }},
      {"--seed", "N", "seed of generated inputs", kBuilds, Any,
       [](CommandLine& c, const std::string& v) { c.seed = uint64_t(integer("--seed", v)); }},
      {"--seconds", "S",
       "how long to run, of run with --profile (default 2); tune: how long to go on (default: no limit)",
       kBench | kRun | kTune, Any, [](CommandLine& c, const std::string& v) { c.seconds = number("--seconds", v); }},
      {"--threads", "N", "threads (tune: default 1; records: only of so many)", kBench | kRun | kTune | kRecords, Any,
       [](CommandLine& c, const std::string& v) { c.threads = int(integer("--threads", v)); }},
      {"--trials", "N", "how many candidates are measured at most (default 1000)", kTune, Any,
       [](CommandLine& c, const std::string& v) { c.trials = limit("--trials", v, INT32_MAX); }},
      {"--early-stopping", "N", "a function is done after N trials without a gain (default: never)", kTune, Any,
       [](CommandLine& c, const std::string& v) { c.early_stopping = limit("--early-stopping", v, INT32_MAX); }},
      {"--timeout", "S", "seconds that a candidate may be compiled, and run (default 10)", kTune, Any,
       [](CommandLine& c, const std::string& v) { c.timeout = number("--timeout", v); }},
      {"--tasks", "NAME",
       "only functions whose signatures or hashes begin so, with commas between them; tune: list names them and ends",
       kTune | kRecords, Any, [](CommandLine& c, const std::string& v) { c.tasks = v; }},
      {"--jobs", "N", "how many candidates are compiled beside each other (default: one a processor)", kTune, Any,
       [](CommandLine& c, const std::string& v) { c.jobs = limit("--jobs", v, 1024); }},
      {"--runner", "COMMAND", "a command of the shell that builds and times candidates (docs/tuning.md)", kTune, Any,
       [](CommandLine& c, const std::string& v) { c.runner = v; }},
      {"--prune", "", "only what is replayed of each function, and the model's plan that it was measured against",
       kRecords, Any, [](CommandLine& c, const std::string&) { c.prune = true; }},
      {"--gains", "", "only functions of which a better plan than the model's was found", kRecords, Any,
       [](CommandLine& c, const std::string&) { c.gains = true; }},
      {"--json", "", "JSON instead of a table or words",
       kInfo | kOps | kBench | kRun | kDiff | kTune | kDoctor | kRecords, Any,
       [](CommandLine& c, const std::string&) { c.json = true; }},
      {"--markdown", "", "for a comment of a review", kDiff, Any,
       [](CommandLine& c, const std::string&) { c.markdown = true; }},
      {"--stat", "", "how many lines of which files, instead of the lines", kDiff, Any,
       [](CommandLine& c, const std::string&) { c.stat = true; }},
      {"--quiet", "", "no summary, no progress; of --check only the files' names", kImports | kRecords, Any,
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

const Option* find_option(std::string_view flag) {
  for (const Option& o : options())
    if (o.flag == flag) return &o;
  return nullptr;
}

}  // namespace tc
