#include "emit_c/main_source.h"

#include "emit_c/source_writer.h"

namespace tc {
namespace {

void tensor_table(SourceWriter& out, const std::string& kind, const std::vector<IoTensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); i++) {
    if (tensors[i].dims.empty()) continue;
    std::vector<std::string> dims;
    for (const int64_t d : tensors[i].dims) dims.push_back(to_text(d));
    out.line("static const int64_t " + kind + "_" + to_text(int64_t(i)) + "_dims[] = {" + join(dims, ", ") + "};");
  }
  if (tensors.empty()) return;
  out.line("static const tc_io_info " + kind + "_info[] = {");
  for (size_t i = 0; i < tensors.size(); i++) {
    std::string type(info(tensors[i].dtype).onnx_name);
    for (char& c : type)
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    const std::string rank = to_text(int64_t(tensors[i].dims.size()));
    const std::string dims = tensors[i].dims.empty() ? "NULL" : kind + "_" + to_text(int64_t(i)) + "_dims";
    out.line("  {" + c_string(tensors[i].name.raw()) + ", TC_" + type + ", " + rank + ", " + dims + "},");
  }
  out.line("};");
}

}  // namespace

std::string main_source(const Program& p, const ProgramNames& n) {
  const std::string& x = n.lower;
  SourceWriter out;
  out.raw(kLicenseLine);
  out.line("/* A program around the model: reads or makes inputs, runs, compares, times. See --help. */");
  out.line("#include \"" + x + ".h\"");
  out.line("#include \"tc_simd.h\"");
  out.line("#include \"tc_main.h\"");
  out.blank();
  tensor_table(out, "input", p.inputs);
  tensor_table(out, "output", p.outputs);
  out.blank();
  out.line("static int open_model(void *instance) { return (int)" + x + "_init((" + x + " *)instance, NULL, 0, NULL, 0); }");
  out.line("static void close_model(void *instance) { " + x + "_free((" + x + " *)instance); }");
  out.line("static const char *message(int status) { return " + x + "_strerror((" + x + "_status)status); }");
  out.blank();
  out.line("static int run_model(void *instance, const void *const *in, void *const *out, int64_t *const *out_dims)");
  out.line("{");
  out.indent();
  out.line(x + "_inputs inputs;");
  out.line(x + "_outputs outputs;");
  for (size_t i = 0; i < p.inputs.size(); i++)
    out.line("inputs." + n.inputs[i] + " = (const " + std::string(info(p.inputs[i].dtype).c_type) + " *)in[" + to_text(int64_t(i)) + "];");
  for (size_t i = 0; i < p.outputs.size(); i++)
    out.line("outputs." + n.outputs[i] + " = (" + std::string(info(p.outputs[i].dtype).c_type) + " *)out[" + to_text(int64_t(i)) + "];");
  out.line("(void)out_dims, (void)in, (void)out;");
  if (p.inputs.empty()) out.line("inputs.nothing = 0;");
  if (p.outputs.empty()) out.line("outputs.nothing = 0;");
  out.line("return (int)" + x + "_run((const " + x + " *)instance, &inputs, &outputs);");
  out.dedent();
  out.line("}");
  out.blank();
  out.line("int main(int argc, char **argv)");
  out.line("{");
  out.indent();
  out.line(x + " instance;");
  out.line("tc_model model;");
  out.line("memset(&model, 0, sizeof model);");
  out.line("model.name = " + c_string(x) + ";");
  if (!p.inputs.empty()) {
    out.line("model.inputs = " + to_text(int64_t(p.inputs.size())) + ";");
    out.line("model.input = input_info;");
  }
  if (!p.outputs.empty()) {
    out.line("model.outputs = " + to_text(int64_t(p.outputs.size())) + ";");
    out.line("model.output = output_info;");
  }
  out.line("model.lanes = " + to_text(int64_t(p.lanes)) + ";");
  out.line("model.built_lanes = TC_VL;");
  out.line("model.instance = &instance;");
  out.line("model.open = open_model;");
  out.line("model.run = run_model;");
  out.line("model.close = close_model;");
  out.line("model.message = message;");
  out.line("return tc_main(&model, argc, argv);");
  out.dedent();
  out.line("}");
  return out.take();
}

}  // namespace tc
