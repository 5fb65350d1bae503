#include "emit_cuda/executor.h"

#include <algorithm>

#include "emit_c/executor.h"
#include "emit_c/fill.h"
#include "emit_c/life_cycle.h"
#include "emit_c/operands.h"
#include "emit_c/source_writer.h"
#include "emit_c/weights.h"
#include "emit_cuda/device_parts.h"
#include "emit_cuda/states.h"
#include "templates/text.h"

namespace tc {
namespace {

// The steps as functions without decisions, which become graphs, and the control flow between them.
class Segments {
 public:
  Segments(const Program& p, const ProgramNames& n) : p_(p), n_(n), dropped_(device_states(p, n).dropped) {}

  std::string text() {
    control_.indent();
    const size_t first = begin_states();
    begin();  // the first graph begins with the inputs' way to the device, even if nothing else is in it
    if (can_fail(p_)) line("TRY(cudaMemsetAsync(STATUS, 0, sizeof(int32_t), stream));");
    for (size_t i = first; i < p_.steps.size(); i++) step(p_.steps[i]);
    if (!open_) begin();  // the last one ends with the outputs' way back
    end();
    std::string list;
    for (size_t i = 0; i < count_; i++) list += (i > 0 ? ", " : "") + std::string("segment_") + to_text(int64_t(i));
    return out_.text() + "constexpr int segment_count = " + to_text(int64_t(count_)) +
           ";\nconstexpr segment_function *segments[segment_count] = {" + list + "};\n";
  }

  /// The body of execute(): runs the segments and takes the decisions between them.
  const std::string& control() const { return control_.text(); }
  size_t count() const { return count_; }

 private:
  void line(const std::string& s) {
    if (!open_) begin();
    out_.line(s);
  }

  void begin() {
    out_.line("cudaError_t segment_" + to_text(int64_t(count_)) + "(const " + n_.lower + "_device &d, const " +
              n_.lower + "_inputs &in, const " + n_.lower + "_outputs &out, cudaStream_t stream)");
    out_.line("{");
    out_.indent();
    out_.line("(void)d, (void)in, (void)out, (void)stream;");
    open_ = true;
  }
  // Ends the segment, if there is one: the host has something to do in between.
  void end() {
    if (!open_) return;
    out_.line("return cudaSuccess;");
    out_.dedent();
    out_.line("}");
    out_.blank();
    control_.line("TRY(run_segment(d, " + to_text(int64_t(count_)) + ", in, out, stream));");
    count_++;
    open_ = false;
  }
  // Where comments and calls of a step go.
  SourceWriter& segment() {
    if (!open_) begin();
    return out_;
  }

  std::string operand(const Operand& o) const { return is_size(o) ? number(o) : operand_text(p_, n_, o, "."); }
  bool is_size(const Operand& o) const { return is_host_size(p_, o); }
  std::string number(const Operand& o) const {
    return (p_.inputs[size_t(o.index)].is_kept() ? kCounts : "in.") + n_.inputs[size_t(o.index)];
  }

