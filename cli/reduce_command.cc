// reduce: the smallest model that goes wrong as a large one does. Nodes go by delta debugging (A. Zeller, R. Hildebrandt,
// Simplifying and Isolating Failure-Inducing Input, 2002), then outputs, then data.
#include <filesystem>
#include <fstream>
#include <set>

#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/option_table.h"
#include "cli/process.h"
#include "importer/model_parts.h"

namespace tc {
namespace {

namespace fs = std::filesystem;

/// How a model ends: equal for two that go wrong alike.
struct Ending {
  int status = 0;
  std::string code;  // of the first message that has one: "TC0301"
  bool operator==(const Ending&) const = default;
};

std::string code_in(const std::string& text) {
  const size_t at = text.find("[TC");
  const size_t end = at == std::string::npos ? at : text.find(']', at);
  return end == std::string::npos ? "" : text.substr(at + 1, end - at - 1);
}

std::string shell_quoted(const std::string& path) {
  std::string s = "'";
  for (const char ch : path) s += ch == '\'' ? std::string("'\\''") : std::string(1, ch);
  return s + "'";
}

/// Tries models: each in a process of its own, since what is looked for may be a crash.
class Trial {
 public:
  explicit Trial(const CommandLine& c) : c_(c) {}

  /// Finds out how the model as it is ends. Throws an Error where nothing is wrong with it.
  void begin() {
    if (!c_.keep.empty()) {
      if (run(c_.model, false) != Ending{})
        fail("the command of --keep does not succeed for " + printable(c_.model) + " itself");
      return;
    }
    for (const char* command : {"check", "verify"}) {
      command_ = command;
      wanted_ = run(c_.model, false);
      if (wanted_.status != 0) return;
    }
    fail("check and verify find nothing wrong with " + printable(c_.model));
  }

  /// Does the model of these bytes end like that, too? One that was tried before does not.
  bool still(const std::string& bytes, bool bound) {
    if (bytes.empty() || !tried_.insert(hash_text(bytes)).second) return false;
    const std::string path = dir_.path() + "/" + fs::path(c_.model).stem().string() + ".onnx";
    std::ofstream(path, std::ios::binary) << bytes;
    return run(path, bound) == wanted_;
  }

  size_t count() const { return tried_.size(); }

  std::string text() const {
    if (!c_.keep.empty()) return "the command succeeds";
    return command_ + " ends with " + to_text(int64_t(wanted_.status)) +
           (wanted_.code.empty() ? "" : " (" + wanted_.code + ")");
  }

 private:
  [[noreturn]] static void fail(const std::string& message) {
    throw Error(Diagnostic{"TC0703",
                           ExitCode::Usage,
                           {},
                           message,
                           {"reduce needs a model that goes wrong; --keep COMMAND says what counts as that"},
                           false});
  }

  Ending run(const std::string& model, bool bound) const {
    if (!c_.keep.empty()) {
      std::string line = c_.keep;
      const std::string word = shell_quoted(fs::absolute(model).string());
      if (line.find("{}") == std::string::npos) line += " {}";
      for (size_t at = 0; (at = line.find("{}", at)) != std::string::npos; at += word.size()) line.replace(at, 2, word);
      return {run_process({"sh", "-c", line}, true).status, ""};
    }
    std::vector<std::string> argv{fs::read_symlink("/proc/self/exe").string(), command_};
    for (const auto& [flag, value] : c_.given) {
      const bool range = flag == "--dim" && value.find("..") != std::string::npos;  // the symbol is still there
      if (!is_passed_on(flag, bound && !range)) continue;
      argv.push_back(flag);
      if (!value.empty()) argv.push_back(value);
    }
    argv.insert(argv.end(), {"--", model});
    const ProcessResult r = run_process(argv, true);
    return {r.status, r.status == 0 ? "" : code_in(r.output)};
  }

  /// Options of the command that is run, without those that the model has already followed.
  bool is_passed_on(const std::string& flag, bool bound) const {
    if (bound && (flag == "--dim" || flag == "--input-shape" || flag == "--input-value")) return false;
    for (const Option& o : options())
      if (o.flag == flag) return (o.commands & find_command(command_)->bit) != 0;
    return false;
  }

