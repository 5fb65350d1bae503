// run: emit, build into a cache of programs, run on the user's inputs.
#include <cstdlib>
#include <filesystem>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/option_table.h"
#include "cli/program_cache.h"
#include "cli/tensor_files.h"
#include "cli/version.h"
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
      lines.push_back(t.is_size ? "size \"" + printable(t.name.raw()) + "\" from " + to_text(t.least) + " to " +
                                      to_text(t.most)
                                : "input " + describe(t));
  return lines;
}

[[noreturn]] void inputs_do_not_fit(const Program& p, const std::string& what) {
  throw Error(Diagnostic{"TC0702", ExitCode::Usage, {}, what, input_lines(p), false});
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
  if (at == std::string::npos) inputs_do_not_fit(p, "cannot read " + printable(given));
  const std::string name = given.substr(0, at);
  inputs_do_not_fit(p, "the model has no input '" + printable(name) + "'" + printable(did_you_mean(name, names)));
}

std::map<int, int64_t> largest_sizes(const Program& p) {
  std::map<int, int64_t> sizes;
  for (size_t k = 0; k < p.inputs.size(); k++)
    if (p.inputs[k].is_size && !p.inputs[k].is_kept()) sizes[int(k)] = p.inputs[k].most;
  return sizes;
}

/// What the program reads: the user's folder or archive, or `folder` with a file for every input.
std::string prepare_inputs(const CommandLine& c, const Program& p, const std::string& folder) {
  if (c.inputs.size() == 1 && fs::exists(c.inputs[0])) {
    if (c.fill_given) usage("--fill-mode is for inputs without a file: all are in " + printable(c.inputs[0]));
    return fs::absolute(c.inputs[0]).string();
  }
  std::vector<fs::path> files(p.inputs.size());
  for (const std::string& given : c.inputs) {
    const auto [k, file] = named_file(p, given);
    if (file.extension() != ".npy" && file.extension() != ".pb")
      inputs_do_not_fit(p, printable(file.string()) + " is neither .npy nor .pb");
    if (!fs::is_regular_file(file)) inputs_do_not_fit(p, "cannot read " + printable(file.string()));
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
                           "TC_VARIANTS", "TC_FP", "TC_OPENMP"}) {
    const char* value = std::getenv(name);
    add(name);
    add(value ? "=" + std::string(value) : "");  // set to nothing is not the same as not set
  }
  const char* compilers =
      c.request.target.is_cuda() ? "${CXX:-c++} --version; ${CUDACXX:-nvcc} --version" : "${CC:-cc} --version";
  add(run_process({"sh", "-c", compilers}, true).output);
  for (const OutputFile& f : files) {
    add(f.path);
    add(f.bytes);
  }
  return hex(xxh64(all.data(), all.size()), 16) + hex(hash_text(all), 16);
}

std::string program_of(const CommandLine& c, const Program& p, bool profile, const TemporaryDir& scratch) {
  const std::string folder = program_cache_folder();
  if (folder.empty()) return build_package(c, p, scratch.path() + "/out", profile);
  const auto build = [&](const std::string& dir) { return build_package(c, p, dir + "/out", profile); };
  return ProgramCache(folder, kCacheBytes).get(cache_key(c, package_of(p, c), profile), build);
}

std::vector<std::string> words_of(const CommandLine& c) {
  std::vector<std::string> words;
  if (c.print_top > 0) words.insert(words.end(), {"--top", to_text(c.print_top)});
  if (c.repeat > 0) words.insert(words.end(), {"--repeat", to_text(c.repeat)});
  if (c.threads > 0) words.insert(words.end(), {"--threads", to_text(int64_t(c.threads))});
  if (c.profile) words.insert(words.end(), {"--profile", "--bench", to_text(c.seconds)});
  if (!c.trace.empty()) words.insert(words.end(), {"--trace", fs::absolute(c.trace).string()});
  if (c.json) words.push_back("--json");
  return words;
}

}  // namespace

ExitCode run_model_command(const CommandLine& c) {
  need_model(c);
  const bool archive = c.outputs.ends_with(".npz");
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
  for (const std::string& word : words_of(c)) argv.push_back(word);
  const ProcessResult r = run_phase(c, "run", argv);
  c.request.listener.tell("");
  if (r.status != 0) {
    std::vector<std::string> notes = input_lines(p);
    notes.insert(notes.begin(), printable(r.output.substr(0, r.output.find_last_not_of('\n') + 1), 4000));
    throw Error(
        Diagnostic{"TC0702", ExitCode::Tool, {}, "the program ended with " + to_text(int64_t(r.status)), notes});
  }
  if (archive) {
    size_t count = 0;
    for (const IoTensor& t : p.outputs) count += t.is_count ? 0 : 1;
    save_npz(c.outputs, outputs, "output", count);
  }
  print_out(r.output);
  return ExitCode::Ok;
}

}  // namespace tc
