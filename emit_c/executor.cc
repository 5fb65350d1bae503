#include "emit_c/executor.h"

#include "emit_c/operands.h"
#include "emit_c/source_writer.h"
#include "emit_c/strings.h"
#include "ir/identity.h"

namespace tc {
namespace {

class Executor {
 public:
  Executor(const Program& p, const ProgramNames& n) : p_(p), n_(n) {}

  std::string run_function() {
    std::vector<size_t> parts;  // where they begin
    for (size_t i = 0; i < p_.steps.size(); i++)
      if (p_.steps[i].begins_part) parts.push_back(i);
    const bool counted = counts_iterations(p_.steps);
    for (size_t k = 0; k < parts.size(); k++)
      part(k + 1, parts[k], k + 1 < parts.size() ? parts[k + 1] : p_.steps.size(), counted);
    out_.line("/* The graph, one kernel a line, in the order of the model. */");
    out_.line(n_.lower + "_status " + n_.lower + "_run(const " + n_.lower + " *" + n_.self + ", const " + n_.lower +
              "_inputs *in, const " + n_.lower + "_outputs *out)");
    out_.open();
    out_.line("if (!" + n_.self + " || !in || !out" + null_tests(p_, n_) + ") return " + n_.upper + "_E_ARG;");
    if (can_fail(p_)) out_.line("*STATUS = 0;");
    if (p_.strings_bytes > 0) {
      out_.line("MADE->next = (char *)(" + n_.self + "->workspace + " + n_.upper + "_AT_MADE + 64);");
      out_.line("MADE->end = MADE->next + " + n_.upper + "_STRING_BYTES;");
      out_.line("MADE->full = 0;");
    }
    out_.blank();
    for (size_t k = 0; k < parts.size(); k++) call_part(k + 1, counted);
    if (parts.empty())
      for (const Step& s : p_.steps) step(s);
    if (p_.strings_bytes > 0) out_.line("if (MADE->full) return " + n_.upper + "_E_STRINGS;");
    out_.line(can_fail(p_) ? "return *STATUS != 0 ? " + n_.upper + "_E_RANGE : " + n_.upper + "_OK;"
                           : "return " + n_.upper + "_OK;");
    out_.close();
    return out_.take();
  }

 private:
  // `counted`: a loop may find that it runs another number of times than it must.
  void call_part(size_t number, bool counted) {
    const std::string call = n_.lower + "_steps_" + to_text(int64_t(number)) + "(" + n_.self + ", in, out)";
    out_.line(counted ? "if (" + call + " != " + n_.upper + "_OK) return " + n_.upper + "_E_TRIPS;" : call + ";");
  }
  void part(size_t number, size_t from, size_t to, bool counted) {
    out_.line("static " + (counted ? n_.lower + "_status " : std::string("void ")) + n_.lower + "_steps_" +
              to_text(int64_t(number)) + "(const " + n_.lower + " *" + n_.self + ", const " + n_.lower +
              "_inputs *in, const " + n_.lower + "_outputs *out)");
    out_.open();
    out_.line("(void)" + n_.self + ", (void)in, (void)out;");
    for (size_t i = from; i < to; i++) step(p_.steps[i]);
    if (counted) out_.line("return " + n_.upper + "_OK;");
    out_.close();
    out_.blank();
  }

  std::string operand(const Operand& o) const { return operand_text(p_, n_, o, "->"); }

