#include "emit_c/readme.h"

#include <algorithm>

#include "emit_c/fill.h"
#include "emit_c/operands.h"
#include "ir/open_size.h"
#include "templates/text.h"

namespace tc {
namespace {

// Model text as Markdown code: printable ASCII without the one character that ends it.
std::string code(const ModelText& t) {
  std::string s = comment_text(t);
  for (char& c : s)
    if (c == '`') c = '\'';
  return "`" + s + "`";
}

std::string counted(const IoTensor& t, const Program& p, const ProgramNames& n) {
  if (t.is_count) return ", a size that depends on data";
  if (t.is_size)
    return ", a size that you choose, from " + to_text(t.least) + " to " +
           (is_open(t.most) ? "what init is told" : to_text(t.most));
  // What the instance counts is no field.
  const auto name = [&](size_t k) { return (p.inputs[k].is_kept() ? "" : "in.") + n.inputs[k]; };
  std::string s;
  for (const IoSize& z : t.sizes)
    s += "; along axis " + to_text(int64_t(z.axis)) +
         (is_open(t.dims[size_t(z.axis)]) ? " `" : " this is the most, and `") +
         (z.of_inputs() ? size_text(z.sum, name) : "*" + n.outputs[size_t(z.count)]) + "` says how many there are";
  return s;
}

// 5x(n + 1)x8
std::string shape_words(const Dims& dims) {
  if (std::none_of(dims.begin(), dims.end(), is_open)) return to_text(to_shape(dims));
  std::string s;
  for (const int64_t n : dims) {
    const std::string axis = is_open(n) ? axis_text(n) : to_text(n);
    s += (s.empty() ? "" : "x") + (axis.find(' ') == std::string::npos ? axis : "(" + axis + ")");
  }
  return s;
}

std::string list(const std::string& kind, const std::vector<IoTensor>& tensors, const std::vector<std::string>& names,
                 const Program& p, const ProgramNames& n) {
  std::string s;
  for (size_t i = 0; i < tensors.size(); i++)
    if (!tensors[i].is_kept())
      s += "- " + kind + " " + code(tensors[i].name) + ": " + std::string(info(tensors[i].dtype).onnx_name) + " " +
           shape_words(tensors[i].dims) + ", field `" + names[i] + "`" + counted(tensors[i], p, n) + "\n";
  return s;
}

std::string states(const Program& p) {
  std::string s;
  for (const IoTensor& t : p.inputs)
    if (t.is_kept())
      s += "- " + std::string(t.is_size ? "size " : "state ") + code(t.name) +
           (t.is_size ? ", counted by the instance, up to " + to_text(t.most) : ", kept by the instance") + "\n";
  return s;
}

std::string assignments(const std::string& object, const std::vector<IoTensor>& tensors,
                        const std::vector<std::string>& names) {
  std::string s;
  for (size_t k = 0; k < tensors.size(); k++)
    if (!tensors[k].is_kept()) s += object + "." + names[k] + " = my_" + names[k] + ";\n";
  return s;
}

// CUDA: what is captured when.
std::string graphs(const Program& p) {
  const bool chosen =
      std::any_of(p.inputs.begin(), p.inputs.end(), [](const IoTensor& t) { return t.is_size && !t.is_kept(); });
  return chosen ? ". `run`\ncaptures a CUDA graph of the sizes that it meets, and replays it when they come again."
                : " and\ncaptures the run as a CUDA graph; `run` replays it.";
}

constexpr std::string_view kLinkedInit =
    "{{name}} m;\n{{capacity}}if ({{name}}_init(&m, {{sizes}}NULL, 0, NULL, 0) != {{NAME}}_OK) return 1;  /* linked "
    "weights; a workspace of "
    "its own "
    "*/";
constexpr std::string_view kLinkedFree = "{{name}}_free(&m);";
constexpr std::string_view kExternalInit =
    "const void *weights;\nif ({{name}}_map_weights(\"{{name}}_weights.bin\", &weights) != {{NAME}}_OK) return "
    "1;\n{{name}} m;\n"
    "{{capacity}}if ({{name}}_init(&m, {{sizes}}weights, {{NAME}}_WEIGHTS_BYTES, NULL, 0) != {{NAME}}_OK) return 1;  "
    "/* a workspace of its "
    "own */";
constexpr std::string_view kExternalFree = "{{name}}_free(&m);\n{{name}}_unmap_weights(weights);";
constexpr std::string_view kExternalNote =
    "The weights are no part of the program: keep `{{name}}_weights.bin` with it. `init` takes memory, mapped or "
    "yours, aligned to\n"
    "`{{NAME}}_ALIGN`, and refuses another model's. The program looks for the file beside itself; `--weights FILE` "
    "names another.\n\n";

std::string filled(std::string_view text, const Program& p, const ProgramNames& n, const std::string& note) {
  std::string run = assignments("in", p.inputs, n.inputs) + assignments("out", p.outputs, n.outputs);
  if (!run.empty()) run.pop_back();
  std::string tensors =
      list("input", p.inputs, n.inputs, p, n) + list("output", p.outputs, n.outputs, p, n) + states(p);
  if (!tensors.empty()) tensors.pop_back();
  std::vector<std::string> room;
  for (const size_t k : open_sizes(p))
    room.push_back("." + n.inputs[k] + " = " + to_text(most_tried(p.inputs[k].least, p.inputs[k].most)));
  const std::vector<Hole> names{{"name", n.lower},
                                {"NAME", n.upper},
                                {"capacity", room.empty() ? ""
                                                          : "const " + n.lower + "_sizes sizes = {" + join(room, ", ") +
                                                                "};  /* the largest of your runs */\n"},
                                {"sizes", room.empty() ? "" : "&sizes, "}};
  return fill(text, {{"name", n.lower},
                     {"NAME", n.upper},
                     {"title", p.title.empty() ? "An ONNX model" : "The ONNX model " + code(p.title)},
                     {"tensors", tensors},
                     {"run", run},
                     {"graphs", graphs(p)},
                     {"init", fill(p.external_weights ? kExternalInit : kLinkedInit, names)},
                     {"free", fill(p.external_weights ? kExternalFree : kLinkedFree, names)},
                     {"weights_note", p.external_weights ? fill(kExternalNote, names) : ""},
                     {"flags_note", note}});
}

// Of a single file for a list of processors.
std::string by_vectors_note(const Program& p) {
  return "It holds schedules for " + processors_text(p) +
         "; the vectors that the compiler's flags give choose\namong them. `TC_ARCH` of the build files passes such "
         "flags.";
}

// Of a list of processors. `names`: the lines of the variants.
std::string list_note(const Program& p, const ProgramNames& n, const std::string& names) {
  std::string s = "It has schedules for " + processors_text(p) +
                  ", over the same packed weights. Each\nprocessor's graph and kernels are compiled for it, where the "
                  "compiler knows it:\n\n" +
                  names + "\n`" + n.lower + "_init` takes the best that the processor runs, `" + n.lower +
                  "_init_cpu` and the program's `--cpu`\nthe one that you name. ";
  s += has_plain_schedule(p) ? "The schedule for " + p.variants[0].cpu + ", `baseline`, runs on every other processor. "
                             : "A processor that runs none of them gets `" + n.upper + "_E_CPU`. ";
  return s +
         "`TC_VARIANTS=`,\n`TC_ARCH=-march=native` and a plain `cc *.c kernels/*.c` make one build, whose vectors "
         "choose the schedule.";
}

}  // namespace

std::string package_readme(const Program& p, const ProgramNames& n, const std::vector<Variant>& variants) {
  const std::string note =
      p.march.empty() ? "It was scheduled for any processor; -march flags of yours may still widen its vectors."
                      : "It was scheduled for `" + p.cpu + "` and is compiled with `-march=" + p.march + "`.";
  if (variants.empty())
    return filled(support_text("README.md.in"), p, n, p.variants.empty() ? note : by_vectors_note(p));
  std::string names;
  for (const Variant& v : variants) names += "- `" + v.name + "`: `" + v.flags + "`\n";
  if (!p.variants.empty()) return filled(support_text("README.md.in"), p, n, list_note(p, n, names));
  return filled(
      support_text("README.md.in"), p, n,
      "The graph and its\nkernels are compiled for any processor and, where the compiler knows them, once more for "
      "others:\n\n" +
          names + "\n`" + n.lower + "_init` takes the best that the processor runs, `" + n.lower +
          "_init_cpu` and the program's `--cpu`\nthe one that you name. `TC_VARIANTS=` leaves them out, "
          "`TC_ARCH=-march=native` makes one for this machine. A plain\n`cc *.c kernels/*.c` is right, too, and "
          "for any processor.");
}

// Products of warp groups are of one architecture, and others take its text slowly, or have too little shared memory for it.
CudaArchitectures cuda_architectures(const Program& p) {
  if (!p.cpu.ends_with('a')) return {"75-real 80-real 86-real 89-real 90-real 100-real 120", "75 to 120 and PTX"};
  const std::string number = p.cpu.substr(p.cpu.find('_') + 1);
  return {number + "-real", number};
}

std::string cuda_package_readme(const Program& p, const ProgramNames& n) {
  const std::string note = "the default is " + cuda_architectures(p).words + ". It was scheduled for `" + p.cpu + "`.";
  return filled(support_text("README_cuda.md.in"), p, n, note);
}

}  // namespace tc
