#include "emit_c/life_cycle.h"

#include <algorithm>

#include "emit_c/operands.h"
#include "emit_c/states.h"
#include "emit_c/weights.h"
#include "ir/open_size.h"

namespace tc {

std::vector<std::string> argument_tests(const Program& p, const ProgramNames& n) {
  const std::string refuse = ") return " + n.upper + "_E_ARG;", sizes = size_tests(p, n);
  std::vector<std::string> lines = {"if (!" + n.self + " || !in || !out" + null_tests(p, n) + refuse};
  if (!sizes.empty()) lines.push_back("if (" + sizes + refuse);
  return lines;
}

std::string strerror_rows(const Program& p, const ProgramNames& n, bool tests_cpu) {
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
  if (p.external_weights) s += "    case " + u + "_E_FILE: return \"the file of weights cannot be read\";\n";
  if (tests_states(p))
    s += "    case " + u + "_E_STATE: return \"" +
         (sizes_of_states(p).empty() ? "no room in the states"
          : counts_states(p)         ? "no room in the states, or a size that is not theirs"
                                     : "a size that is not the one of the states") +
         "\";\n";
  if (tests_cpu)
    s += "    case " + u + "_E_CPU: return \"this processor, or this build, does not have these kernels\";\n";
  if (p.strings_bytes > 0) s += "    case " + u + "_E_STRINGS: return \"no room for the strings of this run\";\n";
  return s;
}

namespace {

StateMemory in_workspace(const Program& p, const ProgramNames& n) {
  const auto at = [&p, &n](size_t k) {
    return n.self + "->workspace + " + to_text(p.slots[size_t(p.inputs[k].state)].offset);
  };
  return {.data = at, .count = [at](size_t k) { return "*(int64_t *)(void *)(" + at(k) + ")"; }};
}

// Of which no run has told yet.
std::string forgotten_sizes(const Program& p, const ProgramNames& n) {
  std::string s;
  for (const size_t k : sizes_of_states(p))
    s += "  memset(" + n.self + "->workspace + " + to_text(p.slots[size_t(p.inputs[k].same)].offset) +
         ", 0, sizeof(int64_t));\n";
  return s;
}

std::string cleared(const Program& p, const ProgramNames& n, size_t input) {
  return "  memset(" + in_workspace(p, n).data(input) + ", 0, " +
         to_text(p.slots[size_t(p.inputs[input].state)].bytes) + ");\n";
}

std::string state_functions(const Program& p, const ProgramNames& n) {
  if (!keeps_states(p)) return "";
  const std::string &x = n.lower, &m = n.self;
  std::string clear;
  for (const size_t k : emptied_by_zeros(p)) clear += cleared(p, n, k);
  clear += forgotten_sizes(p, n);
  return "void " + x + "_reset(" + x + " *" + m + ")\n{\n" + clear + "}\n\n" +
         rewind_function(p, n, in_workspace(p, n), "", "!" + m) + state_function(p, n, in_workspace(p, n));
}

}  // namespace

std::string workspace_functions(const Program& p, const ProgramNames& n) {
  const std::string& x = n.lower;
  const std::vector<size_t> open = open_sizes(p);
  if (open.empty()) return "";
  std::vector<std::string> bad, most;
  for (const size_t k : open) {
    const std::string size = "sizes->" + n.inputs[k];
    bad.push_back(size + " < " + to_text(p.inputs[k].least) + " || " + size + " > " + to_text(kMostRoom));
    most.push_back("  if (" + size + " > most) most = " + size + ";\n");
  }
  const OpenNumber bytes = open_number(p.workspace_bytes);
  std::string s =
      "/* The largest of the sizes, 1 at least; 0: one is out of its bounds. */\nstatic size_t room_for(const " + x +
      "_sizes *sizes)\n{\n  int64_t most = 1;\n  if (!sizes || " + join(bad, " || ") + ") return 0;\n" +
      join(most, "") + "  return (size_t)most;\n}\n\n";
  s += "size_t " + x + "_workspace_bytes(const " + x + "_sizes *sizes)\n{\n  const size_t room = room_for(sizes);\n" +
       (bytes.times == 0
            ? "  return room == 0 ? 0 : " + to_text(bytes.rest) + ";\n"
            : "  if (room == 0 || room > (SIZE_MAX / 2 - " + to_text(bytes.rest) + ") / " + to_text(bytes.times) +
                  ") return 0;\n  return " + open_text(p.workspace_bytes, "room") + ";\n") +
       "}\n\n";
  return s;
}

namespace {

std::string init_function(const Program& p, const ProgramNames& n, bool chooses) {
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  const bool grows = !open_sizes(p).empty();
  const std::string needed = grows ? "needed" : u + "_WORKSPACE_BYTES";
  std::string s = x + "_status " + x + (chooses ? "_init_cpu(" : "_init(") + init_parameters(p, n) +
                  (chooses ? ", " + x + "_cpu cpu" : "") + ")\n{\n";
  if (grows) s += "  const size_t needed = " + x + "_workspace_bytes(sizes);\n";
  s += "  if (!" + m + (grows ? " || needed == 0" : "") + (p.external_weights ? " || !weights" : "") +
       " || (workspace && workspace_bytes < " + needed + ")) return " + u + "_E_ARG;\n";
  if (!p.external_weights)
    s += "  if (!weights) {\n    weights = " + x + "_weights();\n    weights_bytes = " + u + "_WEIGHTS_BYTES;\n  }\n";
  s += "  if ((uintptr_t)weights % " + u + "_ALIGN != 0 || (uintptr_t)workspace % " + u + "_ALIGN != 0) return " + u +
       "_E_ALIGN;\n";
  s += "  if (!fits(weights, weights_bytes)) return " + u + "_E_WEIGHTS;\n";
  if (multiplies_tiles(p)) s += "#ifdef __AMX_INT8__\n  if (!tc_cpu_v4_amx()) return " + u + "_E_CPU;\n#endif\n";
  if (chooses) s += "  if (!choose(" + m + ", cpu)) return " + u + "_E_CPU;\n";
  s += "  " + m + "->weights = (const unsigned char *)weights;\n  " + m +
       "->workspace = (unsigned char *)workspace;\n  " + m + "->allocated = NULL;\n  " + m + "->device = NULL;\n";
  if (grows) s += "  " + m + "->sizes = *sizes;\n  " + m + "->room = room_for(sizes);\n";
  s += "  if (!workspace) {\n    " + m + "->allocated = malloc(" + needed + " + " + u + "_ALIGN);\n    if (!" + m +
       "->allocated) return " + u + "_E_MEMORY;\n";
  s += "    " + m + "->workspace = (unsigned char *)" + m + "->allocated + (" + u + "_ALIGN - (uintptr_t)" + m +
       "->allocated % " + u + "_ALIGN);\n  }\n";
  for (size_t k = 0; k < p.inputs.size(); k++)  // caches, too: what is behind their elements is multiplied by zero
    if (p.inputs[k].is_kept()) s += cleared(p, n, k);
  s += forgotten_sizes(p, n);
  s += "  return " + u + "_OK;\n}\n\n";
  if (chooses)
    s += x + "_status " + x + "_init(" + init_parameters(p, n) + ")\n{\n  return " + x + "_init_cpu(" + m +
         (grows ? ", sizes" : "") + ", weights, weights_bytes, workspace, workspace_bytes, " + u + "_CPU_BEST);\n}\n\n";
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
  s += map_functions(p, n) + workspace_functions(p, n) + init_function(p, n, !variants.empty()) + state_functions(p, n);
  if (!variants.empty()) s += run_function(p, n);
  s += "void " + x + "_free(" + x + " *" + m + ")\n{\n  if (!" + m + ") return;\n  free(" + m + "->allocated);\n  " +
       m + "->allocated = NULL;\n  " + m + "->workspace = NULL;\n}\n\n";
  s += "int " + x + "_check_weights(const void *weights)\n{\n";
  s += "  return weights && fits(weights, " + u + "_WEIGHTS_BYTES) && tc_weights_intact(weights);\n}\n\n";
  s += "const char *" + x + "_strerror(" + x + "_status s)\n{\n  switch (s) {\n";
  s += strerror_rows(p, n, !variants.empty() || multiplies_tiles(p));
  return s + "  }\n  return \"unknown status\";\n}\n";
}

std::string api_source(const Program& p, const ProgramNames& n, uint64_t layout_id,
                       const std::vector<Variant>& variants) {
  return std::string(kLicenseLine) + "\n" + map_include(p) + "#include \"" +
         (asks_maker(variants) ? "tc_cpu_maker.h" : "tc_cpu.h") + "\"\n#include \"tc_rt.h\"\n" +
         (p.variants.empty() ? "" : "#include \"tc_simd.h\"\n") + "#include \"" + n.lower +
         ".h\"\n#include <stdlib.h>\n" + (keeps_states(p) ? "#include <string.h>\n\n" : "\n") + linked_weights(p, n) +
         variant_choice(p, variants, n) + life_cycle(p, n, layout_id, variants);
}

}  // namespace tc
