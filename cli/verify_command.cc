// verify and bench: emit into a temporary folder, build with make, run.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/process.h"
#include "cli/reference.h"
#include "cli/tolerance.h"
#include "emit_c/package.h"
#include "ir/ops/evaluate.h"
#include "passes/graph/passes.h"
#include "passes/pass.h"

namespace tc {
namespace {

// The reference of verify: ONNX Runtime's answers for the inputs that the emitted program has written.
constexpr std::string_view kReferenceScript = R"(import sys, json, numpy as np, onnxruntime as ort
model, folder, fixed, numbered = sys.argv[1:3] + [json.loads(sys.argv[3]), sys.argv[4] == '1']
def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
def save_text(path, y):  # a TensorProto: dims, data_type STRING, string_data
    words = [w.encode('utf-8', 'surrogateescape') for w in y.ravel()]
    with open(path, 'wb') as f:
        f.write(b''.join(b'\x08' + varint(d) for d in y.shape) + b'\x10\x08')
        f.write(b''.join(b'\x32' + varint(len(w)) + w for w in words))
o = ort.SessionOptions(); o.log_severity_level = 4
o.add_session_config_entry('session.x64quantprecision', '1')  # exact products of bytes without VNNI
s = ort.InferenceSession(model, o, providers=['CPUExecutionProvider'])
def load(stem):
    import os
    if os.path.exists(stem + '.npy'): return np.load(stem + '.npy')
    import onnx
    from onnx import numpy_helper
    t = onnx.TensorProto(); t.ParseFromString(open(stem + '.pb', 'rb').read())
    return numpy_helper.to_array(t)
def constant(i):  # an input of --input-value
    name = i.type[7:-1]  # of tensor(float)
    t = {'float': 'float32', 'double': 'float64'}.get(name, name)
    v = np.array([float(x) if 'float' in t else int(x) for x in fixed[i.name]], t)
    return v.reshape([d if isinstance(d, int) else -1 for d in i.shape])
feed = {i.name: constant(i) for i in s.get_inputs() if i.name in fixed}
for k, i in enumerate([i for i in s.get_inputs() if i.name not in fixed]):
    feed[i.name] = load('%s/input_%d' % (folder, k))
def places(name, y):  # of labels that are text, which is what a compiled model without strings gives
    import onnx
    nodes = [n for n in onnx.load(model, load_external_data=False).graph.node if name in n.output]
    labels = [w.decode() for a in nodes[0].attribute for w in a.strings if a.name == 'classlabels_strings']
    return np.array([labels.index(w) for w in y.ravel()], np.int64).reshape(y.shape)
for k, y in enumerate(s.run(None, feed)):
    if isinstance(y, list):  # of maps: a compiled model gives the values
        y = np.array([list(row.values()) for row in y], np.float32)
    if y.dtype.kind in 'OU' and numbered:
        y = places(s.get_outputs()[k].name, y)
    if y.dtype.kind in 'OU':  # by the standard's rules of .pb files; an array of U would lose zeros at the end
        save_text('%s/output_%d.pb' % (folder, k), y)
    else:
        np.save('%s/output_%d.npy' % (folder, k), y)
)";

[[noreturn]] void tool_failed(const std::string& what, const ProcessResult& r) {
  throw Error(Diagnostic{
      "TC0701",
      ExitCode::Tool,
      {},
      what + (r.status < 0 ? " could not be started" : " failed with exit code " + to_text(int64_t(r.status))),
      {printable(r.output, 4000)},
      false});
}

std::string varint(uint64_t n) {
  std::string s;
  for (; n > 127; n >>= 7) s += char(n | 128);
  return s + char(n);
}

// A TensorProto: dims, data_type STRING, string_data.
void save_strings(const std::string& path, const TensorData& t) {
  std::ofstream f(path, std::ios::binary);
  for (const int64_t d : t.dims) f << '\x08' << varint(uint64_t(d));
  f << "\x10\x08";
  for (const std::string& s : t.strings) f << '\x32' << varint(s.size()) << s;
  if (!f) throw Error("TC0601", ExitCode::Io, "cannot write " + printable(path));
}

// STEM.npy, or STEM.pb of strings.
void save(const std::string& stem, const TensorData& t) {
  if (t.dtype == DType::String) return save_strings(stem + ".pb", t);
  const std::string path = stem + ".npy";
  const DTypeInfo& i = info(t.dtype);
  const char kind = t.dtype == DType::Bool ? 'b' : i.is_float ? 'f' : i.is_signed_int ? 'i' : 'u';
  std::string shape;
  for (const int64_t d : t.dims) shape += to_text(d) + ",";
  std::string head = std::string("{'descr': '") + (i.bytes == 1 ? "|" : "<") + kind + to_text(int64_t(i.bytes)) +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((head.size() + 11) % 64 != 0) head += ' ';
  head += '\n';
  std::ofstream f(path, std::ios::binary);
  f << std::string("\x93NUMPY\x01\x00", 8) << char(head.size() & 255) << char(head.size() >> 8) << head;
  f.write(reinterpret_cast<const char*>(t.bytes.get()), std::streamsize(t.num_bytes));
  if (!f) throw Error("TC0601", ExitCode::Io, "cannot write " + printable(path));
}

// Inputs that suit the types: floats around zero, small non-negative integers, short words.
Constant seeded_input(const IoTensor& t, uint64_t seed) {
  MutableTensor m = new_tensor(t.dtype, t.dims);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x1234567u;
  const int64_t n = num_elements(t.dims);
  for (int64_t i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double unit = double(state >> 11) / double(uint64_t(1) << 53);
    if (t.dtype == DType::String) {
      constexpr std::string_view kWords[] = {"a", "b", "c", "cat", "dog", "Red", "new york"};
      m.data.strings[size_t(i)] = kWords[size_t(unit * 7)];
      continue;
    }
    const double v = is_float(t.dtype)        ? unit * 2 - 1
                     : t.dtype == DType::Bool ? (unit < 0.5 ? 0 : 1)
                                              : double(int64_t(unit * 2));
    const Constant one = scalar_constant(t.dtype, v);
    std::copy_n(one->bytes.get(), info(t.dtype).bytes, m.bytes + i * info(t.dtype).bytes);
  }
  return std::make_shared<TensorData>(std::move(m.data));
}

struct Built {
  Compilation compilation;
  std::string program;
};

// Emits and builds into `dir`.
Built build(const CommandLine& c, const std::string& dir, Diagnostics& problems) {
  say_native_cpu(c);
  Built b;
  b.compilation = compile(c.request, problems);
  if (problems.has_errors()) return b;
  write_package(dir, package_of(b.compilation.program, c));
  b.program = dir + "/" + b.compilation.program.name;
  if (!c.request.target.is_cuda()) {
    const ProcessResult r = run_process({"make", "-s", "-C", dir}, true);
    if (r.status != 0) tool_failed("make", r);
    return b;
  }
  // A GPU if there is one, else the emulation that the package carries.
  const bool gpu = std::filesystem::exists("/dev/nvidia0") && run_process({"nvcc", "--version"}, true).status == 0;
  print_out(gpu ? "on the GPU\n" : "on the CPU, through the package's cuda_on_cpu\n");
  std::vector<std::string> configure{"cmake", "-S", dir, "-B", dir + "/build"};
  configure.push_back(gpu ? "-DCMAKE_CUDA_ARCHITECTURES=native" : "-DTC_CUDA_ON_CPU=ON");
  for (const std::vector<std::string>& command : {configure, {"cmake", "--build", dir + "/build", "--parallel", "2"}}) {
    const ProcessResult r = run_process(command, true);
    if (r.status != 0) tool_failed("cmake", r);
  }
  b.program = dir + "/build/" + b.compilation.program.name;
  return b;
}

bool has_onnxruntime() { return run_process({"python3", "-c", "import onnxruntime"}, true).status == 0; }

}  // namespace

