#include "cli/compare.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/reference.h"
#include "cli/tensor_files.h"
#include "cli/tolerance.h"
#include "importer/model_parts.h"
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

bool has_onnxruntime() { return run_process({"python3", "-c", "import onnxruntime"}, true).status == 0; }

/// The model as ONNX Runtime reads it, which has no text syntax: a copy below `folder`.
std::string binary_model(const std::string& path, const std::string& folder, Diagnostics& problems) {
  if (!path.ends_with(".onnxtxt")) return path;
  const ModelParts parts(path, {}, problems);
  std::ofstream(folder + "/model.onnx", std::ios::binary) << parts.with_outputs(parts.outputs());
  return folder + "/model.onnx";
}

/// Writes what the reference computes from FOLDER/input_K as FOLDER/output_K; says which one it was.
std::string write_reference(const CommandLine& c, const std::string& folder, const std::vector<Constant>& inputs,
                            Diagnostics& problems) {
  const bool own_ops = !c.request.import.ops.empty();
  if (!c.reference.empty()) {
    const ProcessResult r =
        run_phase(c, "reference", reference_command(c.reference, c.model, folder, c.request.import.ops));
    if (r.status != 0) tool_failed("the reference", r);
    return printable(c.reference);
  }
  if (!own_ops && (c.against == "onnxruntime" || (c.against.empty() && has_onnxruntime()))) {
    const std::string fixed =
        nlohmann::json(c.request.import.input_values).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    const std::string numbered = c.request.import.number_labels ? "1" : "0";
    const ProcessResult r = run_phase(c, "reference",
                                      {"python3", "-c", std::string(kReferenceScript),
                                       binary_model(c.model, folder, problems), folder, fixed, numbered});
    if (r.status != 0) tool_failed("ONNX Runtime", r);
    return "ONNX Runtime";
  }
  c.request.listener.tell("reference");
  Graph plain = import_model(c.model, c.request.import, problems);
  PassContext cx;
  dynamic_to_static(plain, cx);  // the interpreter runs static shapes
  const std::vector<Constant> outputs = in_actual_sizes(plain, evaluate(plain, inputs));
  for (size_t k = 0; k < outputs.size(); k++) save_tensor(folder + "/output_" + to_text(int64_t(k)), *outputs[k]);
  return c.against.empty() && !own_ops ? "the interpreter (python3 has no onnxruntime)" : "the interpreter";
}

}  // namespace

AgainstReference compare_with_reference(const CommandLine& c, Diagnostics& problems) {
  const TemporaryDir dir;
  const Built b = build_model(c, dir.path() + "/out", problems);
  if (problems.has_errors()) return {};
  const Program& p = b.compilation.program;
  const std::string io = dir.path() + "/io";
  std::filesystem::create_directory(io);
  std::vector<Constant> inputs;
  for (size_t k = 0; k < p.inputs.size(); k++) {
    inputs.push_back(filled_tensor(p.inputs[k], FillMode::Random, c.seed + k));
    save_tensor(io + "/input_" + to_text(int64_t(k)), *inputs.back());
  }
  AgainstReference result;
  result.against = write_reference(c, io, inputs, problems);
  const auto [rtol, atol] = tolerance_of(b.compilation.graph, c.request.options.precision);
  const ProcessResult r =
      run_phase(c, "run", {b.program, "--inputs", io, "--expect", io, "--rtol", rtol, "--atol", atol});
  c.request.listener.tell("");
  result.same = r.status == 0;
  result.text = r.output;
  if (!result.same && r.output.find("FAIL") == std::string::npos) tool_failed("the emitted program", r);
  size_t at = 0;  // a line for each output, in order; a name may have any bytes, line breaks among them
  for (const IoTensor& t : p.outputs) {
    if (t.is_count) continue;
    const std::string head = "output \"" + t.name.raw() + "\": ";
    at = r.output.find(head, at);
    check(at != std::string::npos, "the program compares every output");
    at += head.size();
    const size_t end = std::min(r.output.find('\n', at), r.output.size());
    const std::string told = r.output.substr(at, end - at);
    result.outputs.push_back({t.name, told, told.find("  FAIL") != std::string::npos});
  }
  return result;
}

}  // namespace tc
