#include "emit_c/executor.h"

#include "emit_c/life_cycle.h"
#include "emit_c/operands.h"
#include "emit_c/source_writer.h"
#include "emit_c/strings.h"
#include "emit_c/variants.h"
#include "emit_c/weights.h"
#include "ir/identity.h"
#include "ir/open_size.h"

namespace tc {
namespace {

class Executor {
 public:
  /// `variant`: one of p.variants, whose kernels are called.
  explicit Executor(const Program& p, const ProgramNames& n, std::optional<size_t> variant = {})
      : p_(p), n_(n), variant_(variant), of_variant_(variant ? "_" + variant_name(p.variants.at(*variant)) : "") {}

  /// NAME_run, or, without tests of its arguments, NAME_graph, which NAME_run calls.
  enum class Function : uint8_t { Run, Graph, StaticGraph };
  std::string run_function(Function kind) {
    const bool tests_arguments = kind == Function::Run;
    std::vector<size_t> parts;  // where they begin
    for (size_t i = 0; i < p_.steps.size(); i++)
      if (p_.steps[i].begins_part) parts.push_back(i);
    const bool counted = counts_iterations(p_.steps);
    for (size_t k = 0; k < parts.size(); k++)
      part(k + 1, parts[k], k + 1 < parts.size() ? parts[k + 1] : p_.steps.size(), counted);
    out_.line("/* The graph, one kernel a line, in the order of the model. */");
    out_.line((kind == Function::StaticGraph ? "static " : "") + n_.lower + "_status " + n_.lower +
              (tests_arguments ? "_run" : "_graph" + of_variant_) + run_parameters(n_));
    out_.open();
    if (tests_arguments)
      for (const std::string& test : argument_tests(p_, n_)) out_.line(test);
    test_states();
    if (can_fail(p_)) out_.line("*STATUS = 0;");
    if (p_.strings_bytes > 0) {
      out_.line("MADE->next = (char *)(" + n_.self + "->workspace + " + n_.upper + "_AT_MADE + 64);");
      out_.line("MADE->end = MADE->next + " + n_.upper + "_STRING_BYTES;");
      out_.line("MADE->full = 0;");
    }
    if (tests_arguments || can_fail(p_) || p_.strings_bytes > 0) out_.blank();
    for (size_t k = 0; k < parts.size(); k++) call_part(k + 1, counted);
    if (parts.empty())
      for (const Step& s : p_.steps) step(s);
    if (!tests_arguments && parts.empty()) unused_parameters();
    if (p_.strings_bytes > 0) out_.line("if (MADE->full) return " + n_.upper + "_E_STRINGS;");
    const bool counts = tests_states(p_);
    if (counts && can_fail(p_)) out_.line("if (*STATUS != 0) return " + n_.upper + "_E_RANGE;");
    if (counts) count_states();
    out_.line(can_fail(p_) && !counts ? "return *STATUS != 0 ? " + n_.upper + "_E_RANGE : " + n_.upper + "_OK;"
                                      : "return " + n_.upper + "_OK;");
    out_.close();
    return out_.take();
  }

 private:
  std::string part_name(size_t number) const { return n_.lower + of_variant_ + "_steps_" + to_text(int64_t(number)); }
  // `counted`: a loop may find that it runs another number of times than it must.
  void call_part(size_t number, bool counted) {
    const std::string call = part_name(number) + "(" + n_.self + ", in, out)";
    out_.line(counted ? "if (" + call + " != " + n_.upper + "_OK) return " + n_.upper + "_E_TRIPS;" : call + ";");
  }
  void part(size_t number, size_t from, size_t to, bool counted) {
    out_.line("static " + (counted ? n_.lower + "_status " : std::string("void ")) + part_name(number) +
              run_parameters(n_));
    out_.open();
    out_.line("(void)" + n_.self + ", (void)in, (void)out;");
    for (size_t i = from; i < to; i++) step(p_.steps[i]);
    if (counted) out_.line("return " + n_.upper + "_OK;");
    out_.close();
    out_.blank();
  }

  std::string operand(const Operand& o) {
    const bool table = o.kind == Operand::Kind::Weight && dtype_of(p_, o) == DType::String;  // not in the blob
    if (o.kind == Operand::Kind::Input)
      reads_in_ = true;
    else if (o.kind == Operand::Kind::Output)
      writes_out_ = true;
    else
      touches_self_ |= !table;
    return operand_text(p_, n_, o, "->");
  }

  // A graph without steps, or without inputs, has parameters that it does not use.
  void unused_parameters() {
    std::vector<std::string> unused;
    if (!touches_self_ && !can_fail(p_) && p_.strings_bytes == 0) unused.push_back("(void)" + n_.self);
    if (!reads_in_) unused.push_back("(void)in");
    if (!writes_out_) unused.push_back("(void)out");
    if (!unused.empty()) out_.line(join(unused, ", ") + ";");
  }