  const CommandLine& c_;
  TemporaryDir dir_;
  std::string command_ = "verify";
  Ending wanted_;
  std::set<uint64_t> tried_;
};

class Reducer {
 public:
  Reducer(const CommandLine& c, const ModelParts& parts, Trial& trial)
      : c_(c), parts_(parts), trial_(trial), now_{std::vector<bool>(parts.nodes().size(), true)} {}

  /// The bytes of the smallest model that was found; empty if not even the whole model in its own words goes wrong.
  std::string run() {
    if (!accept(now_)) return "";
    for (size_t before = SIZE_MAX; smallest_.size() < before;) {
      before = smallest_.size();
      remove_nodes();
      for (const ModelText& name : parts_.outputs()) try_with(&ModelParts::Selection::no_outputs, name);
      for (size_t i = 0; i < now_.nodes.size(); i++)
        for (size_t k = 0; now_.nodes[i] && k < parts_.nodes()[i].outputs.size(); k++)
          try_with(&ModelParts::Selection::no_outputs, parts_.nodes()[i].outputs[k]);
      for (const ModelText& name : parts_.initializers()) try_with(&ModelParts::Selection::inputs, name);
    }
    return smallest_;
  }

  int64_t nodes() const { return std::count(now_.nodes.begin(), now_.nodes.end(), true); }

 private:
  bool accept(ModelParts::Selection s) {
    c_.request.listener.tell("reduce", to_text(nodes()) + " nodes, " + to_text(int64_t(trial_.count())) + " tries");
    std::string bytes = parts_.part(s);
    if (!trial_.still(bytes, parts_.bound())) return false;
    smallest_ = std::move(bytes);
    now_ = std::move(s);
    return true;
  }

  /// Leaves out runs of nodes, of half of them, a quarter, ... one.
  void remove_nodes() {
    for (size_t run = std::max<size_t>(size_t(nodes()) / 2, 1);; run = (run + 1) / 2) {
      std::vector<size_t> there;
      for (size_t i = 0; i < now_.nodes.size(); i++)
        if (now_.nodes[i]) there.push_back(i);
      for (size_t at = 0; at < there.size(); at += run) {
        ModelParts::Selection s = now_;
        for (size_t k = at; k < std::min(there.size(), at + run); k++) s.nodes[there[k]] = false;
        accept(std::move(s));
      }
      if (run == 1) return;
    }
  }

  void try_with(std::vector<ModelText> ModelParts::Selection::*list, const ModelText& name) {
    ModelParts::Selection s = now_;
    (s.*list).push_back(name);
    accept(std::move(s));
  }

  const CommandLine& c_;
  const ModelParts& parts_;
  Trial& trial_;
  ModelParts::Selection now_;
  std::string smallest_;
};

}  // namespace

ExitCode reduce_command(const CommandLine& c) {
  need_model(c);
  if (c.out.empty()) usage("no file for the smaller model given", "add -o SMALL.onnx");
  if (fs::is_directory(c.out)) usage("-o " + printable(c.out) + " is a folder; reduce writes a file");
  Diagnostics problems;
  const ModelParts parts(c.model, c.request.import, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  Trial trial(c);
  trial.begin();
  Reducer reducer(c, parts, trial);
  const std::string smallest = reducer.run();
  c.request.listener.tell("");
  if (smallest.empty())
    throw Error(
        Diagnostic{"TC0703",
                   ExitCode::Tool,
                   {},
                   "the model does not go wrong once it is written anew: " + trial.text() + " no more",
                   {"what is wrong lies in what every writer of models sets right, or in data outside of the graph"},
                   false});
  NewFile(c.out, smallest).put_in_place();
  print_out(printable(c.out) + ": " + to_text(reducer.nodes()) + " of " + to_text(int64_t(parts.nodes().size())) +
            " nodes, " + to_text(int64_t(smallest.size())) + " bytes, after " + to_text(int64_t(trial.count())) +
            " tries; " + trial.text() + "\n");
  return ExitCode::Ok;
}

}  // namespace tc