  void step(const Step& s) {
    std::visit([&](const auto& k) { print(k); }, s.kind);
  }
  void print(const Call& c) {
    print_origins(out_, c.origins, c.note);
    std::vector<std::string> args;
    for (const Operand& o : c.operands) args.push_back(operand(o));
    out_.line(n_.lower + "_" + p_.kernels[size_t(c.kernel)].name + "(" + join(args, ", ") + ");");
  }
  void print(const CopyStep& c) {
    print_origins(out_, c.origins, "");
    auto part = [&](CopyStep::Part side, const Operand& o) {
      return operand(o) + (c.part == side ? part_offset(c, counters_.back(), dtype_of(p_, o)) : "");
    };
    out_.line("memcpy(" + part(CopyStep::Part::To, c.to) + ", " + part(CopyStep::Part::From, c.from) + ", " +
              copy_size(p_, c) + ");");
  }
  void print(const IfStep& c) {
    print_origins(out_, c.origins, "");
    out_.line("if (*" + operand(c.condition) + ") {");
    block(c.then);
    if (!c.otherwise.empty()) {
      out_.line("} else {");
      block(c.otherwise);
    }
    out_.line("}");
  }
  void print(const LoopStep& l) {
    const LoopNames names = loop_names(counters_.size());
    const std::string too_many = names.counter + " == " + to_text(l.declared),
                      failed = "return " + n_.upper + "_E_TRIPS;";
    print_origins(out_, l.origins, "");
    if (l.declared >= 0) {
      out_.open();
      out_.line("int64_t " + names.counter + " = 0;  /* as many iterations as the declared shapes say */");
    }
    const std::string limit = l.trip_count ? "*" + operand(*l.trip_count) : to_text(l.trips);
    out_.line(loop_header(l, names, limit, false, l.start ? "*" + operand(*l.start) : ""));
    counters_.push_back(names);
    out_.indent();
    if (l.declared >= 0) out_.line("if (" + too_many + ") " + failed);
    if (l.iteration) out_.line("*" + operand(*l.iteration) + " = " + names.counter + ";");
    out_.dedent();
    block(l.body);
    counters_.pop_back();
    out_.line("}");
    if (l.declared < 0) return;
    out_.line("if (" + names.counter + " != " + to_text(l.declared) + ") " + failed);
    out_.close();
  }
  void print(const ContinueStep& c) { out_.line(counters_.back().go + " = *" + operand(c.condition) + ";"); }
  void block(const std::vector<Step>& steps) {
    out_.indent();
    for (const Step& s : steps) step(s);
    out_.dedent();
  }

