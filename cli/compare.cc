#include "cli/compare.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/build_model.h"
#include "cli/commands.h"
#include "cli/reference.h"
#include "cli/tensor_files.h"
#include "cli/tolerance.h"
#include "emit_c/operands.h"
#include "importer/model_parts.h"
#include "ir/open_size.h"
#include "ir/ops/evaluate.h"
#include "passes/graph/multiply_blocks.h"
#include "passes/graph/passes.h"
#include "passes/pass.h"

namespace tc {
namespace {

bool has_onnxruntime() {
  const auto found = python_modules({"onnxruntime"});
  return found && !found->empty();
}

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
  if (c.request.int8_activations) allow_byte_products(plain);
  PassContext cx;
  dynamic_to_static(plain, cx);  // the interpreter runs static shapes
  if (!c.request.target.is_cuda() && !c.request.options.strict_fp) multiply_blocks(plain);  // as the package rounds
  const std::vector<Constant> outputs = evaluate_model(plain, inputs);
  for (size_t k = 0; k < outputs.size(); k++) save_tensor(folder + "/output_" + to_text(int64_t(k)), *outputs[k]);
  return c.against.empty() && !own_ops ? "the interpreter (python3 has no onnxruntime)" : "the interpreter";
}

}  // namespace

namespace {

/// The sizes that the caller of the package chooses, by input: {} where there are none; else the largest, the least and, if
/// there are others, some between.
std::vector<std::map<int, int64_t>> choices(const Program& p, uint64_t seed) {
  std::map<int, int64_t> most, least, between;
  bool others = false;
  for (size_t k = 0; k < p.inputs.size(); k++) {
    const IoTensor& t = p.inputs[k];
    if (!t.is_size || t.is_kept()) continue;
    const int64_t largest = most_tried(t.least, t.most);
    most[int(k)] = largest;
    least[int(k)] = t.least;
    const auto inside = uint64_t(std::max<int64_t>(1, largest - t.least - 1));
    between[int(k)] = std::min(largest, t.least + 1 + int64_t((seed * 0x9e3779b97f4a7c15u + k) % inside));
    others = others || largest - t.least > 1;
  }
  if (most.empty()) return {most};
  return others ? std::vector{most, least, between} : std::vector{most, least};
}

/// The inputs that are no sizes, of chosen ones, also as files of `folder`; states are empty or zeros, and files of `whole` only,
/// which has all.
std::vector<Constant> make_inputs(const Program& p, const std::map<int, int64_t>& sizes, FillMode fill, uint64_t seed,
                                  const std::string& folder, const std::string& whole) {
  std::vector<Constant> inputs;
  size_t seen = 0;
  for (const IoTensor& t : p.inputs) {
    if (t.is_size) continue;
    inputs.push_back(filled_tensor(in_sizes(t, sizes), t.is_kept() ? FillMode::Zeros : fill, seed + inputs.size()));
    if (!t.is_kept()) save_tensor(folder + "/input_" + to_text(int64_t(seen++)), *inputs.back());
    if (whole != folder) save_tensor(whole + "/input_" + to_text(int64_t(inputs.size() - 1)), *inputs.back());
  }
  return inputs;
}

/// The results that a caller sees, by their numbers among these.
void take_outputs(const Program& p, const std::string& from, const std::string& to) {
  size_t own = 0, seen = 0;
  for (const IoTensor& t : p.outputs) {
    if (t.is_count) continue;
    const std::string number = "/output_" + to_text(int64_t(own++));
    if (t.is_kept()) continue;
    for (const char* ending : {".npy", ".pb"})
      if (std::filesystem::exists(from + number + ending))
        std::filesystem::copy_file(from + number + ending, to + "/output_" + to_text(int64_t(seen)) + ending);
    seen++;
  }
}

/// What is imported for the reference: a size without an upper bound, of which no memory holds the tensors, is the chosen one.
CommandLine of_sizes(CommandLine c, const Program& p, const std::map<int, int64_t>& sizes) {
  for (const auto& [k, size] : sizes)
    if (const IoTensor& t = p.inputs[size_t(k)]; is_open(t.most)) c.request.import.dims[t.name.raw()] = size;
  return c;
}

/// One run, of chosen sizes.
AgainstReference compare_run(const CommandLine& c, const Built& b, const std::string& io,
                             const std::map<int, int64_t>& sizes, Diagnostics& problems) {
  const Program& p = b.compilation.program;
  std::filesystem::create_directory(io);
  AgainstReference result;
  const std::string whole = keeps_states(p) ? io + "/reference" : io;
  std::filesystem::create_directory(whole);
  result.against =
      write_reference(of_sizes(c, p, sizes), whole, make_inputs(p, sizes, c.fill, c.seed, io, whole), problems);
  if (whole != io) take_outputs(p, whole, io);
  const auto [rtol, atol] = tolerance_of(b.compilation.graph, c.request.options.precision);
  std::vector<std::string> command = {b.program, "--inputs", io, "--expect", io, "--rtol", rtol, "--atol", atol};
  for (const auto& [k, size] : sizes) {
    const std::string stated = p.inputs[size_t(k)].name.raw() + "=" + to_text(size);
    command.insert(command.end(), {"--dim", stated});
    result.text += (result.text.empty() ? "sizes " : ", ") + printable(stated);
  }
  if (!sizes.empty()) result.text += "\n";
  const ProcessResult r = run_phase(c, "run", command);
  c.request.listener.tell("");
  result.same = r.status == 0;
  result.text += r.output;
  if (!result.same && r.output.find("FAIL") == std::string::npos) tool_failed("the emitted program", r);
  size_t at = 0;  // a line for each output, in order; a name may have any bytes, line breaks among them
  for (const IoTensor& t : p.outputs) {
    if (t.is_count || t.is_kept()) continue;
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

}  // namespace

AgainstReference compare_with_reference(const CommandLine& c, Diagnostics& problems) {
  const TemporaryDir dir;
  const Built b = build_model(c, dir.path() + "/out", problems);
  if (problems.has_errors()) return {};
  AgainstReference all;
  for (const auto& sizes : choices(b.compilation.program, c.seed)) {
    AgainstReference one = compare_run(c, b, dir.path() + "/io" + to_text(int64_t(all.text.size())), sizes, problems);
    one.text = all.text + one.text;
    one.same = one.same && (all.text.empty() || all.same);
    for (size_t k = 0; k < one.outputs.size() && k < all.outputs.size(); k++)
      if (all.outputs[k].differs) one.outputs[k] = all.outputs[k];
    all = std::move(one);
  }
  return all;
}

}  // namespace tc
