#include "cli/tune/candidate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/tensor_files.h"
#include "cli/tolerance.h"
#include "cli/tune/measure_text.h"
#include "ir/interpreter.h"
#include "passes/program/build_program.h"
#include "support/read_file.h"

namespace tc {
namespace {

constexpr int64_t kCheapSteps = 20'000'000;  // of the interpreter: less than a second
constexpr const char* kName = "candidate";

/// The function on its own: its unknown operands are inputs, in order.
Graph graph_of(const TuneTask& task) {
  Graph g;
  std::vector<Value*> operands;
  for (size_t i = 0; i < task.fn.inputs.size(); i++) {
    const Buffer& b = task.fn.inputs[i];
    const ModelText name("x" + to_text(int64_t(i)));
    if (!task.constants[i]) {
      operands.push_back(g.add_input(name, ValueType::tensor(b->dtype, b->shape)));
      continue;
    }
    TensorData data = *task.constants[i];
    data.dims = static_dims(b->shape);  // what is reshaped in the graph is read under other sizes
    operands.push_back(g.add_constant(name, std::make_shared<const TensorData>(std::move(data))));
  }
  std::vector<ModelText> names;
  for (size_t k = 0; k < task.fn.outputs.size(); k++) names.emplace_back("y" + to_text(int64_t(k)));
  Node* n = g.append("fused", operands, names, {}, "tc");
  n->name = ModelText(task.signature);
  n->fn = std::make_shared<const TensorFn>(task.fn);
  for (size_t k = 0; k < n->outputs.size(); k++)
    g.set_type(n->outputs[k], ValueType::tensor(task.fn.outputs[k]->dtype, task.fn.outputs[k]->shape));
  g.set_outputs(n->outputs);
  g.renumber();
  return g;
}

std::vector<Constant> filled_inputs(const TuneTask& task, FillMode mode, uint64_t seed) {
  std::vector<Constant> all;
  for (size_t i = 0; i < task.fn.inputs.size(); i++) {
    const Buffer& b = task.fn.inputs[i];
    IoTensor t;
    t.dtype = b->dtype;
    t.dims = static_dims(b->shape);
    Constant c = task.constants[i];
    if (c && c->dims != t.dims) {
      TensorData data = *c;
      data.dims = t.dims;
      c = std::make_shared<const TensorData>(std::move(data));
    }
    all.push_back(c ? c : filled_tensor(t, mode, seed + i));
  }
  return all;
}

double largest(const uint8_t* bytes, size_t count) {
  double most = 0;
  for (size_t i = 0; i < count; i++) {
    float v = 0;
    std::memcpy(&v, bytes + 4 * i, 4);
    if (std::isfinite(v)) most = std::max(most, std::abs(double(v)));
  }
  return most;
}

/// The largest element of a file of f32; 0 of others.
double largest_in_file(const std::string& path) {
  const std::string bytes = try_read_file(path).value_or("");
  if (bytes.size() < 10 || bytes.find("'<f4'") > 64) return 0;
  const size_t head = 10 + uint8_t(bytes[8]) + 256 * size_t(uint8_t(bytes[9]));
  if (head > bytes.size()) return 0;
  return largest(reinterpret_cast<const uint8_t*>(bytes.data()) + head, (bytes.size() - head) / 4);
}

/// Writes what the interpreter computes; false where it takes too long. An index out of range throws TC0503.
bool interpreted(const TuneTask& task, const std::vector<Constant>& inputs, const std::string& folder) {
  RunOptions o;
  o.max_steps = kCheapSteps;
  try {
    const std::vector<Constant> outputs = evaluate(task.fn, inputs, o);
    for (size_t k = 0; k < outputs.size(); k++) save_tensor(folder + "/output_" + to_text(int64_t(k)), *outputs[k]);
  } catch (const Error& e) {
    if (e.diagnostic().code != "TC0502") throw;
    return false;
  }
  return true;
}

void save_inputs(const TuneTask& task, const std::vector<Constant>& inputs, const std::string& folder) {
  size_t at = 0;
  for (size_t i = 0; i < inputs.size(); i++)
    if (!task.constants[i]) save_tensor(folder + "/input_" + to_text(int64_t(at++)), *inputs[i]);
}

void run_plain_loops(const CommandLine& c, const TuneTask& task, const std::string& folder, const std::string& dir,
                     double seconds) {
  const auto failed = [&](const std::string& what, const ProcessResult& r) {
    throw Error(Diagnostic{"TC0704",
                           ExitCode::Tool,
                           {},
                           "the plain loops of \"" + printable(task.signature) + "\" " + what,
                           {printable(r.output, 2000)},
                           false});
  };
  // Of C, whatever the target: what is compared with them is to have nothing in common with them.
  CommandLine plain = c;
  plain.request.target.kind = Target::Kind::C;
  if (c.request.target.is_cuda()) plain.request.target.cpu = *find_cpu("generic");
  write_candidate(plain, candidate_program(plain, task, {{"naive", {}}}), dir, false);
  const ProcessResult built = run_limited({"make", "-s", "-C", dir, kName}, seconds);
  if (built.status != 0) failed("cannot be built", built);
  const ProcessResult r = run_limited({dir + "/" + kName, "--inputs", folder, "--outputs", folder, "--threads",
                                       to_text(int64_t(std::max(1, c.threads)))},
                                      seconds);
  if (r.status != 0) failed(r.status == kTimedOut ? "take too long" : "fail", r);
}

}  // namespace

Program candidate_program(const CommandLine& c, const TuneTask& task, const std::vector<PlanLine>& plan) {
  StatedSchedules stated;
  stated.plans.push_back({"*", "", "", plan});
  Graph g = graph_of(task);
  const std::unique_ptr<const Backend> backend = make_backend(c.request.target);
  Options options;
  options.strict_fp = c.request.options.strict_fp;
  options.precision = c.request.options.precision;
  options.string_bytes = c.request.options.string_bytes;
  Diagnostics problems;
  PassContext cx{.target = backend->traits(),
                 .options = options,
                 .diagnostics = &problems,
                 .backend = backend.get(),
                 .schedules = &stated};
  std::string log;
  Program p = build_program(g, kName, cx, log);
  for (const Diagnostic& d : problems.list())
    if (!d.warning) throw Error(d);
  return p;
}

namespace {

/// `make candidate` of a CUDA package, by nvcc for the GPU that is there: CMake needs longer to find out about a compiler than
/// nvcc does for a kernel. Without CUDA CMake builds cuda_on_cpu.
std::string cuda_makefile(bool on_cpu, const CudaModel& gpu, bool strict_fp) {
  const std::string head = "# Builds the program that tc-emit tune times";
  if (on_cpu)
    return head +
           ", without CUDA.\n"
           "candidate:\n"
           "\tcmake -S . -B build -DTC_CUDA_ON_CPU=ON\n"
           "\tcmake --build build --target candidate_program\n"
           "\tcp build/candidate candidate\n";
  return head +
         ".\n"
         "CUDACXX ?= nvcc\n"
         "CPPFLAGS = -I.\n"
         "weights = $(patsubst %.S,%.o,$(wildcard *.S))\n"
         "candidate: $(weights)\n"
         "\t$(CUDACXX) -std=c++17 -O3 " +
         (gpu.has_wgmma ? "-gencode=arch=compute_90a,code=sm_90a" : "-arch=native") + " -I." +
         std::string(strict_fp ? " -fmad=false" : "") +
         " candidate.cu $(wildcard kernels/*.cu) measure_cuda.cc main.c $(weights) -o $@\n";
}

/// The program times on the device.
void time_on_device(std::vector<OutputFile>& files) {
  files.push_back({"measure_cuda.cc", std::string(measure_cuda_text())});
  for (OutputFile& f : files) {
    if (f.path == "main.c") f.bytes = "#define TC_ON_DEVICE\n" + f.bytes;
    if (f.path != "CMakeLists.txt") continue;
    const std::string program = "add_executable(candidate_program main.c";
    const size_t at = f.bytes.find(program);
    check(at != std::string::npos, "the package's program is built of main.c");
    f.bytes.insert(at + program.size(), " measure_cuda.cc");
  }
}

}  // namespace

void write_candidate(const CommandLine& c, const Program& p, const std::string& dir, bool timed) {
  const bool cuda = c.request.target.is_cuda();
  CommandLine single = c;
  single.any_cpu = false;
  single.jit = false;
  std::vector<OutputFile> files = package_of(p, single);
  for (OutputFile& f : files)
    if (timed && f.path == "main.c") f.path = "model_main.c";
  const auto is_pool = [](const OutputFile& f) { return f.path == "tc_pool.c"; };
  const bool threads = std::any_of(files.begin(), files.end(), is_pool);  // that --threads has to reach
  const std::string include = threads ? "#include \"tc_parallel.h\"\n" : "";
  if (timed) files.push_back({"main.c", include + std::string(measure_text())});
  if (timed && cuda) time_on_device(files);
  if (cuda) files.push_back({"Makefile", cuda_makefile(!has_gpu(), c.request.target.gpu, c.request.options.strict_fp)});
  write_package(dir, files);
}

TaskReference make_reference(const CommandLine& c, const TuneTask& task, const std::string& dir, double seconds) {
  TaskReference r{dir + "/io", "", ""};
  std::filesystem::create_directories(r.folder);
  std::vector<Constant> inputs = filled_inputs(task, FillMode::Random, c.seed);
  bool cheap = false;
  try {
    cheap = interpreted(task, inputs, r.folder);
  } catch (const Error& e) {
    if (e.diagnostic().code != "TC0503") throw;
    inputs = filled_inputs(task, FillMode::Zeros, c.seed);  // an index that every axis has
    cheap = interpreted(task, inputs, r.folder);
  }
  save_inputs(task, inputs, r.folder);
  if (!cheap) run_plain_loops(c, task, r.folder, dir + "/plain", seconds);
  const Tolerance usual = tolerance_of(graph_of(task), c.request.options.precision);
  double most = 0;
  for (size_t k = 0; k < task.fn.outputs.size(); k++)
    most = std::max(most, largest_in_file(r.folder + "/output_" + to_text(int64_t(k)) + ".npy"));
  // Where large terms cancel, what is left is off by roundings of the terms.
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", std::max(std::strtod(usual.absolute.c_str(), nullptr), 2e-5 * most));
  r.rtol = usual.relative;
  r.atol = text;
  return r;
}

}  // namespace tc