  void step(const Step& s) {
    if (s.begins_part) end();
    std::visit([&](const auto& k) { print(k); }, s.kind);
  }
  void print(const Call& c) {
    print_origins(segment(), c.origins, c.note);
    line(call_text(c));
  }
  std::string call_text(const Call& c) const {
    std::vector<std::string> args;
    for (const Operand& o : c.operands) args.push_back(operand(o));
    args.push_back("stream");
    return "STEP(" + n_.lower + "_" + p_.kernels[size_t(c.kernel)].name + "(" + join(args, ", ") + "));";
  }
  // Steps that the program begins with and that get what the instance counts: another number in every run, so that no graph
  // has them. They store it where kernels read it, and zeros behind the elements of states, where something was dropped.
  // Returns how many they are.
  size_t begin_states() {
    std::vector<std::string> zeros;
    size_t i = 0;
    for (; i < p_.steps.size(); i++) {
      const Call* c = std::get_if<Call>(&p_.steps[i].kind);
      if (!c || std::none_of(c->operands.begin(), c->operands.end(),
                             [&](const Operand& o) { return is_size(o) && p_.inputs[size_t(o.index)].is_kept(); }))
        break;
      const Slot& to = p_.slots[size_t(c->operands.back().index)];
      to.dims.empty() ? control_.line(call_text(*c)) : zeros.push_back(call_text(*c));
    }
    if (i == 0) return i;
    if (!zeros.empty()) {
      control_.line("if (" + dropped_ + ") {");
      control_.indent();
      for (const std::string& call : zeros) control_.line(call);
      control_.dedent();
      control_.line("}");
    }
    control_.line("const_cast<" + n_.lower + "_device &>(d).written = next_counts(d, in);");
    return i;
  }
  void print(const CopyStep& c) {
    if (!c.times.empty()) return print_sized(c);
    auto part = [&](CopyStep::Part side, const Operand& o) {
      return operand(o) + (c.part == side ? part_offset(c, counters_.back(), dtype_of(p_, o)) : "");
    };
    const std::string copy = "STEP(cudaMemcpyAsync(" + part(CopyStep::Part::To, c.to) + ", " +
                             part(CopyStep::Part::From, c.from) + ", " + to_text(c.bytes) +
                             ", cudaMemcpyDeviceToDevice, stream));";
    if (c.part != CopyStep::Part::None &&
        captured_ == 0) {  // a graph cannot have addresses that depend on the iteration
      end();
      control_.line(copy);
      return;
    }
    print_origins(segment(), c.origins, "");
    line(copy);
  }
  // Of an output what there is.
  void print_sized(const CopyStep& c) {
    check(!is_counted(p_, c.times), "outputs as long as states are counted by the device");
    const std::string bytes = sized_bytes(p_, n_, c, ".");
    print_origins(segment(), c.origins, "");
    line((may_be_empty(p_, c.times) ? "if (" + bytes + " > 0) " : "") + "STEP(cudaMemcpyAsync(" + operand(c.to) + ", " +
         operand(c.from) + ", " + bytes + ", cudaMemcpyDeviceToDevice, stream));");
  }
  void print(const IfStep& c) {
    end();
    print_origins(control_, c.origins, "");
    control_.line("TRY(fetch(d, " + operand(c.condition) + ", stream));");
    control_.line("if (d.host->condition) {");
    block(c.then);
    if (!c.otherwise.empty()) {
      control_.line("} else {");
      block(c.otherwise);
    }
    control_.line("}");
  }
  void block(const std::vector<Step>& steps) {
    control_.indent();
    for (const Step& s : steps) step(s);
    end();
    control_.dedent();
  }
  void print(const LoopStep& l) {
    const LoopNames names = loop_names(counters_.size());
    counters_.push_back(names);
    l.in_graph ? captured_loop(l, names) : host_loop(l, names);
    counters_.pop_back();
  }
  void captured_loop(const LoopStep& l, const LoopNames& names) {
    print_origins(segment(), l.origins, "");
    out_.line(loop_header(l, names, to_text(l.trips), false, ""));
    captured_++;
    out_.indent();
    for (const Step& s : l.body) step(s);
    out_.dedent();
    captured_--;
    out_.line("}");
  }
  void host_loop(const LoopStep& l, const LoopNames& names) {
    end();
    print_origins(control_, l.origins, "");
    if (l.trip_count && !is_size(*l.trip_count))
      control_.line("TRY(fetch_count(d, " + operand(*l.trip_count) + ", stream));");
    if (l.start) control_.line("TRY(fetch(d, " + operand(*l.start) + ", stream));");
    if (l.declared >= 0) {
      control_.line("{");
      control_.indent();
      control_.line("int64_t " + names.counter + " = 0;  /* as many iterations as the declared shapes say */");
    }
    const std::string limit = !l.trip_count            ? to_text(l.trips)
                              : is_size(*l.trip_count) ? number(*l.trip_count)
                                                       : "d.host->count";
    control_.line(loop_header(l, names, limit, true, "d.host->condition"));
    control_.indent();
    if (l.declared >= 0)
      control_.line("if (" + names.counter + " == " + to_text(l.declared) + ") return wrong_trips(d);");
    control_.dedent();
    block(l.body);
    control_.line("}");
    if (l.declared < 0) return;
    control_.line("if (" + names.counter + " != " + to_text(l.declared) + ") return wrong_trips(d);");
    control_.dedent();
    control_.line("}");
  }
  void print(const ContinueStep& c) {
    end();
    control_.line("TRY(fetch(d, " + operand(c.condition) + ", stream));");
    control_.line(counters_.back().go + " = d.host->condition;");
  }