  void step(const Step& s) {
    std::visit([&](const auto& k) { print(k); }, s.kind);
  }
  void print(const Call& c) {
    print_origins(out_, c.origins, c.note);
    std::vector<std::string> args;
    for (const Operand& o : c.operands) args.push_back(operand(o));
    out_.line(n_.lower + "_" + p_.kernels[size_t(variant_ ? c.kernel_of(*variant_) : c.kernel)].name + "(" +
              join(args, ", ") + ");");
  }
  void print(const CopyStep& c) {
    print_origins(out_, c.origins, "");
    if (!c.times.empty()) return print_sized(c);
    auto part = [&](CopyStep::Part side, const Operand& o) {
      return operand(o) + (c.part == side ? part_offset(c, counters_.back(), dtype_of(p_, o)) : "");
    };
    out_.line("memcpy(" + part(CopyStep::Part::To, c.to) + ", " + part(CopyStep::Part::From, c.from) + ", " +
              copy_size(p_, c) + ");");
  }
  // An input or output of sizes that the caller chooses; behind an input stand copies of its first part, where
  // there is one, so that whoever computes with it meets nothing that a run would not meet anyway.
  void print_sized(const CopyStep& c) {
    const std::string bytes = sized_bytes(p_, n_, c, "->"), to = operand(c.to), from = operand(c.from);
    reads_in_ = true;
    out_.line("memcpy(" + to + ", " + from + ", " + bytes + ");");
    if (is_open(c.room) && c.times.size() == 1 && never_empty(c.times[0])) {
      const std::string part = bytes_text(c.bytes, dtype_of(p_, c.to));
      // What a tile may read: the slot has room for the largest of the other sizes, too.
      const int64_t more = std::max<int64_t>(0, open_number(c.room).rest - most_beside_open(c.times[0]) * c.bytes),
                    parts = more / c.bytes;
      const std::string behind = "(unsigned char *)" + to + " + " + bytes;
      if (parts > 0)
        out_.line("for (size_t k = 0; k < " + to_text(parts) + "; k++) memcpy(" + behind + " + k * " + part + ", " +
                  from + ", " + part + ");");
      if (more > parts * c.bytes)
        out_.line("memcpy(" + behind + (parts > 0 ? " + " + to_text(parts) + " * " + part : "") + ", " + from + ", " +
                  bytes_text(more - parts * c.bytes, dtype_of(p_, c.to)) + ");");
    } else if (c.room > 0 && c.times.size() == 1 && never_empty(c.times[0])) {
      const std::string part = bytes_text(c.bytes, dtype_of(p_, c.to)), first = sized_number(p_, n_, c, "->");
      out_.line("for (size_t k = " + first + "; k < " + to_text(c.room / c.bytes) + "; k++) memcpy((unsigned char *)" +
                to + " + k * " + part + ", " + from + ", " + part + ");");
    } else if (c.room > 0)
      out_.line("memset((unsigned char *)" + to + " + " + bytes + ", 0, " +
                (is_open(c.room) ? memory_text(c.room, n_.self + "->room") : bytes_text(c.room, dtype_of(p_, c.to))) +
                " - " + bytes + ");");
  }
  /// How much the sizes that have an upper bound are at most.
  int64_t most_beside_open(const SizeSum& s) const {
    int64_t most = s.addend;
    for (const SizeSum::Term& t : s.terms) {
      const IoTensor& size = p_.inputs[t.input];
      if (!is_open(size.most)) most += t.factor * (t.factor < 0 ? size.least : size.most);
    }
    return std::max<int64_t>(0, most);
  }
  bool never_empty(const SizeSum& s) const {
    int64_t least = s.addend;
    for (const SizeSum::Term& t : s.terms) {
      const IoTensor& size = p_.inputs[t.input];
      least += t.factor * (t.factor < 0 ? size.most : size.is_kept() ? 0 : size.least);
    }
    return least > 0;
  }
  // Sizes that the instance counts: whether there is room for what comes, and what they are afterwards.
  void test_states() {
    const std::string full = room_tests(p_, n_);
    if (!full.empty()) out_.line("if (" + full + ") return " + n_.upper + "_E_STATE;");
    const std::string other = other_size_tests(p_, n_, [&](size_t k) { return same(k); });
    if (!other.empty()) out_.line("if (" + other + ") return " + n_.upper + "_E_STATE;");
    const std::string negative = difference_tests(p_, n_);
    if (!negative.empty()) out_.line("if (" + negative + ") return " + n_.upper + "_E_ARG;");
  }
  std::string same(size_t size) const {
    return "*" + operand_text(p_, n_, {Operand::Kind::Slot, p_.inputs[size].same}, "->");
  }
  void count_states() {
    for (const size_t k : sizes_of_states(p_)) out_.line(same(k) + " = in->" + n_.inputs[k] + ";");
    std::vector<std::string> slots, sums;
    for (const IoTensor& t : p_.inputs)
      if (t.is_size && t.is_kept()) {
        slots.push_back("*" + operand_text(p_, n_, {Operand::Kind::Slot, t.state}, "->"));
        sums.push_back(size_text(p_, n_, t.next, "in->"));
      }
    if (slots.size() == 1) return out_.line(slots[0] + " = " + sums[0] + ";");
    for (size_t k = 0; k < sums.size(); k++)
      out_.line("const int64_t next_" + to_text(int64_t(k)) + " = " + sums[k] + ";");
    for (size_t k = 0; k < slots.size(); k++) out_.line(slots[k] + " = next_" + to_text(int64_t(k)) + ";");
  }

