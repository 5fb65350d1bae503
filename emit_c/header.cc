#include "emit_c/header.h"

#include <algorithm>

#include "emit_c/operands.h"
#include "emit_c/strings.h"
#include "ir/open_size.h"
#include "passes/program/plan_open_sizes.h"

namespace tc {
namespace {

// "[*count <= 20][3]" where the size depends on data, "[batch][3]" where the caller chooses it.
std::string io_shape(const IoTensor& t, const ProgramNames& n) {
  if (t.is_count) return "a size, see above";
  if (t.is_size && is_open(t.most)) return "a size, from " + to_text(t.least) + " to what init is told";
  if (t.is_size) return "a size, from " + to_text(t.least) + " to " + to_text(t.most);
  std::vector<std::string> sizes;
  for (int64_t d : t.dims) sizes.push_back(to_text(d));
  for (const IoSize& z : t.sizes) {
    std::string& size = sizes[size_t(z.axis)];
    size = z.of_inputs() ? size_text(z.sum, [&](size_t k) { return n.inputs[k]; })
                         : "*" + n.outputs[size_t(z.count)] + " <= " + size;
  }
  return t.sizes.empty() ? shape_text(t.dims) : "[" + join(sizes, "][") + "]";
}

// "what the last n elements have appended"; of states that grow by more than one at once, how many elements each loses.
std::string dropped_text(const Program& p, const ProgramNames& n) {
  std::vector<std::string> list;
  bool multiples = false;
  for (const auto& [k, times] : growths(p)) {
    list.push_back(n.inputs[k] + " by " + (times == 1 ? "" : to_text(times) + " * ") + "n");
    multiples |= times != 1;
  }
  return multiples ? "what has been appended last: lessens " + join(list, ", ")
                   : "what the last n elements have appended";
}

// What the instance keeps between runs.
std::string state_functions(const Program& p, const ProgramNames& n) {
  if (!keeps_states(p)) return "";
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  std::string s =
      "/* States live in the workspace: what a run writes, the next one reads. Behind init they are empty, behind a "
      "run that failed while it\n"
      "   computed they mean nothing; reset empties them. */\n";
  s += "void " + x + "_reset(" + x + " *" + m + ");\n";
  if (!growths(p).empty())
    s += "/* Drops " + dropped_text(p, n) + "; " + u + "_E_ARG if there are fewer. */\n" + x + "_status " + x +
         "_rewind(" + x + " *" + m + ", int64_t n);\n";
  s += "/* State k, to be saved and restored, as it lies in the workspace: element [i][j]... at data + i * strides[0] "
       "+ j * strides[1]...,\n"
       "   in bytes. 0 if there is no state k. */\n";
  s += "typedef struct {\n  const char *name;\n  void *data;\n  int rank;\n  int64_t sizes[" + to_text(state_rank(p)) +
       "], strides[" + to_text(state_rank(p)) + "];\n} " + x + "_state_view;\nint " + x + "_state(" + x + " *" + m +
       ", int k, " + x + "_state_view *view);\n";
  return s;
}

std::string guard_open(const std::string& macro) { return "#ifndef " + macro + "\n#define " + macro + "\n"; }
constexpr std::string_view kExternOpen = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
constexpr std::string_view kExternClose = "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";

std::string pad(std::string s, size_t width) {
  if (s.size() < width) s.append(width - s.size(), ' ');
  return s;
}

// "  const float *image;  /* "image"  [1][1][8][8] */" for every tensor, aligned.
std::string fields(const std::vector<IoTensor>& tensors, const std::vector<std::string>& names, bool constant,
                   const ProgramNames& n) {
  size_t width = 0;
  std::vector<std::string> declarations;
  for (size_t i = 0; i < tensors.size(); i++) {
    const std::string type(info(tensors[i].dtype).c_type);
    declarations.push_back(tensors[i].is_size ? type + " " + names[i] + ";"
                                              : (constant ? "const " : "") + type + " *" + names[i] + ";");
    if (!tensors[i].is_kept()) width = std::max(width, declarations.back().size());
  }
  std::string s;
  for (size_t i = 0; i < tensors.size(); i++) {
    const IoTensor& t = tensors[i];
    if (t.is_kept()) continue;
    const bool plain = t.dtype == DType::F32 || is_int(t.dtype) || t.dtype == DType::F64;
    s += "  " + pad(declarations[i], width) + "  /* \"" + comment_text(t.name) + "\"  " + io_shape(t, n) +
         (plain ? "" : "  " + std::string(info(t.dtype).onnx_name)) + " */\n";
  }
  return s.empty() ? "  int nothing;  /* C has no empty struct */\n" : s;
}

// What a size that the caller chooses, and one that run finds, mean for the caller.
std::string counted_note(const Program& p, const ProgramNames& n) {
  const bool chosen = !size_tests(p, n).empty();
  const bool found = std::any_of(p.outputs.begin(), p.outputs.end(), [](const IoTensor& t) { return t.is_count; });
  std::string s;
  if (chosen)
    s += "/* Elements lie densely in the sizes that the inputs name. A run takes time by these sizes, memory by the "
         "largest ones" +
         std::string(open_sizes(p).empty() ? "" : ", those of init") + ". */\n";
  if (chosen && found)
    s += "/* Sizes of outputs that no input names: run writes them, and the elements densely at the start of the "
         "output; give it room for\n   its largest sizes, all of them. */\n";
  else if (found)
    s += "/* Sizes that depend on data: run counts, and writes the elements that there are densely at the start of "
         "the output; give it room\n   for the largest size. */\n";
  return s;
}

// Sizes that have no upper bound: the instance is made for some.
std::string sizes_type(const Program& p, const ProgramNames& n) {
  const std::string& x = n.lower;
  std::string s =
      "/* How large the sizes get that have no upper bound: what an instance has memory for. */\ntypedef struct {\n";
  for (const size_t k : open_sizes(p))
    s += "  int64_t " + n.inputs[k] + ";  /* \"" + comment_text(p.inputs[k].name) + "\" */\n";
  return s + "} " + x +
         "_sizes;\n\n/* Bytes of a workspace for them; 0 if one of them is too small, or no memory holds so much. "
         "*/\nsize_t " +
         x + "_workspace_bytes(const " + x + "_sizes *sizes);\n\n";
}

std::string map_declarations(const ProgramNames& n) {
  const std::string& x = n.lower;
  return "/* The weights are no part of the program, but the file " + x +
         "_weights.bin. This puts it into memory, mapped where there is mmap, for\n   any number of instances. " +
         n.upper + "_E_FILE: it cannot be read; " + n.upper +
         "_E_WEIGHTS: it has another size, or is of another model. */\n" + x + "_status " + x +
         "_map_weights(const char *path, const void **weights);\nvoid " + x +
         "_unmap_weights(const void *weights);  /* when no instance uses them any more */\n\n";
}

std::string refused_states(const Program& p) {
  std::vector<std::string> why;
  if (counts_states(p)) why.push_back("no room in the states for what this run appends");
  if (!sizes_of_states(p).empty()) why.push_back("a size that is not the one of the states, which reset changes");
  return join(why, ", or ");
}

std::string status_type(const Program& p, const ProgramNames& n, bool chooses, bool tests_cpu) {
  const std::string &x = n.lower, &u = n.upper;
  const bool made = p.strings_bytes > 0;
  return "typedef enum {\n  " + u + "_OK = 0,\n  " + u + "_E_ARG,     /* a null pointer, " +
         (size_tests(p, n).empty() ? ""
          : open_sizes(p).empty()  ? "a size out of its bounds, "
                                   : "a size out of its bounds or beyond those of init, ") +
         "or a workspace that is too small */\n  " + u + "_E_ALIGN,   /* workspace or weights not aligned to " + u +
         "_ALIGN */\n  " + u + "_E_WEIGHTS, /* weights of another model, layout or byte order */\n  " + u +
         "_E_RANGE,   /* an index in the input data is out of range; outputs are set, but mean nothing */\n  " + u +
         "_E_MEMORY,  /* init could not allocate a workspace */\n  " + u +
         "_E_DEVICE,  /* CUDA build only: a call to the device failed */\n  " + u + "_E_TRIPS" +
         (made || tests_cpu || tests_states(p) || p.external_weights ? ",  " : "   ") +
         " /* a loop ran more or fewer times than the shapes of its results say; outputs mean nothing */\n" +
         (tests_states(p) ? "  " + u + "_E_STATE" + (made || tests_cpu || p.external_weights ? ",  " : "   ") + " /* " +
                                refused_states(p) + "; they are as before */\n"
                          : "") +
         (p.external_weights ? "  " + u + "_E_FILE" + (made || tests_cpu ? ",   " : "    ") +
                                   " /* map_weights: the file cannot be read */\n"
                             : "") +
         (tests_cpu ? "  " + u + "_E_CPU" + (made ? ",    " : "     ") +
                          (!chooses             ? " /* init"
                           : p.variants.empty() ? " /* init_cpu"
                                                : " /* init, init_cpu") +
                          ": this processor, or this build, does not have these kernels */\n"
                    : "") +
         (made ? "  " + u + "_E_STRINGS  /* the strings of this run need more room; outputs mean nothing */\n" : "") +
         "} " + x + "_status;\n\n";
}

}  // namespace

std::string api_header(const Program& p, const ProgramNames& n, const std::vector<Variant>& variants) {
  const std::string &x = n.lower, &u = n.upper;
  std::string s = std::string(kLicenseLine) + "\n";
  if (!p.title.empty()) s += "/* " + x + ": \"" + comment_text(p.title) + "\" */\n";
  s += guard_open(u + "_H") + "#include <stddef.h>\n#include <stdint.h>\n" + std::string(kExternOpen);
  if (has_strings(p))
    s += "/* A string: a view of bytes that the caller, the model or the workspace holds. */\n" + string_type() + "\n";
  const bool grows = !open_sizes(p).empty();
  if (!grows)
    s += "#define " + u + "_WORKSPACE_BYTES ((size_t)" + to_text(p.workspace_bytes) +
         ")  /* of one instance, aligned to " + u + "_ALIGN */\n";
  if (p.strings_bytes > 0)
    s += "#define " + u + "_STRING_BYTES    ((size_t)" + to_text(p.strings_bytes) +
         ")  /* of it, for the strings that a run makes */\n";
  s += "#define " + u + "_WEIGHTS_BYTES   ((size_t)" + to_text(p.weights_bytes) + ")\n";
  s += "#define " + u + "_ALIGN           64\n\n";
  const bool chooses = !variants.empty();
  s += status_type(p, n, chooses, chooses || multiplies_tiles(p));
  s += "typedef struct {\n" + fields(p.inputs, n.inputs, true, n) + "} " + x + "_inputs;\n\n";
  s += "typedef struct {\n" + fields(p.outputs, n.outputs, false, n) + "} " + x + "_outputs;\n\n";
  if (grows) s += sizes_type(p, n);
  if (chooses) s += variant_type(p, variants, n);
  s += "/* No hidden state: any number of instances, each used by one thread at a time. Weights may be shared. */\n"
       "typedef struct " +
       (chooses ? x + " " : "") +
       "{\n  const unsigned char *weights;\n  unsigned char *workspace;\n  void *allocated;  /* what free gives back "
       "*/\n"
       "  void *device;     /* what the CUDA build of the same model holds */\n" +
       (grows ? "  " + x + "_sizes sizes;  /* that init was told */\n  size_t room;      /* the largest of them */\n"
              : "") +
       (chooses ? "  " + pad(x + "_cpu cpu;", 17) + " /* which kernels init chose */\n  " + x + "_status (*graph)" +
                      run_parameters(n, "struct " + x) + ";\n"
                : "") +
       "} " + x + ";\n\n";
  if (p.external_weights) s += map_declarations(n);
  s += std::string(p.external_weights ? "/* weights: mapped, or memory of yours with the bytes of the file. "
                                      : "/* weights NULL: those linked in. ") +
       "workspace NULL: init allocates one, free gives it back. */\n";
  s += x + "_status " + x + "_init(" + init_parameters(p, n) + ");\n";
  if (chooses)
    s += "/* The same, with kernels that you choose. */\n" + x + "_status " + x + "_init_cpu(" + init_parameters(p, n) +
         ", " + x + "_cpu cpu);\n";
  s += counted_note(p, n) +
       "/* Outputs are written completely; inputs and outputs must not overlap. Allocates nothing. */\n";
  s += x + "_status " + x + "_run" + run_parameters(n) + ";\n";
  s += state_functions(p, n);
  s += "void " + x + "_free(" + x + " *" + n.self + ");\n";
  if (!p.external_weights)
    s += "const void *" + x + "_weights(void);                  /* the weights linked in with " + x + "_weights.S */\n";
  s += "int " + x + "_check_weights(const void *weights);     /* 1 if they fit, and their content hash is right */\n";
  s += "const char *" + x + "_strerror(" + x + "_status s);\n";
  return s + std::string(kExternClose);
}

std::string plan_header(const Program& p, const ProgramNames& n, const std::string& room) {
  return std::string(kLicenseLine) + "\n" + plan_text(p, n, room);
}

std::string plan_text(const Program& p, const ProgramNames& n, const std::string& room) {
  const bool has_parts = std::any_of(p.slots.begin(), p.slots.end(), [](const Slot& t) { return t.within >= 0; });
  std::string s = "/* Where the tensors live. Offsets count bytes; every tensor starts on " + to_text(p.align) +
                  (has_parts ? ", but for those inside of others" : "") + ". */\n" + guard_open(n.upper + "_PLAN_H") +
                  "\n";
  size_t width = 8;
  for (const std::string& x : n.slots) width = std::max(width, x.size());
  for (const std::string& x : n.weights) width = std::max(width, x.size());
  const bool grows = !open_sizes(p).empty();
  const auto bytes = [](int64_t b) { return open_text(b, "room"); };
  s += "/* workspace: " + bytes(p.workspace_bytes) + " bytes; tensors " + bytes(p.arena_bytes) + " (without reuse " +
       (p.naive_bytes == kUncounted ? "more than " : "") + bytes(p.naive_bytes) + ", largest live set " +
       bytes(p.lower_bound_bytes) + "), scratch of kernels " + to_text(p.scratch_bytes) +
       (grows ? ".\n   room: the largest of the sizes that init was told; [n] has so many elements at most" : "") +
       " */\n";
  for (size_t i = 0; i < p.slots.size(); i++) {
    const Slot& t = p.slots[i];
    s += "#define " + n.upper + "_AT_" + pad(n.slots[i], width) + " " + pad(memory_text(t.offset, room), 9) + " /* " +
         shape_text(t.dims) + " " + std::string(info(t.dtype).name) +
         (t.within >= 0 ? ", inside of " + n.slots[size_t(t.alias_of)] : "") + " */\n";
  }
  s += "#define " + n.upper + "_AT_" + pad("SCRATCH", width) + " " + to_text(p.scratch_offset) + "\n";
  if (p.strings_bytes > 0)
    s += "#define " + n.upper + "_AT_" + pad("MADE", width) + " " + memory_text(p.strings_offset, room) + "\n";
  s += "#define " + n.upper + "_AT_" + pad("STATUS", width) + " " + memory_text(p.workspace_bytes - 64, room) +
       "\n\n/* weights: a header of 64 bytes, then */\n";
  for (size_t i = 0; i < p.weights.size(); i++) {
    const Weight& w = p.weights[i];
    if (w.data->dtype == DType::String) continue;  // a table of the text
    s += "#define " + n.upper + "_W_" + pad(n.weights[i], width + 1) + " " + pad(to_text(w.offset), 9) + " /* " +
         shape_text(w.data->dims) + " " + std::string(info(w.data->dtype).name) +
         (w.layout.empty() ? "" : "  " + w.layout) + " */\n";
  }
  return s + "\n#endif\n";
}

std::string kernels_header(const std::vector<KernelText>& kernels, const ProgramNames& n, bool has_variants) {
  SourceWriter out;
  bool strings = false;
  for (const KernelText& k : kernels) {
    out.line(k.prototype + ";");
    strings = strings || k.needs.strings;
  }
  return std::string(kLicenseLine) + "\n" + guard_open(n.upper + "_KERNELS_H") + "#include \"tc_simd.h\"\n" +
         (strings ? "#include \"tc_string.h\"\n" : "") +
         (has_variants ? "#ifdef TC_VARIANT  /* compiled once more, for another processor */\n#  include \"" + n.lower +
                             "_variants.h\"\n#endif\n"
                       : "") +
         std::string(kExternOpen) + out.text() + std::string(kExternClose);
}

}  // namespace tc
