#include "cli/compare.h"

#include <filesystem>
#include <fstream>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/reference.h"
#include "cli/tensor_files.h"
#include "cli/tolerance.h"
#include "importer/model_parts.h"
#include "ir/ops/evaluate.h"
#include "passes/graph/multiply_blocks.h"
#include "passes/graph/passes.h"
#include "passes/pass.h"

namespace tc {
namespace {

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
    const ProcessResult r = run_phase(
        c, "reference", onnxruntime_command(binary_model(c.model, folder, problems), folder, c.request.import));
    if (r.status != 0) tool_failed("ONNX Runtime", r);
    return "ONNX Runtime";
  }
  c.request.listener.tell("reference");
  Graph plain = import_model(c.model, c.request.import, problems);
  PassContext cx;
  dynamic_to_static(plain, cx);  // the interpreter runs static shapes
  if (!c.request.target.is_cuda() && !c.request.options.strict_fp) multiply_blocks(plain);  // as the package rounds
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
