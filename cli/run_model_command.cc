// run: emit, build into a cache of programs, run on the user's inputs.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/new_file.h"
#include "cli/option_table.h"
#include "cli/program_cache.h"
#include "cli/tensor_files.h"
#include "cli/version.h"
#include "ir/open_size.h"
#include "support/read_file.h"
#include "support/xxh64.h"

namespace tc {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kCacheBytes = uint64_t(1) << 30;

std::string describe(const IoTensor& t) {
  return "\"" + printable(t.name.raw()) + "\" " + std::string(info(t.dtype).onnx_name) + " [" +
         to_text(to_shape(t.dims)) + "]";
}

std::vector<std::string> input_lines(const Program& p) {
  std::vector<std::string> lines;
  for (const IoTensor& t : p.inputs)
    if (!t.is_kept())
      lines.push_back(t.is_size ? "size \"" + printable(t.name.raw()) + "\" from " + to_text(t.least) +
                                      (is_open(t.most) ? " on" : " to " + to_text(t.most))
                                : "input " + describe(t));
  return lines;
}

[[noreturn]] void inputs_do_not_fit(const Program& p, const std::string& what) {
  throw Error(Diagnostic{"TC0702", ExitCode::Usage, {}, what, input_lines(p), false});
}

/// Throws, with the reason of the operating system, where `path` is no file that can be read.
void need_file(const Program& p, const fs::path& path) {
  std::error_code ec;
  const bool is_file = fs::is_regular_file(path, ec);
  if (is_file && ::access(path.c_str(), R_OK) == 0) return;
  const std::string why = is_file || ::access(path.c_str(), F_OK) != 0 ? std::strerror(errno) : "it is no file";
  throw Error(Diagnostic{
      "TC0702", ExitCode::Io, {}, "cannot read " + printable(path.string()) + ": " + why, input_lines(p), false});
}

bool is_tensor_file(const fs::path& path) { return path.extension() == ".npy" || path.extension() == ".pb"; }

/// What to write where a file of one tensor was given without the name of its input.
[[noreturn]] void which_input(const Program& p, const std::string& file) {
  std::string name = "NAME";
  for (size_t k = p.inputs.size(); k-- > 0;)
    if (!p.inputs[k].is_size && !p.inputs[k].is_kept()) name = p.inputs[k].name.raw();
  inputs_do_not_fit(p, printable(file) + " is the file of one input: --inputs " + printable(name + "=" + file));
}

/// NAME=FILE of --inputs: which input, and the file. The name is one of the model's, which may have = in it.
std::pair<size_t, fs::path> named_file(const Program& p, const std::string& given) {
  for (size_t at = given.find('='); at != std::string::npos; at = given.find('=', at + 1))
    for (size_t k = 0; k < p.inputs.size(); k++)
      if (!p.inputs[k].is_size && !p.inputs[k].is_kept() && p.inputs[k].name.raw() == given.substr(0, at))
        return {k, given.substr(at + 1)};
  const size_t at = given.find('=');
  std::vector<std::string_view> names;
  for (const IoTensor& t : p.inputs) names.push_back(t.name.raw());
  if (at == std::string::npos) {
    need_file(p, given);
    which_input(p, given);
  }
  const std::string name = given.substr(0, at);
  inputs_do_not_fit(p, "the model has no input '" + printable(name) + "'" + printable(did_you_mean(name, names)));
}

std::map<int, int64_t> largest_sizes(const Program& p) {
  std::map<int, int64_t> sizes;
  for (size_t k = 0; k < p.inputs.size(); k++)
    if (p.inputs[k].is_size && !p.inputs[k].is_kept()) sizes[int(k)] = most_tried(p.inputs[k].least, p.inputs[k].most);
  return sizes;
}

/// What the program reads: the user's folder or archive, or `folder` with a file for every input.
std::string prepare_inputs(const CommandLine& c, const Program& p, const std::string& folder) {
  if (c.inputs.size() == 1 && fs::exists(c.inputs[0])) {
    if (fs::is_regular_file(c.inputs[0])) {
      if (is_tensor_file(c.inputs[0])) which_input(p, c.inputs[0]);
      if (read_file(c.inputs[0]).rfind("PK\5\6") == std::string::npos)  // what an archive ends with
        inputs_do_not_fit(p, printable(c.inputs[0]) + " is no .npz file, or its end is missing");
    }
    if (c.fill_given) usage("--fill-mode is for inputs without a file: all are in " + printable(c.inputs[0]));
    return fs::absolute(c.inputs[0]).string();
  }
  std::vector<fs::path> files(p.inputs.size());
  for (const std::string& given : c.inputs) {
    const auto [k, file] = named_file(p, given);
    if (!is_tensor_file(file)) inputs_do_not_fit(p, printable(file.string()) + " is neither .npy nor .pb");
    need_file(p, file);
    files[k] = file;
  }
  fs::create_directory(folder);
  int64_t number = 0;
  const std::map<int, int64_t> sizes = largest_sizes(p);
  for (size_t k = 0; k < files.size(); k++) {
    if (p.inputs[k].is_size || p.inputs[k].is_kept()) continue;
    const std::string stem = folder + "/input_" + to_text(number++);
    if (!files[k].empty())
      fs::create_symlink(fs::absolute(files[k]), stem + files[k].extension().string());
    else if (c.inputs.empty() || c.fill_given)
      save_tensor(stem, *filled_tensor(in_sizes(p.inputs[k], sizes), c.fill, c.seed + k));
    else
      inputs_do_not_fit(p, "no file for input " + describe(p.inputs[k]) +
                               ": add --inputs NAME=FILE, or --fill-mode random for what has none");
  }
  return folder;
}

/// Of all that a program is built from. What the build files themselves read of the environment is part of it.
std::string cache_key(const CommandLine& c, const std::vector<OutputFile>& files, bool profile) {
  std::string all = std::string(version()) + (profile ? " profile" : "") + (has_gpu() ? " gpu" : "");
  const auto add = [&](std::string_view part) { all += to_text(int64_t(part.size())) + ":" + std::string(part); };
  for (const char* name : {"CC", "CXX", "CUDACXX", "CFLAGS", "CXXFLAGS", "CUDAFLAGS", "CPPFLAGS", "LDFLAGS", "TC_ARCH",
                           "TC_VARIANTS", "TC_FP", "TC_THREADS"}) {
    const char* value = std::getenv(name);
    add(name);
    add(value ? "=" + std::string(value) : "");  // set to nothing is not the same as not set
  }
  const char* compilers =
      c.request.target.is_cuda() ? "${CXX:-c++} --version; ${CUDACXX:-nvcc} --version" : "${CC:-cc} --version";
  add(run_process({"sh", "-c", compilers}, true).output);
  for (const OutputFile& f : files) {
    add(f.path);
    add(bytes_of(f));
  }
  return hex(xxh64(all.data(), all.size()), 16) + hex(hash_text(all), 16);
}

std::string program_of(const CommandLine& c, const Program& p, bool profile, const TemporaryDir& scratch) {
  const std::string folder = program_cache_folder();
  if (folder.empty()) return build_package(c, p, scratch.path() + "/out", profile);
  const auto build = [&](const std::string& dir) { return build_package(c, p, dir + "/out", profile); };
  return ProgramCache(folder, kCacheBytes).get(cache_key(c, package_of(p, c), profile), build);
}

std::vector<std::string> words_of(const CommandLine& c, const std::string& trace) {
  std::vector<std::string> words;
  if (c.print_top > 0) words.insert(words.end(), {"--top", to_text(c.print_top)});
  if (c.repeat > 0) words.insert(words.end(), {"--repeat", to_text(c.repeat)});
  if (c.threads > 0) words.insert(words.end(), {"--threads", to_text(int64_t(c.threads))});
  if (c.profile) words.insert(words.end(), {"--profile", "--bench", to_text(c.seconds)});
  if (!c.trace.empty()) words.insert(words.end(), {"--trace", trace});
  if (c.json) words.push_back("--json");
  return words;
}

/// Throws TC0702 with what the program has said. Where that is about the user's files, it is the message, and calls them as
/// the user did.
[[noreturn]] void program_failed(const Program& p, const ProcessResult& r, const std::string& inputs) {
  std::string said = r.output;
  std::error_code ec;
  for (const auto& file : fs::directory_iterator(inputs, ec)) {
    const std::string ours = file.path().string();
    const std::string theirs = file.is_symlink() ? fs::read_symlink(file.path()).string() : ours;
    for (size_t at = 0; (at = said.find(ours, at)) != std::string::npos; at += theirs.size())
      said.replace(at, ours.size(), theirs);
  }
  const std::string_view error = "error: ";
  std::string message = "the program ended with " + to_text(int64_t(r.status));
  ExitCode code = ExitCode::Tool;
  std::vector<std::string> notes;
  for (const std::string& line : printable_lines(said)) {
    const auto about = [&](std::string_view what) { return line.substr(error.size()).starts_with(what); };
    if (r.status != 1 || code != ExitCode::Tool || !line.starts_with(error) || about("run: ") || about("init: ") ||
        about("out of memory")) {
      notes.push_back(line);
      continue;
    }
    message = line.substr(error.size());
    code = about("cannot write") ? ExitCode::Io : ExitCode::Usage;
  }
  for (std::string& line : input_lines(p)) notes.push_back(std::move(line));
  throw Error(Diagnostic{"TC0702", code, {}, message, notes, false});
}

}  // namespace

