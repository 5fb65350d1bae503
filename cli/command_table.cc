#include <algorithm>

#include "cli/option_table.h"

namespace tc {

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
      {kTune, "tune", "MODEL --records FILE", "look for better schedules by measuring, and keep what was measured",
       "  tc-emit tune --records net.jsonl --seconds 600 model.onnx\n  tc-emit tune --tasks list model.onnx\n"
       "  tc-emit --cpu native --records net.jsonl model.onnx -o out/\n"},
      {kRecords, "records", "FILE...", "print, filter, merge and prune what tune has measured",
       "  tc-emit records net.jsonl\n  tc-emit records mine.jsonl theirs.jsonl -o all.jsonl\n"
       "  tc-emit records --prune net.jsonl -o best.jsonl\n"},
      {kReduce, "reduce", "MODEL -o SMALL.onnx", "shrink a model that goes wrong to the smallest that still does",
       "  tc-emit reduce model.onnx -o small.onnx\n"
       "  tc-emit reduce --keep 'tc-emit check {} 2>&1 | grep -q TC0301' model.onnx -o small.onnx\n"},
      {kDoctor, "doctor", "", "what this machine has of what the commands need: compilers, CUDA, references",
       "  tc-emit doctor\n  tc-emit doctor --json\n"},
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