ExitCode verify_command(const CommandLine& c) {
  if (c.model.empty()) throw Error("TC0001", ExitCode::Usage, "no model given");
  if (!c.against.empty() && c.against != "onnxruntime" && c.against != "interpreter")
    throw Error("TC0001", ExitCode::Usage,
                "--against is onnxruntime or interpreter, not '" + printable(c.against) + "'");
  const bool own_ops = !c.request.import.ops.empty();
  if (own_ops && c.against == "onnxruntime")
    throw Error("TC0001", ExitCode::Usage,
                "ONNX Runtime does not know the operators of --ops; compare with the interpreter, or --reference");
  if (!c.reference.empty() && (!own_ops || !c.against.empty()))
    throw Error("TC0001", ExitCode::Usage, "--reference is for operators of --ops, without --against");
  const TemporaryDir dir;
  Diagnostics problems;
  const Built b = build(c, dir.path() + "/out", problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  const std::string io = dir.path() + "/io";
  std::filesystem::create_directory(io);
  std::vector<Constant> inputs;
  for (size_t k = 0; k < b.compilation.program.inputs.size(); k++) {
    inputs.push_back(seeded_input(b.compilation.program.inputs[k], c.seed + k));
    save(io + "/input_" + to_text(int64_t(k)), *inputs.back());
  }
  const bool ort = !own_ops && (c.against == "onnxruntime" || (c.against.empty() && has_onnxruntime()));
  if (!c.reference.empty()) {
    const ProcessResult r = run_process(reference_command(c.reference, c.model, io, c.request.import.ops), true);
    if (r.status != 0) tool_failed("the reference", r);
  } else if (ort) {
    const std::string fixed =
        nlohmann::json(c.request.import.input_values).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    const std::string numbered = c.request.import.number_labels ? "1" : "0";
    const ProcessResult r =
        run_process({"python3", "-c", std::string(kReferenceScript), c.model, io, fixed, numbered}, true);
    if (r.status != 0) tool_failed("ONNX Runtime", r);
  } else {
    Graph plain = import_model(c.model, c.request.import, problems);
    PassContext cx;
    dynamic_to_static(plain, cx);  // the interpreter runs static shapes
    const std::vector<Constant> outputs = in_actual_sizes(plain, evaluate(plain, inputs));
    for (size_t k = 0; k < outputs.size(); k++) save(io + "/output_" + to_text(int64_t(k)), *outputs[k]);
  }
  print_out(std::string("against ") +
            (ort                             ? "ONNX Runtime"
             : !c.reference.empty()          ? printable(c.reference)
             : c.against.empty() && !own_ops ? "the interpreter (python3 has no onnxruntime)"
                                             : "the interpreter") +
            ", seed " + to_text(int64_t(c.seed)) + "\n");
  const auto [rtol, atol] = tolerance_of(b.compilation.graph, c.request.options.precision);
  const ProcessResult r =
      run_process({b.program, "--inputs", io, "--expect", io, "--rtol", rtol, "--atol", atol}, true);
  print_out(r.output);
  if (r.status != 0 && r.output.find("FAIL") == std::string::npos) tool_failed("the emitted program", r);
  return r.status == 0 ? ExitCode::Ok : ExitCode::Mismatch;
}

ExitCode bench_command(const CommandLine& c) {
  if (c.model.empty()) throw Error("TC0001", ExitCode::Usage, "no model given");
  const TemporaryDir dir;
  Diagnostics problems;
  const Built b = build(c, dir.path() + "/out", problems);
  if (const ExitCode e = report(problems, c); e != ExitCode::Ok) return e;
  std::vector<std::string> argv{b.program, "--bench", to_text(c.seconds), "--seed", to_text(int64_t(c.seed))};
  if (c.threads > 0) argv.insert(argv.end(), {"--threads", to_text(int64_t(c.threads))});
  if (c.json) argv.push_back("--json");
  const ProcessResult r = run_process(argv, true);
  if (r.status != 0) tool_failed("the emitted program", r);
  print_out(r.output);
  return ExitCode::Ok;
}

}  // namespace tc
