#include "emit_cuda/executor.h"

#include "emit_c/executor.h"
#include "emit_c/fill.h"
#include "emit_c/operands.h"
#include "emit_c/source_writer.h"
#include "templates/text.h"

namespace tc {
namespace {

constexpr size_t kSegment = 256;  // calls in one function at most

// The steps as functions without decisions, which become graphs, and the control flow between them.
class Segments {
 public:
  Segments(const Program& p, const ProgramNames& n) : p_(p), n_(n) {}

  std::string text() {
    begin();
    if (can_fail(p_)) line("TRY(cudaMemsetAsync(STATUS, 0, sizeof(int32_t), stream));");
    control_.indent();
    for (const Step& s : p_.steps) step(s);
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
    out_.line(s);
    calls_++;
  }

  void begin() {
    out_.line("cudaError_t segment_" + to_text(int64_t(count_)) + "(const " + n_.lower + "_device &d, const " + n_.lower + "_inputs &in, const " +
              n_.lower + "_outputs &out, cudaStream_t stream)");
    out_.line("{");
    out_.indent();
    out_.line("(void)d, (void)in, (void)out, (void)stream;");
    calls_ = 0;
  }
  void end() {
    out_.line("return cudaSuccess;");
    out_.dedent();
    out_.line("}");
    out_.blank();
    control_.line("TRY(run_segment(d, " + to_text(int64_t(count_)) + ", in, out, stream));");
    count_++;
  }
  void next() {
    end();
    begin();
  }

  std::string operand(const Operand& o) const { return operand_text(p_, n_, o, "."); }

  void step(const Step& s) {
    if (calls_ >= kSegment) next();
    std::visit([&](const auto& k) { print(k); }, s.kind);
  }
  void print(const Call& c) {
    print_origins(out_, c.origins, c.note);
    std::vector<std::string> args;
    for (const Operand& o : c.operands) args.push_back(operand(o));
    args.push_back("stream");
    line("TRY(" + n_.lower + "_" + p_.kernels[size_t(c.kernel)].name + "(" + join(args, ", ") + "));");
  }
  void print(const CopyStep& c) {
    print_origins(out_, c.origins, "");
    line("TRY(cudaMemcpyAsync(" + operand(c.to) + ", " + operand(c.from) + ", " + to_text(c.bytes) + ", cudaMemcpyDeviceToDevice, stream));");
  }
  void print(const IfStep& c) {
    end();
    print_origins(control_, c.origins, "");
    control_.line("TRY(fetch(d, " + operand(c.condition) + ", stream));");
    control_.line("if (d.host->condition) {");
    branch(c.then);
    if (!c.otherwise.empty()) {
      control_.line("} else {");
      branch(c.otherwise);
    }
    control_.line("}");
    begin();
  }
  void branch(const std::vector<Step>& steps) {
    control_.indent();
    begin();
    for (const Step& s : steps) step(s);
    end();
    control_.dedent();
  }
  void print(const LoopStep&) { throw InternalError("loops of the executor have no text yet"); }

  const Program& p_;
  const ProgramNames& n_;
  SourceWriter out_, control_;
  size_t count_ = 0, calls_ = 0;
};

int64_t aligned(int64_t n) { return (n + 255) / 256 * 256; }
int64_t bytes_of(const IoTensor& t) { return checked_mul(num_elements(t.dims), info(t.dtype).bytes); }

// Where inputs and outputs live on the device and in pinned memory, and the copies between.
struct Staging {
  std::string upload, download, stage_in, stage_out, fields_in, fields_out;
  int64_t bytes = 0;
};

Staging staging(const Program& p, const ProgramNames& n) {
  Staging s;
  auto row = [&](const IoTensor& t, const std::string& name, bool in) {
    const int64_t size = bytes_of(t);
    const std::string type = std::string(info(t.dtype).c_type), at = to_text(s.bytes), count = to_text(size);
    const std::string side = in ? "in" : "out";
    (in ? s.fields_in : s.fields_out) += "  d." + side + "." + name + " = (" + (in ? "const " : "") + type + " *)(void *)(d.io + " + at + ");\n";
    if (size == 0) return;
    if (in) {
      s.stage_in += "  memcpy(d->staging + " + at + ", in->" + name + ", " + count + ");\n";
      s.upload += "  TRY(cudaMemcpyAsync(d.io + " + at + ", d.staging + " + at + ", " + count + ", cudaMemcpyHostToDevice, d.stream));\n";
    } else {
      s.stage_out += "  memcpy(out->" + name + ", d->staging + " + at + ", " + count + ");\n";
      s.download += "  TRY(cudaMemcpyAsync(d.staging + " + at + ", d.io + " + at + ", " + count + ", cudaMemcpyDeviceToHost, d.stream));\n";
    }
    s.bytes = checked_add(s.bytes, aligned(size));
  };
  for (size_t i = 0; i < p.inputs.size(); i++) row(p.inputs[i], n.inputs[i], true);
  for (size_t i = 0; i < p.outputs.size(); i++) row(p.outputs[i], n.outputs[i], false);
  return s;
}

// Lines of a build in which NVRTC compiles the kernels.
std::string launch_only(bool jit, const std::string& lines) { return jit ? "#ifdef TC_LAUNCH_ONLY\n" + lines + "#endif\n" : ""; }

}  // namespace

std::string cuda_executor_source(const Program& p, const ProgramNames& n, uint64_t layout_id, bool jit) {
  Segments segments(p, n);
  const std::string functions = segments.text();
  const Staging io = staging(p, n);
  const std::string status = can_fail(p) ? "  TRY(cudaMemcpyAsync(&d.host->status, STATUS, sizeof(int32_t), cudaMemcpyDeviceToHost, d.stream));\n" : "";
  return fill(support_text("executor.cu.in"), {{"name", n.lower},
                                               {"NAME", n.upper},
                                               {"segments", functions},
                                               {"control", segments.control()},
                                               {"io_bytes", to_text(std::max<int64_t>(io.bytes, 256))},
                                               {"upload", io.upload},
                                               {"download", io.download + status},
                                               {"stage_in", io.stage_in},
                                               {"stage_out", io.stage_out},
                                               {"fields", io.fields_in + io.fields_out},
                                               {"null_tests", null_tests(p, n)},
                                               {"layout_id", hex(layout_id, 16)},
                                               {"jit_include", launch_only(jit, "#include \"tc_jit.h\"\ntc_jit_program " + n.lower + "_jit_program();\n")},
                                               {"jit_member", launch_only(jit, "  tc_jit jit;                        /* the compiled kernels */\n")},
                                               {"jit_compile", launch_only(jit, "  TRY(d.jit.compile(" + n.lower + "_jit_program()));\n  const tc_jit_scope scope(d.jit);\n")},
                                               {"jit_scope", launch_only(jit, "  const tc_jit_scope scope(d.jit);\n")},
                                               {"jit_scope_async", launch_only(jit, "  const tc_jit_scope scope(d->jit);\n")},
                                               {"strerror_rows", strerror_rows(n)}});
}

std::string cuda_header(const ProgramNames& n) {
  return fill(support_text("name_cuda.h.in"), {{"name", n.lower}, {"NAME", n.upper}});
}

}  // namespace tc
