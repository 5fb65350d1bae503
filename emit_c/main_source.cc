#include "emit_c/main_source.h"

#include <algorithm>

#include "emit_c/fill.h"
#include "emit_c/operands.h"
#include "emit_c/source_writer.h"
#include "ir/open_size.h"
#include "templates/text.h"

namespace tc {
namespace {

// Of the inputs that are sizes, the one that this input is.
int64_t size_number(const Program& p, size_t input) {
  return std::count_if(p.inputs.begin(), p.inputs.begin() + std::ptrdiff_t(input),
                       [](const IoTensor& t) { return t.is_size && !t.is_kept(); });
}

// Of the tensors that the caller passes, the one that this is.
int64_t port_number(const std::vector<IoTensor>& tensors, size_t k) {
  return std::count_if(tensors.begin(), tensors.begin() + std::ptrdiff_t(k),
                       [](const IoTensor& t) { return !t.is_size && !t.is_count && !t.is_kept(); });
}

std::string dims_tables(const std::string& kind, const std::vector<IoTensor>& tensors) {
  std::string s;
  for (size_t i = 0; i < tensors.size(); i++) {
    std::vector<std::string> dims;
    for (const int64_t d : tensors[i].dims) dims.push_back(to_text(d));
    if (!dims.empty() && !tensors[i].is_kept())
      s += "static const int64_t " + kind + to_text(int64_t(i)) + "_dims[] = {" + join(dims, ", ") + "};\n";
  }
  return s;
}

std::string rows(const std::string& kind, const std::vector<IoTensor>& tensors) {
  std::vector<std::string> list;
  for (size_t i = 0; i < tensors.size(); i++) {
    if (tensors[i].is_count || tensors[i].is_size || tensors[i].is_kept()) continue;
    std::string type(info(tensors[i].dtype).onnx_name);
    for (char& c : type)
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    const std::string dims = tensors[i].dims.empty() ? "NULL" : kind + to_text(int64_t(i)) + "_dims";
    list.push_back("  {" + c_string(tensors[i].name.raw()) + ", TC_" + type + ", " +
                   to_text(int64_t(tensors[i].dims.size())) + ", " + dims + "}");
  }
  return list.empty() ? "  {NULL, 0, 0, NULL}" : join(list, ",\n");
}

// Which input is how long along which axis, by the numbers of the sizes among sizes[]. States are empty when the program runs.
std::string sized_axes(const Program& p) {
  std::vector<std::string> list;
  const auto row = [&](size_t input, int axis, int64_t size, int64_t factor) {
    list.push_back("  {" + to_text(port_number(p.inputs, input)) + ", " + to_text(int64_t(axis)) + ", " +
                   to_text(size) + ", " + to_text(factor) + "}");
  };
  for (size_t i = 0; i < p.inputs.size(); i++) {
    if (p.inputs[i].is_kept()) continue;
    for (const IoSize& z : p.inputs[i].sizes) {
      const size_t before = list.size();
      for (const SizeSum::Term& t : z.sum.terms)
        if (!p.inputs[t.input].is_kept()) row(i, z.axis, size_number(p, t.input), t.factor);
      if (z.sum.addend != 0 || list.size() == before) row(i, z.axis, -1, z.sum.addend);
    }
  }
  return list.empty() ? "" : "\nstatic const tc_sized_axis sized_axes[] = {\n" + join(list, ",\n") + "\n};\n";
}

std::string size_rows(const Program& p) {
  std::vector<std::string> list;
  for (const IoTensor& t : p.inputs)
    if (t.is_size && !t.is_kept())
      list.push_back("  {" + c_string(t.name.raw()) + ", " + to_text(t.least) + ", " + to_text(t.most) + ", " +
                     to_text(is_open(t.most) ? std::max<int64_t>(t.least, 1) : t.most) + "}");
  return list.empty() ? "" : "static const tc_size sizes[] = {\n" + join(list, ",\n") + "\n};\n";
}

std::string arguments(const std::string& object, const std::string& array, const std::vector<IoTensor>& tensors,
                      const std::vector<std::string>& names, bool constant) {
  std::vector<std::string> list;
  int64_t sizes = 0;
  for (size_t i = 0; i < tensors.size(); i++) {
    if (tensors[i].is_kept()) continue;
    if (tensors[i].is_size) {
      list.push_back("  " + object + "." + names[i] + " = sizes_[" + to_text(sizes++) + "];");
      continue;
    }
    if (tensors[i].is_count) {
      list.push_back("  " + object + "." + names[i] + " = &" + names[i] + ";");
      continue;
    }
    list.push_back("  " + object + "." + names[i] + " = (" + (constant ? "const " : "") +
                   std::string(info(tensors[i].dtype).c_type) + " *)" + array + "[" + to_text(port_number(tensors, i)) +
                   "];");
  }
  if (list.empty()) list.push_back("  (void)" + array + ";\n  " + object + ".nothing = 0;");
  return join(list, "\n");
}

// Outputs that are tensors; the counts of others stand behind them.
int64_t tensor_outputs(const Program& p) { return port_number(p.outputs, p.outputs.size()); }

// "  int64_t n = 0;\n" for every count.
std::string count_variables(const Program& p, const ProgramNames& n) {
  std::string s;
  for (size_t i = 0; i < p.outputs.size(); i++)
    if (p.outputs[i].is_count) s += "  int64_t " + n.outputs[i] + " = 0;\n";
  return s;
}

// The call, and what it counted as sizes of the outputs.
std::string run_call(const Program& p, const ProgramNames& n) {
  const std::string call = n.lower + "_run((const " + n.lower + " *)instance, &i, &o)";
  std::string sizes;
  for (size_t k = 0; k < p.outputs.size(); k++)
    for (const IoSize& z : p.outputs[k].sizes)
      if (!p.outputs[k].is_kept())
        sizes += "  out_dims[" + to_text(port_number(p.outputs, k)) + "][" + to_text(int64_t(z.axis)) +
                 "] = " + (z.of_inputs() ? size_text(p, n, z.sum, "i.") : n.outputs[size_t(z.count)]) + ";\n";
  if (sizes.empty()) return "  return (int)" + call + ";";
  return "  status = (int)" + call + ";\n" + sizes + "  return status;";
}

// The names of NAME_cpu, in its order. A processor is asked for by its own name, which has '-' where symbols have '_'.
std::string cpu_names(const std::vector<Variant>& variants) {
  if (variants.empty()) return "";
  std::string s = "static const char *const cpus[] = {\"best\", \"baseline\"";
  for (const Variant& v : variants) {
    std::string word = v.name;
    std::replace(word.begin(), word.end(), '_', '-');
    s += ", \"" + word + "\"";
  }
  return s + "};\n\n";
}

/// The sizes that have no upper bound, as NAME_sizes.
std::string capacity(const Program& p, const ProgramNames& n) {
  std::string s;
  for (const size_t k : open_sizes(p))
    s += "  room." + n.inputs[k] + " = sizes_[" + to_text(size_number(p, k)) + "];\n";
  return s;
}

/// What is known of the outputs' sizes before a run. An output that has a computed size, too, needs room for the largest of its sizes.
std::string shape_function(const Program& p) {
  if (open_sizes(p).empty()) return "";
  std::string s;
  for (size_t k = 0; k < p.outputs.size(); k++) {
    const IoTensor& t = p.outputs[k];
    const bool counted = std::any_of(t.sizes.begin(), t.sizes.end(), [](const IoSize& z) { return !z.of_inputs(); });
    for (const IoSize& z : t.sizes)
      if (!t.is_kept() && z.of_inputs() && (!counted || is_open(t.dims[size_t(z.axis)])))
        s += "  out_dims[" + to_text(port_number(p.outputs, k)) + "][" + to_text(int64_t(z.axis)) +
             "] = " + size_text(z.sum, [&](size_t i) { return "sizes_[" + to_text(size_number(p, i)) + "]"; }) + ";\n";
  }
  return "static void shape_outputs(const int64_t *sizes_, int64_t *const *out_dims)\n{\n  (void)sizes_, "
         "(void)out_dims;\n" +
         s + "}\n\n";
}

std::string init_call(const Program& p, const ProgramNames& n, bool chooses) {
  const bool grows = !open_sizes(p).empty();
  const std::string &x = n.lower,
                    operands = "((" + x + " *)instance, " + (grows ? "&room, " : "") + "weights, bytes, NULL, 0";
  return (chooses ? x + "_init_cpu" + operands + ", (" + x + "_cpu)cpu);"
                  : x + "_init" + operands + ");\n  (void)cpu;") +
         (grows ? "" : "\n  (void)sizes_;");
}

}  // namespace

std::string main_source(const Program& p, const ProgramNames& n, const std::vector<Variant>& variants, bool threads) {
  const std::string counts = count_variables(p, n), axes = sized_axes(p);
  const int64_t sizes = size_number(p, p.inputs.size());
  const std::string run = run_call(p, n);
  const bool checks_lanes = p.lanes > 0 && variants.empty();
  return fill(
      support_text("main.c.in"),
      {{"name", n.lower},
       {"NAME", n.upper},
       {"weights_file", p.external_weights ? "\"" + n.lower + "_weights.bin\"" : "NULL"},
       {"map",
        p.external_weights ? fill(support_text("map_weights.c.in"), {{"name", n.lower}, {"NAME", n.upper}}) : ""},
       {"map_name", p.external_weights ? "map_weights" : "NULL"},
       {"unmap_name", p.external_weights ? n.lower + "_unmap_weights" : "NULL"},
       {"opened", p.external_weights ? "weights" : "weights != NULL ? weights : " + n.lower + "_weights()"},
       {"threads", threads ? "#include \"tc_parallel.h\"\n" : ""},
       {"includes", checks_lanes ? "#include \"tc_simd.h\"\n" : ""},
       {"dims", dims_tables("input", p.inputs) + dims_tables("output", p.outputs)},
       {"inputs", rows("input", p.inputs)},
       {"outputs", rows("output", p.outputs)},
       {"input_args", arguments("i", "in", p.inputs, n.inputs, true)},
       {"output_args", arguments("o", "out", p.outputs, n.outputs, false)},
       {"sizes", size_rows(p) + axes},
       {"size_list", sizes > 0 ? "sizes" : "NULL"},
       {"n_sizes", to_text(sizes)},
       {"axis_list", axes.empty() ? "NULL" : "sized_axes"},
       {"n_axes", axes.empty() ? "0" : "(int)(sizeof sized_axes / sizeof *sized_axes)"},
       {"reset", keeps_states(p) ? "static void reset_model(void *instance) { " + n.lower + "_reset((" + n.lower +
                                       " *)instance); }\n\n"
                                 : ""},
       {"reset_name", keeps_states(p) ? "reset_model" : "NULL"},
       {"n_inputs", to_text(port_number(p.inputs, p.inputs.size()))},
       {"n_outputs", to_text(tensor_outputs(p))},
       {"counts", counts + (run.find("status =") != std::string::npos ? "  int status;\n" : "")},
       {"run", run},
       {"cpus", cpu_names(variants)},
       {"room", open_sizes(p).empty() ? "" : "  " + n.lower + "_sizes room;\n"},
       {"status", open_sizes(p).empty() ? "const " + n.lower + "_status s = "
                                        : n.lower + "_status s;\n" + capacity(p, n) + "  s = "},
       {"init", init_call(p, n, !variants.empty())},
       {"shape", shape_function(p)},
       {"shape_name", open_sizes(p).empty() ? "NULL" : "shape_outputs"},
       {"cpu_list", variants.empty() ? "NULL" : "cpus"},
       {"n_cpus", to_text(int64_t(variants.empty() ? 0 : variants.size() + 2))},
       {"lanes", to_text(int64_t(checks_lanes ? p.lanes : 0))},
       {"built_lanes", checks_lanes ? "TC_VL" : "0"}});
}

namespace {

// f(x) as a step. No macro is replaced inside of itself.
std::string traced(const std::string& f, TracedCalls calls) {
  const bool variants = calls == TracedCalls::Variants;
  return (variants ? "#undef " + f + "\n" : "") + "#define " + f + "(...) TC_TRACE(\"" + f +
         "(\" #__VA_ARGS__ \")\", " + (variants ? "TC_OF_VARIANT(" + f + ")" : f) + "(__VA_ARGS__))\n";
}

// Where there is one, NAME_variants.h says it.
constexpr std::string_view kOfVariant = "#ifndef TC_VARIANT\n#  define TC_OF_VARIANT(f) f\n#endif\n";

}  // namespace

std::string profile_header(const Program& p, const ProgramNames& n, TracedCalls calls) {
  const bool traces_calls = calls != TracedCalls::None, variants = calls == TracedCalls::Variants;
  std::vector<std::string> list, steps;
  for (const Kernel& k : p.kernels) {
    list.push_back("  {" + c_string(k.name) + ", " + to_text(k.work.macs) + ", " + to_text(k.work.bytes) + ", " +
                   to_text(k.work.floor_ns) + ", " + to_text(k.chunks) + "}");
    steps.push_back(traced(n.lower + "_" + k.name, calls));
  }
  std::sort(list.begin(), list.end());
  std::sort(steps.begin(), steps.end());
  if (list.empty()) list.push_back("  {\"\", 0, 0, 0, 1}");
  std::string s = std::string(kLicenseLine) + "\n/* For what is compiled with TC_PROFILE. */\n";
  if (traces_calls)
    s += "#ifndef TC_PROFILE_H\n/* " + n.lower + (variants ? "_graph" : "") +
         ".c: calls of kernels, and copies, are steps. No macro is replaced inside of itself. */\n#include "
         "\"tc_trace.h\"\n" +
         std::string(variants ? kOfVariant : "") + join(steps, "") +
         "#undef memcpy\n#define memcpy(...) TC_TRACE(\"memcpy(\" #__VA_ARGS__ \")\", memcpy(__VA_ARGS__))\n#else\n";
  const std::string who = calls == TracedCalls::None ? "a card of " + p.cpu : "one thread";
  s += "/* main.c: the work of one call: multiply-accumulates, bytes of operands, nanoseconds that " + who +
       " takes at least\n"
       " * (0: not known), and on how many threads it can run. By name. */\nstatic const tc_work " +
       n.lower + "_work[] = {\n" + join(list, ",\n") + "\n};\n";
  return s + (traces_calls ? "#endif\n" : "");
}

}  // namespace tc
