#include "emit_c/life_cycle.h"

#include <algorithm>

#include "emit_c/operands.h"

namespace tc {

std::vector<std::string> argument_tests(const Program& p, const ProgramNames& n) {
  const std::string refuse = ") return " + n.upper + "_E_ARG;", sizes = size_tests(p, n);
  std::vector<std::string> lines = {"if (!" + n.self + " || !in || !out" + null_tests(p, n) + refuse};
  if (!sizes.empty()) lines.push_back("if (" + sizes + refuse);
  return lines;
}

std::string linked_weights(const ProgramNames& n) {
  const std::string& x = n.lower;
  return "#ifdef __cplusplus\nextern \"C\" const unsigned char " + x +
         "_weights_blob[];\n#else\nextern const unsigned char " + x + "_weights_blob[];\n#endif\n\nconst void *" + x +
         "_weights(void) { return " + x + "_weights_blob; }\n\n";
}

std::string strerror_rows(const ProgramNames& n, bool makes_strings, bool chooses, bool counts_states) {
  const std::string& u = n.upper;
  std::string s;
  const std::pair<const char*, std::string> rows[] = {
      {"OK", "ok"},
      {"E_ARG", "a pointer is null or the workspace is too small"},
      {"E_ALIGN", "workspace or weights are not aligned to " + u + "_ALIGN"},
      {"E_WEIGHTS", "these weights do not belong to this code"},
      {"E_RANGE", "an index in the input data is out of range"},
      {"E_MEMORY", "no memory for the workspace"},
      {"E_DEVICE", "a call to the device failed"},
      {"E_TRIPS", "a loop ran more or fewer times than the shapes of its results say"}};
  for (const auto& [code, message] : rows) s += "    case " + u + "_" + code + ": return \"" + message + "\";\n";
  if (counts_states) s += "    case " + u + "_E_STATE: return \"no room in the states\";\n";
  if (chooses)
    s += "    case " + u + "_E_CPU: return \"this processor, or this build, does not have these kernels\";\n";
  if (makes_strings) s += "    case " + u + "_E_STRINGS: return \"no room for the strings of this run\";\n";
  return s;
}

namespace {

// Where a state lies, as bytes.
std::string state_bytes(const Program& p, const ProgramNames& n, const IoTensor& t) {
  return n.self + "->workspace + " + to_text(p.slots[size_t(t.state)].offset);
}

std::string cleared(const Program& p, const ProgramNames& n, const IoTensor& t) {
  return "  memset(" + state_bytes(p, n, t) + ", 0, " + to_text(p.slots[size_t(t.state)].bytes) + ");\n";
}

std::string state_count(const Program& p, const ProgramNames& n, const IoTensor& t) {
  return "*(int64_t *)(void *)(" + state_bytes(p, n, t) + ")";
}

// How many elements a state grows by for each one that a run brings.
int64_t growth(const IoTensor& t, const Program& p) {
  int64_t each = 0, sizes = 0;
  for (const SizeSum::Term& term : t.next.terms)
    if (!p.inputs[term.input].is_kept()) each = term.factor, sizes++;
  return sizes == 1 && each > 0 ? each : 1;
}

// One row of NAME_state(): sizes of what there is, strides of what there is room for.
std::string state_row(const Program& p, const ProgramNames& n, const IoTensor& t) {
  std::string s = "      view->name = " + c_string(t.name.raw()) + ";\n      view->data = " + state_bytes(p, n, t) +
                  ";\n      view->rank = " + to_text(int64_t(t.dims.size())) + ";\n";
  int64_t stride = info(t.dtype).bytes;
  std::vector<int64_t> strides(t.dims.size());
  for (size_t d = t.dims.size(); d-- > 0; stride *= std::max<int64_t>(1, t.dims[d])) strides[d] = stride;
  for (size_t d = 0; d < t.dims.size(); d++) {
    std::string size = to_text(t.dims[d]);
    for (const IoSize& z : t.sizes)
      if (z.axis == int(d)) size = state_count(p, n, p.inputs[z.sum.terms[0].input]);
    s += "      view->sizes[" + to_text(int64_t(d)) + "] = " + size + ", view->strides[" + to_text(int64_t(d)) +
         "] = " + to_text(strides[d]) + ";\n";
  }
  return s + "      return 1;\n";
}

std::string state_functions(const Program& p, const ProgramNames& n) {
  if (!keeps_states(p)) return "";
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  std::vector<std::string> too_few, less;
  std::string clear, rows;
  int64_t number = 0;
  for (const IoTensor& t : p.inputs) {
    if (!t.is_kept()) continue;
    const bool counts = t.is_size, grows = std::any_of(t.sizes.begin(), t.sizes.end(), [&](const IoSize&z) {
                                     return p.inputs[z.sum.terms[0].input].is_kept();
                                   });
    if (counts) {
      const int64_t each = growth(t, p);
      too_few.push_back(state_count(p, n, t) + (each == 1 ? "" : " / " + to_text(each)) + " < n");
      less.push_back("  " + state_count(p, n, t) + " -= " + (each == 1 ? "n" : to_text(each) + " * n") + ";\n");
    }
    if (!grows) clear += cleared(p, n, t);
    rows += "    case " + to_text(number++) + ":\n" + state_row(p, n, t);
  }
  std::string s = "void " + x + "_reset(" + x + " *" + m + ")\n{\n" + clear + "}\n\n";
  if (!less.empty())
    s += x + "_status " + x + "_rewind(" + x + " *" + m + ", int64_t n)\n{\n  if (!" + m + " || n < 0 || " +
         join(too_few, " || ") + ") return " + u + "_E_ARG;\n" + join(less, "") + "  return " + u + "_OK;\n}\n\n";
  return s + "int " + x + "_state(" + x + " *" + m + ", int k, " + x + "_state_view *view)\n{\n  switch (k) {\n" +
         rows + "  }\n  return 0;\n}\n\n";
}

std::string init_function(const Program& p, const ProgramNames& n, bool chooses) {
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  std::string s = x + "_status " + x + (chooses ? "_init_cpu(" : "_init(") + init_parameters(n) +
                  (chooses ? ", " + x + "_cpu cpu" : "") + ")\n{\n";
  s += "  if (!" + m + " || (workspace && workspace_bytes < " + u + "_WORKSPACE_BYTES)) return " + u + "_E_ARG;\n";
  s += "  if (!weights) {\n    weights = " + x + "_weights();\n    weights_bytes = " + u + "_WEIGHTS_BYTES;\n  }\n";
  s += "  if ((uintptr_t)weights % " + u + "_ALIGN != 0 || (uintptr_t)workspace % " + u + "_ALIGN != 0) return " + u +
       "_E_ALIGN;\n";
  s += "  if (!fits(weights, weights_bytes)) return " + u + "_E_WEIGHTS;\n";
  if (chooses) s += "  if (!choose(" + m + ", cpu)) return " + u + "_E_CPU;\n";
  s += "  " + m + "->weights = (const unsigned char *)weights;\n  " + m +
       "->workspace = (unsigned char *)workspace;\n  " + m + "->allocated = NULL;\n  " + m + "->device = NULL;\n";
  s += "  if (!workspace) {\n    " + m + "->allocated = malloc(" + u + "_WORKSPACE_BYTES + " + u +
       "_ALIGN);\n    if (!" + m + "->allocated) return " + u + "_E_MEMORY;\n";
  s += "    " + m + "->workspace = (unsigned char *)" + m + "->allocated + (" + u + "_ALIGN - (uintptr_t)" + m +
       "->allocated % " + u + "_ALIGN);\n  }\n";
  for (const IoTensor& t : p.inputs)  // caches, too: what is behind their elements is multiplied by zero
    if (t.is_kept()) s += cleared(p, n, t);
  s += "  return " + u + "_OK;\n}\n\n";
  if (chooses)
    s += x + "_status " + x + "_init(" + init_parameters(n) + ")\n{\n  return " + x + "_init_cpu(" + m +
         ", weights, weights_bytes, workspace, workspace_bytes, " + u + "_CPU_BEST);\n}\n\n";
  return s;
}

// Of a package for several processors: the graph is another function.
std::string run_function(const Program& p, const ProgramNames& n) {
  const std::string &x = n.lower, &m = n.self;
  return x + "_status " + x + "_run" + run_parameters(n) + "\n{\n  " + join(argument_tests(p, n), "\n  ") +
         "\n  return " + m + "->graph(" + m + ", in, out);\n}\n\n";
}

}  // namespace

std::string life_cycle(const Program& p, const ProgramNames& n, uint64_t layout_id,
                       const std::vector<Variant>& variants) {
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  std::string s;
  s += "static int fits(const void *weights, size_t bytes)\n{\n  return bytes == " + u +
       "_WEIGHTS_BYTES && tc_weights_match(weights, bytes, UINT64_C(0x" + hex(layout_id, 16) + "));\n}\n\n";
  s += init_function(p, n, !variants.empty()) + state_functions(p, n);
  if (!variants.empty()) s += run_function(p, n);
  s += "void " + x + "_free(" + x + " *" + m + ")\n{\n  if (!" + m + ") return;\n  free(" + m + "->allocated);\n  " +
       m + "->allocated = NULL;\n  " + m + "->workspace = NULL;\n}\n\n";
  s += "int " + x + "_check_weights(const void *weights)\n{\n";
  s += "  return weights && fits(weights, " + u + "_WEIGHTS_BYTES) && tc_weights_intact(weights);\n}\n\n";
  s += "const char *" + x + "_strerror(" + x + "_status s)\n{\n  switch (s) {\n";
  s += strerror_rows(n, p.strings_bytes > 0, !variants.empty(), counts_states(p));
  return s + "  }\n  return \"unknown status\";\n}\n";
}

std::string api_source(const Program& p, const ProgramNames& n, uint64_t layout_id,
                       const std::vector<Variant>& variants) {
  return std::string(kLicenseLine) + "\n#include \"tc_cpu.h\"\n#include \"tc_rt.h\"\n#include \"" + n.lower +
         ".h\"\n#include <stdlib.h>\n" + (keeps_states(p) ? "#include <string.h>\n\n" : "\n") + linked_weights(n) +
         variant_choice(variants, n) + life_cycle(p, n, layout_id, variants);
}

}  // namespace tc