  const Program& p_;
  const ProgramNames& n_;
  const std::string dropped_;  // a condition: there is less of the states than was written
  SourceWriter out_, control_;
  size_t count_ = 0;
  bool open_ = false;                // a segment is being written
  int captured_ = 0;                 // how many loops around the step are part of a graph
  std::vector<LoopNames> counters_;  // of the loops around the step
};

// What kernels need once an instance: launches of more shared memory than every machine has.
std::string kernel_setup(const Program& p, const ProgramNames& n) {
  std::string s;
  for (const Kernel& k : p.kernels)
    for (const DeviceFunction& f : k.device) {
      if (f.dynamic_shared == 0) continue;
      s += "  TRY(" + n.lower + "_" + k.name + "_setup());\n";
      break;
    }
  return s;
}

// Lines of a build in which NVRTC compiles the kernels.
std::string launch_only(bool jit, const std::string& lines) {
  return jit ? "#ifdef TC_LAUNCH_ONLY\n" + lines + "#endif\n" : "";
}

// Does any loop wait for its trip count?
bool asks_limit(const Program& p, const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& s) {
    if (const auto* c = std::get_if<IfStep>(&s.kind)) return asks_limit(p, c->then) || asks_limit(p, c->otherwise);
    const auto* l = std::get_if<LoopStep>(&s.kind);
    return l && ((l->trip_count && !is_host_size(p, *l->trip_count)) || asks_limit(p, l->body));
  });
}

// Functions that only the loops of some models need.
std::string trips_functions(const Program& p, const ProgramNames& n, bool counted) {
  std::string s;
  if (asks_limit(p, p.steps))
    s += "/* Waits for a trip count. */\ncudaError_t fetch_count(const " + n.lower +
         "_device &d, const void *count, cudaStream_t stream)\n{\n"
         "  TRY(cudaMemcpyAsync(&d.host->count, count, sizeof d.host->count, cudaMemcpyDeviceToHost, stream));\n"
         "  TRY(cudaStreamSynchronize(stream));\n  return cudaSuccess;\n}\n\n";
  if (counted)
    s += "/* A loop ran more or fewer times than the shapes of its results say. */\ncudaError_t wrong_trips(const " +
         n.lower + "_device &d)\n{\n  const_cast<" + n.lower +
         "_device &>(d).wrong_trips = true;\n  return cudaErrorInvalidValue;\n}\n\n";
  return s;
}

// What is said of memory where sizes have no upper bound, and what where all are known.
struct Room {
  std::string io = {}, memory = {}, functions = {}, parameter = {}, refused = {}, set = {}, member = {};
};
Room room_of(const Program& p, const ProgramNames& n, const std::string& io_bytes) {
  const std::string io = "size_t io_bytes = " + io_bytes + ";",
                    weights = "size_t weights_bytes = (" + n.upper + "_WEIGHTS_BYTES + 255) / 256 * 256",
                    workspace = ", workspace_bytes = (";
  if (open_sizes(p).empty())
    return {.io = "constexpr " + io + "  /* inputs and outputs, each on 256 bytes */\n\n",
            .memory = "  constexpr " + weights + workspace + n.upper + "_WORKSPACE_BYTES + 255) / 256 * 256;\n"};
  return {.memory = "  const " + weights + workspace + memory_text(p.workspace_bytes, "d.room") +
                    " + 255) / 256 * 256;\n  const " + io + "  /* inputs and outputs, each on 256 bytes */\n",
          .functions = workspace_functions(p, n),
          .parameter = "const " + n.lower + "_sizes *sizes, ",
          .refused = " || " + n.lower + "_workspace_bytes(sizes) == 0",
          .set = "  m->sizes = *sizes;\n  m->room = d->room = room_for(sizes);\n",
          .member = "  size_t room = 0;                   /* the largest of the sizes that init was told */\n"};
}

std::string refused_if(const std::string& test, const ProgramNames& n) {
  return test.empty() ? "" : "  if (" + test + ") return " + n.upper + "_E_ARG;\n";
}

}  // namespace