  void print(const IfStep& c) {
    print_origins(out_, c.origins, "");
    if (!c.size.terms.empty()) reads_in_ = true;
    const std::string one = c.size.terms.empty() ? "" : size_text(p_, n_, c.size, "in->") + " == 1";
    out_.line("if (" + (one.empty() ? "*" + operand(c.condition) : one) + ") {");
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
  std::optional<size_t> variant_;
  std::string of_variant_;  // behind names: "_v3"
  SourceWriter out_;
  bool touches_self_ = false, reads_in_ = false, writes_out_ = false;  // by the steps so far
  std::vector<LoopNames> counters_;                                    // of the loops around a step
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

namespace {

// What the steps are written with: weights and tensors of the workspace, by their names in the plan.
std::string step_macros(const Program& p, const ProgramNames& n) {
  const std::string &u = n.upper, &m = n.self;
  std::string s;
  s += "#define WEIGHT_AS(type, name) ((const type *)(const void *)(" + m + "->weights + " + u + "_W_##name))\n";
  s += "#define AT_AS(type, name)     ((type *)(void *)(" + m + "->workspace + " + u + "_AT_##name))\n";
  // Each pastes by itself: handed on to another macro, a name that a header defines would be replaced first.
  s += "#define WEIGHT(name)          ((const float *)(const void *)(" + m + "->weights + " + u + "_W_##name))\n";
  s += "#define AT(name)              ((float *)(void *)(" + m + "->workspace + " + u + "_AT_##name))\n";
  s += "#define SCRATCH               (" + m + "->workspace + " + u +
       "_AT_SCRATCH)\n#define STATUS                AT_AS(int32_t, STATUS)\n\n";
  if (p.strings_bytes > 0) s.insert(s.size() - 1, "#define MADE                  AT_AS(tc_made, MADE)\n");
  return s + "#ifdef TC_PROFILE  /* then every step stands between two hooks */\n#  include \"" + n.lower +
         "_profile.h\"\n#endif\n\n";
}

// The API comes last: its type has the model's name, which elsewhere may be a variable's.
std::string step_includes(const Program& p, const ProgramNames& n) {
  const std::string& x = n.lower;
  return "#include \"" + x + "_kernels.h\"\n#include \"" + x + "_plan.h\"\n" +
         (string_tables(p, n).empty() ? "" : "#include \"" + x + "_strings.h\"\n");
}

// NAME_run of a single file of a list of processors: one build, whose vectors choose the schedule.
std::string run_by_vectors(const Program& p, const ProgramNames& n) {
  return "/* Schedules for " + processors_text(p) + ": the one for the vectors that the compiler's flags give. */\n" +
         n.lower + "_status " + n.lower + "_run" + run_parameters(n) + "\n{\n  " + join(argument_tests(p, n), "\n  ") +
         "\n  return (" + graph_by_vectors(p, n) + ")(" + n.self + ", in, out);\n}\n";
}

}  // namespace

std::string executor_source(const Program& p, const ProgramNames& n, uint64_t layout_id) {
  std::string s = std::string(kLicenseLine) + "\n" + map_include(p) + step_includes(p, n) +
                  (multiplies_tiles(p) ? "#include \"tc_cpu.h\"\n" : "") + "#include \"tc_rt.h\"\n#include \"" +
                  n.lower + ".h\"\n#include <stdlib.h>\n#include <string.h>\n\n";
  s += linked_weights(p, n) + step_macros(p, n);
  if (p.variants.empty()) s += Executor(p, n).run_function(Executor::Function::Run);
  for (size_t v = 0; v < p.variants.size(); v++)
    s += Executor(p, n, v).run_function(Executor::Function::StaticGraph) + "\n";
  if (!p.variants.empty()) s += run_by_vectors(p, n);
  return s + "\n" + life_cycle(p, n, layout_id, {});
}

std::string graph_source(const Program& p, const ProgramNames& n, std::optional<size_t> variant) {
  const std::string& x = n.lower;
  std::string s =
      std::string(kLicenseLine) + "\n" + step_includes(p, n) + "#include \"" + x + ".h\"\n#include <string.h>\n\n";
  s += "#ifdef __cplusplus\nextern \"C\"\n#endif\n" + x + "_status " + x + "_graph" +
       (variant ? "_" + variant_name(p.variants.at(*variant)) : "") + run_parameters(n) + ";\n\n";
  return s + step_macros(p, n) + Executor(p, n, variant).run_function(Executor::Function::Graph);
}

}  // namespace tc