ExitCode run_model_command(const CommandLine& c) {
  need_model(c);
  const bool archive = c.outputs.ends_with(".npz");
  if (is_tensor_file(c.outputs) && !fs::is_directory(c.outputs))
    usage("--outputs " + printable(c.outputs) + ": outputs go into a folder, or into an .npz");
  Diagnostics problems;
  const Compilation compiled = compile_for_here(c, problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  const Program& p = compiled.program;
  const TemporaryDir scratch;
  const std::string inputs = prepare_inputs(c, p, scratch.path() + "/inputs");
  const std::string program = program_of(c, p, c.profile || !c.trace.empty(), scratch);
  const std::string outputs = archive ? scratch.path() + "/outputs" : c.outputs;
  std::vector<std::string> argv{program, "--inputs", inputs};
  if (!outputs.empty()) argv.insert(argv.end(), {"--outputs", outputs});
  const std::string trace = scratch.path() + "/trace.json";
  for (const std::string& word : words_of(c, trace)) argv.push_back(word);
  const ProcessResult r = run_phase(c, "run", argv);
  c.request.listener.tell("");
  if (r.status != 0) program_failed(p, r, inputs);
  if (archive) {
    size_t count = 0;
    for (const IoTensor& t : p.outputs) count += t.is_count || t.is_kept() ? 0 : 1;
    save_npz(c.outputs, outputs, "output", count);
  }
  if (!c.trace.empty()) NewFile(c.trace, read_file(trace)).put_in_place();
  print_out(r.output);
  return ExitCode::Ok;
}

}  // namespace tc