std::string cuda_executor_source(const Program& p, const ProgramNames& names, uint64_t layout_id, bool jit,
                                 const ExecutorParts& parts, int64_t graph_sets) {
  ProgramNames n = names;
  n.self = "m";  // what the text below calls it
  Segments segments(p, n);
  const std::string functions = segments.text();
  const Staging io = staging(p, n);
  const Room room = room_of(p, n, io.bytes);
  const Graphs graphs = graphs_of(p, n, graph_sets);
  const DeviceStates states = device_states(p, n);
  const bool counted = counts_iterations(p.steps);
  const std::string status =
      can_fail(p)
          ? "  TRY(cudaMemcpyAsync(&d.host->status, STATUS, sizeof(int32_t), cudaMemcpyDeviceToHost, d.stream));\n"
          : "";
  return fill(
      support_text("executor.cu.in"),
      {{"name", n.lower},
       {"NAME", n.upper},
       {"map_include", map_include(p)},
       {"linked_blob",
        p.external_weights ? "" : "\nextern \"C\" const unsigned char " + n.lower + "_weights_blob[];\n"},
       {"map_functions", map_functions(p, n)},
       {"no_weights", p.external_weights ? " || !weights" : ""},
       {"own_weights", p.external_weights
                           ? ""
                           : "  if (!weights) {\n    weights = " + n.lower +
                                 "_weights();\n    weights_bytes = " + n.upper + "_WEIGHTS_BYTES;\n  }\n"},
       {"weights_function",
        p.external_weights ? ""
                           : "const void *" + n.lower + "_weights(void) { return " + n.lower + "_weights_blob; }\n\n"},
       {"kernels_include", parts.includes},
       {"kernels", parts.text},
       {"segments", functions},
       {"control", segments.control()},
       {"size_tests", refused_if(size_tests(p, n), n)},
       {"state_tests", states.test_room + refused_if(difference_tests(p, n, kCountsOfPointer), n)},
       {"state_counts", states.counts},
       {"next_counts", states.next},
       {"state_members", states.members},
       {"state_functions", states.functions},
       {"state_begin", states.begin_run},
       {"state_end", states.end_run},
       {"state_api", states.api},
       {"refuse_captured", states.refuse_captured},
       {"execute", states.execute},
       {"upload_counted", io.upload_counted},
       {"graphs_comment", graphs.comment},
       {"graphs_member", graphs.member},
       {"clear", graphs.clear},
       {"graph", graphs.graph},
       {"graph_count", graphs.count},
       {"take_graphs", graphs.take},
       {"capture_all", graphs.capture_all},
       {"use_taken", graphs.use},
       {"trips_member",
        counted ? "  bool wrong_trips = false;           /* a loop ran another number of times than shapes say */\n"
                : ""},
       {"trips", trips_functions(p, n, counted)},
       {"trips_reset", counted ? "  const_cast<" + n.lower + "_device &>(d).wrong_trips = false;\n" : ""},
       {"failed",
        counted ? "(d->wrong_trips ? " + n.upper + "_E_TRIPS : " + n.upper + "_E_DEVICE)" : n.upper + "_E_DEVICE"},
       {"count_word", asks_limit(p, p.steps) ? "  int64_t count;  /* of iterations */\n" : ""},
       {"io_bytes", room.io},
       {"memory_bytes", room.memory},
       {"workspace_functions", room.functions},
       {"init_sizes", room.parameter},
       {"no_sizes", room.refused},
       {"set_room", room.set},
       {"room_member", room.member},
       {"upload", io.upload},
       {"download", io.download + status},
       {"stage_in", io.sizes + io.stage_in},
       {"stage_out", io.stage_out},
       {"fields", io.fields_in + io.fields_out},
       {"null_tests", null_tests(p, n)},
       {"layout_id", hex(layout_id, 16)},
       {"jit_include", launch_only(jit, "#include \"tc_jit.h\"\ntc_jit_program " + n.lower + "_jit_program();\n")},
       {"jit_member", launch_only(jit, "  tc_jit jit;                        /* the compiled kernels */\n")},
       {"jit_compile",
        launch_only(jit, "  TRY(d.jit.compile(" + n.lower + "_jit_program()));\n  const tc_jit_scope scope(d.jit);\n")},
       {"jit_scope", launch_only(jit, "  const tc_jit_scope scope(d.jit);\n")},
       {"jit_scope_async", launch_only(jit, "  const tc_jit_scope scope(d->jit);\n")},
       {"kernel_setup", kernel_setup(p, n)},
       {"strerror_rows", strerror_rows(p, n)}});
}

std::string cuda_header(const Program& p, const ProgramNames& n) {
  return fill(support_text("name_cuda.h.in"),
              {{"name", n.lower}, {"NAME", n.upper}, {"states", device_states(p, n).comment}});
}

}  // namespace tc