  const Program& p_;
  const ProgramNames& n_;
  SourceWriter out_;
  std::vector<LoopNames> counters_;  // of the loops around a step
};

}  // namespace

void print_origins(SourceWriter& out, const std::vector<ModelText>& names, const std::string& note) {
  std::vector<std::string> parts;
  for (const ModelText& t : names)
    if (!t.empty() && parts.size() < 12) parts.push_back("\"" + comment_text(t, 80) + "\"");
  if (names.size() > 12) parts.push_back("... (" + to_text(int64_t(names.size())) + " nodes)");
  if (!note.empty()) parts.push_back(note);
  if (parts.empty()) return;
  // broken by hand: a comment is not wrapped by the writer
  std::string line = "/* ";
  for (size_t i = 0; i < parts.size(); i++) {
    const std::string piece = parts[i] + (i + 1 < parts.size() ? ", " : "");
    if (line.size() + piece.size() > 112 && line.size() > 3) {
      while (line.back() == ' ') line.pop_back();
      out.line(line);
      line = " * ";
    }
    line += piece;
  }
  out.line(line + " */");
}

std::string strerror_rows(const ProgramNames& n, bool makes_strings) {
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
  if (makes_strings) s += "    case " + u + "_E_STRINGS: return \"no room for the strings of this run\";\n";
  return s;
}

namespace {

std::string life_cycle(const ProgramNames& n, uint64_t layout_id, bool makes_strings) {
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  std::string s;
  s += "static int fits(const void *weights, size_t bytes)\n{\n  return bytes == " + u +
       "_WEIGHTS_BYTES && tc_weights_match(weights, bytes, UINT64_C(0x" + hex(layout_id, 16) + "));\n}\n\n";
  s += x + "_status " + x + "_init(" + x + " *" + m +
       ", const void *weights, size_t weights_bytes, void *workspace, size_t workspace_bytes)\n{\n";
  s += "  if (!" + m + " || (workspace && workspace_bytes < " + u + "_WORKSPACE_BYTES)) return " + u + "_E_ARG;\n";
  s += "  if (!weights) {\n    weights = " + x + "_weights();\n    weights_bytes = " + u + "_WEIGHTS_BYTES;\n  }\n";
  s += "  if ((uintptr_t)weights % " + u + "_ALIGN != 0 || (uintptr_t)workspace % " + u + "_ALIGN != 0) return " + u +
       "_E_ALIGN;\n";
  s += "  if (!fits(weights, weights_bytes)) return " + u + "_E_WEIGHTS;\n";
  s += "  " + m + "->weights = (const unsigned char *)weights;\n  " + m +
       "->workspace = (unsigned char *)workspace;\n  " + m + "->allocated = NULL;\n  " + m + "->device = NULL;\n";
  s += "  if (!workspace) {\n    " + m + "->allocated = malloc(" + u + "_WORKSPACE_BYTES + " + u +
       "_ALIGN);\n    if (!" + m + "->allocated) return " + u + "_E_MEMORY;\n";
  s += "    " + m + "->workspace = (unsigned char *)" + m + "->allocated + (" + u + "_ALIGN - (uintptr_t)" + m +
       "->allocated % " + u + "_ALIGN);\n  }\n";
  s += "  return " + u + "_OK;\n}\n\n";
  s += "void " + x + "_free(" + x + " *" + m + ")\n{\n  if (!" + m + ") return;\n  free(" + m + "->allocated);\n  " +
       m + "->allocated = NULL;\n  " + m + "->workspace = NULL;\n}\n\n";
  s += "int " + x + "_check_weights(const void *weights)\n{\n";
  s += "  return weights && fits(weights, " + u + "_WEIGHTS_BYTES) && tc_weights_intact(weights);\n}\n\n";
  s += "const char *" + x + "_strerror(" + x + "_status s)\n{\n  switch (s) {\n";
  s += strerror_rows(n, makes_strings);
  return s + "  }\n  return \"unknown status\";\n}\n";
}

}  // namespace

std::string executor_source(const Program& p, const ProgramNames& n, uint64_t layout_id) {
  const std::string &x = n.lower, &u = n.upper, &m = n.self;
  // The API comes last: its type has the model's name, which elsewhere may be a variable's.
  std::string s = std::string(kLicenseLine) + "\n#include \"" + x + "_kernels.h\"\n#include \"" + x + "_plan.h\"\n" +
                  (string_tables(p, n).empty() ? "" : "#include \"" + x + "_strings.h\"\n") +
                  "#include \"tc_rt.h\"\n#include \"" + x + ".h\"\n#include <stdlib.h>\n#include <string.h>\n\n";
  s += "#ifdef __cplusplus\nextern \"C\" const unsigned char " + x +
       "_weights_blob[];\n#else\nextern const unsigned char " + x + "_weights_blob[];\n#endif\n\n";
  s += "const void *" + x + "_weights(void) { return " + x + "_weights_blob; }\n\n";
  s += "#define WEIGHT_AS(type, name) ((const type *)(const void *)(" + m + "->weights + " + u + "_W_##name))\n";
  s += "#define AT_AS(type, name)     ((type *)(void *)(" + m + "->workspace + " + u + "_AT_##name))\n";
  // Each pastes by itself: handed on to another macro, a name that a header defines would be replaced first.
  s += "#define WEIGHT(name)          ((const float *)(const void *)(" + m + "->weights + " + u + "_W_##name))\n";
  s += "#define AT(name)              ((float *)(void *)(" + m + "->workspace + " + u + "_AT_##name))\n";
  s += "#define SCRATCH               (" + m + "->workspace + " + u +
       "_AT_SCRATCH)\n#define STATUS                AT_AS(int32_t, STATUS)\n\n";
  if (p.strings_bytes > 0) s.insert(s.size() - 1, "#define MADE                  AT_AS(tc_made, MADE)\n");
  s += "#ifdef TC_PROFILE  /* then every step stands between two hooks */\n#  include \"" + x +
       "_profile.h\"\n#endif\n\n";
  Executor e(p, n);
  return s + e.run_function() + "\n" + life_cycle(n, layout_id, p.strings_bytes > 0);
}

}  // namespace tc
